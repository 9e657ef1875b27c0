/** Wraps a listener so that its exceptions, and the rejections of its promise, go to `failed`. */
export function guardedListener<T>(listener: (payload: T) => unknown, failed: (error: unknown) => void): (payload: T) => void {
  return (payload) => {
    try {
      const result: unknown = listener(payload);
      if (result instanceof Promise) result.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}
