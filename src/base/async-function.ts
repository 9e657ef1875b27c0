/** Functions that answer later, where an answer is needed at once. */

/** A promise, of whatever realm or library. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';
}

/** True for an `async` function, which is not called. One that only returns a promise cannot be recognized. */
export function isAsyncFunction(value: unknown): boolean {
  return typeof value === 'function' && Reflect.get(value, Symbol.toStringTag) === 'AsyncFunction';
}

/** Nobody will look at this promise: its rejection must not end the process. */
export function abandon(promise: PromiseLike<unknown>): void {
  promise.then(undefined, () => {});
}
