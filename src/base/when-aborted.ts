/**
 * Listens to an AbortSignal without missing its abort. A lease may be evicted between its dispatch and the moment that
 * its host hears of it, so that a listener alone comes too late.
 */

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
