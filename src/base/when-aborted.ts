/** Listens to an AbortSignal, also one that aborted before its host hears of it, as a lease evicted at once. */

/** Calls `listener` once: when the signal aborts, or at once if it has. Returns what stops listening. */
export function whenAborted(signal: AbortSignal, listener: (reason: unknown) => void): () => void {
  const tell = (): void => listener(signal.reason);
  if (signal.aborted) {
    tell();
    return () => {};
  }
  signal.addEventListener('abort', tell, { once: true });
  return () => signal.removeEventListener('abort', tell);
}
