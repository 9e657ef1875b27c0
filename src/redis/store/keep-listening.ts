/** Listens to a channel, also where the store cannot be reached at first. */
import { letProcessEnd } from '../../base/clock.js';
import type { Clock } from '../../index.js';
import type { StoreMessages } from './store.js';

/** The time between two attempts to listen, and the longest that stopping takes. */
const againMs = 1_000;

/** Calls `begun` once it listens; tries until then. The function that stops it does not wait, and never rejects. */
export function keepListening(
  messages: StoreMessages,
  channel: string,
  receive: (message: string) => void,
  clock: Clock,
  begun: () => void = () => {},
): () => Promise<void> {
  let isStopped = false;
  let timer: unknown;
  let stop = (): Promise<unknown> => Promise.resolve();
  let attempt = begin();

  async function begin(): Promise<void> {
    try {
      stop = await messages.subscribe(channel, (message) => isStopped || receive(message));
      if (!isStopped) begun();
    } catch {
      const again = (): unknown => (attempt = begin());
      if (!isStopped) timer = letProcessEnd(clock.setTimeout(again, againMs));
    }
  }
  return async () => {
    isStopped = true;
    clock.clearTimeout(timer);
    const end = attempt.then(() => stop()).catch(() => {});
    const tooLong = new Promise<void>((resolve) => {
      timer = clock.setTimeout(resolve, againMs);
    });
    await Promise.race([end, tooLong]);
    clock.clearTimeout(timer);
  };
}
