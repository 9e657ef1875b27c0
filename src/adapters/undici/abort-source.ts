/** The `signal` of a dispatch: an AbortSignal, or an emitter of `abort`, as undici takes both. */
import type { EventEmitter } from 'node:events';
import { whenAborted as whenSignalAborted } from '../../base/when-aborted.js';

type AbortSource = AbortSignal | EventEmitter;

/** Calls `abort` when the signal aborts, or at once if it has. Returns what stops listening. */
export function whenAborted(given: unknown, abort: (reason: Error) => void): () => void {
  if (given === undefined || given === null) return () => {};
  const signal = given as AbortSource & { readonly aborted?: boolean; readonly reason?: Error };
  const listener = (): void => abort(signal.reason ?? new DOMException('The call was aborted', 'AbortError'));
  if ('addEventListener' in signal) return whenSignalAborted(signal, listener);
  if (signal.aborted === true) {
    listener();
    return () => {};
  }
  signal.on('abort', listener);
  return () => signal.off('abort', listener);
}
