/** A model server that knows at every moment what it runs: a request is over when its connection is. */
import { serve, startUpstream } from './upstream.js';

export interface Seen {
  readonly url: string;
  now: number;
  most: number;
  served: number;
}

export async function countingServer(): Promise<Seen> {
  const seen = { url: '', now: 0, most: 0, served: 0 };
  const { url } = await startUpstream((received, index) => {
    seen.most = Math.max(seen.most, ++seen.now);
    received.res.once('close', () => seen.now--);
    setTimeout(
      () => {
        seen.served++;
        serve(received, index);
      },
      10 + (index % 5) * 10,
    );
  });
  return Object.assign(seen, { url });
}
