/** Waiting for what must come true, instead of sleeping and hoping. */

/** The platform's, also while a test holds the time still. */
const { setTimeout: later, clearTimeout: neverMind } = globalThis;

/**
 * Resolves once `condition` holds; looks again in every turn of the event loop. Fails with `what` after `deadlineMs`.
 */
export async function until(
  what: string | (() => string),
  condition: () => boolean,
  deadlineMs = 120_000,
): Promise<void> {
  const deadlineAtMs = performance.now() + deadlineMs;
  while (!condition()) {
    if (performance.now() > deadlineAtMs)
      throw new Error(`waited ${deadlineMs} ms in vain: ${typeof what === 'string' ? what : what()}`);
    await new Promise((resolve) => later(resolve, 1));
  }
}

/** The same for a promise that must settle. */
export function within<T>(what: string, promise: Promise<T>, deadlineMs = 120_000): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = later(() => reject(new Error(`waited ${deadlineMs} ms in vain: ${what}`)), deadlineMs);
  });
  return Promise.race([promise, late]).finally(() => neverMind(timer));
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

export function deferred<T = void>(): Deferred<T> {
  let settle: Pick<Deferred<T>, 'resolve' | 'reject'> | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle! };
}
