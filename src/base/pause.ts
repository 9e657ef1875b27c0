import type { Clock } from './clock.js';

/** Resolves after `delayMs`; rejects with the signal's reason once it aborts. Leaves no timer or listener behind. */
export function pause(delayMs: number, clock: Clock, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const timer = clock.setTimeout(() => {
      signal?.removeEventListener('abort', callOff);
      resolve();
    }, delayMs);
    function callOff(): void {
      clock.clearTimeout(timer);
      reject(signal?.reason);
    }
    signal?.addEventListener('abort', callOff, { once: true });
  });
}
