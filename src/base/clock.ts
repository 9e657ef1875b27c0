/** Time as the controller knows it: one monotonic source, so that a test or a simulator can replace it. */

/** A monotonic clock with timers, all in milliseconds. */
export interface Clock {
  now(): number;
  /** Calls back once, after at least `delayMs`; a delay too long for the platform, Infinity included, may end early. */
  setTimeout(callback: () => void, delayMs: number): unknown;
  clearTimeout(timer: unknown): void;
  /** Calls back in the next turn of the event loop; without it a timer of 0 ms does, and no readings are shared. */
  nextTurn?(callback: () => void): void;
}

/** The longest delay that timers of Node and of browsers can hold. */
const longestTimerMs = 2 ** 31 - 1;

const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown };

/** `performance.now()` and the platform's timers, which keep a Node process alive. */
export const realClock: Clock = {
  now: () => performance.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, Math.min(delayMs, longestTimerMs)),
  clearTimeout: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout> | undefined),
  ...(setImmediate !== undefined && { nextTurn: (callback: () => void) => void setImmediate(callback) }),
};

/** Node's timers keep the process alive; this one, which it returns, must not. Other platforms' are left alone. */
export function letProcessEnd<T>(timer: T): T {
  const handle = timer as { unref?: unknown } | null | undefined;
  if (typeof handle?.unref === 'function') handle.unref();
  return timer;
}

/** A field before its first instant: V8 keeps a reference that a rush shares, not a copy each (bench: backlog). */
export const neverUnboxed: number = undefined as unknown as number;
