import { disown } from './foreign-values.js';

/** Wraps a listener so that its exceptions, and the rejections of its promise, go to `failed`. */
export function guardedListener<T>(
  listener: (payload: T) => unknown,
  failed: (error: unknown) => void,
): (payload: T) => void {
  return (payload) => {
    try {
      disown(listener(payload), failed);
    } catch (error) {
      failed(error);
    }
  };
}
