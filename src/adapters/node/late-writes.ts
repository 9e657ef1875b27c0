/** Drops the writes of a handler that goes on after the adapter has ended its response. */
import type { NodeResponse } from './node-request.js';

/**
 * Node emits an error for a write after the end, and without a listener that ends the process. It does so while the
 * response is not destroyed: behind another response of a client that pipelines, or before a client that reads slowly.
 */
export function ignoreLateErrors(res: NodeResponse): void {
  res.on('error', ignore);
}

/**
 * Makes the response of a handler that was answered for take what the handler still writes, and drop it. Its header
 * methods would throw otherwise, in a handler that knows of no reason why; and error handling behind it would destroy
 * the connection under the answer.
 */
export function dropLateWrites(res: NodeResponse): void {
  ignoreLateErrors(res);
  Object.assign(res, dropping);
}

function ignore(): void {}

function chain(this: NodeResponse): NodeResponse {
  return this;
}

/** The callback of `write` and `end` is the last argument. */
function callBack(given: readonly unknown[]): void {
  const callback = given.at(-1);
  if (typeof callback === 'function') process.nextTick(callback as () => void);
}

const dropping = {
  setHeader: chain,
  setHeaders: chain,
  appendHeader: chain,
  removeHeader: ignore,
  flushHeaders: ignore,
  addTrailers: ignore,
  writeHead: chain,
  writeContinue: ignore,
  writeProcessing: ignore,
  writeEarlyHints: ignore,
  /** It returns true, because a handler that waits for `drain` would wait for ever. */
  write(...given: unknown[]): boolean {
    callBack(given);
    return true;
  },
  end(this: NodeResponse, ...given: unknown[]): NodeResponse {
    callBack(given);
    return this;
  },
};
