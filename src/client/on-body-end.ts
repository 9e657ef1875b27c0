/** An answer that tells when its body is over: it has come, or was cancelled or broken off. */
import { ReadAhead } from '../base/stream/read-ahead.js';
import { withBody } from '../base/stream/with-body.js';

/** The same answer; `end` is called once, at once where there is no body. */
export function onBodyEnd(response: Response, end: () => void): Response {
  // React Native has no bodies as streams.
  if (!response.body) {
    end();
    return response;
  }
  let isOver = false;
  const over = (): void => {
    if (!isOver) end();
    isOver = true;
  };
  const ahead = new ReadAhead<Uint8Array>(response.body.getReader(), [], { over });
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => ahead.pull(controller),
      cancel(reason) {
        over();
        return ahead.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return withBody(response, body);
}
