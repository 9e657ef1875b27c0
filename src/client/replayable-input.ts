/** The parts of a request, so that it can be sent again. */

/** The input to send while the request may be needed again: a `Request` gives its body only once. */
export function replayableInput<I extends string | URL | Request>(input: I, init?: RequestInit): I | Request {
  if (typeof input === 'string' || input instanceof URL) return input;
  return input.body === null || (init?.body ?? null) !== null ? input : input.clone();
}

/** The signal that ends the request. As for fetch, null in `init` takes away the one of a `Request`. */
export function signalOf(input: string | URL | Request, init: RequestInit | undefined): AbortSignal | undefined {
  if (init?.signal !== undefined) return init.signal ?? undefined;
  return typeof input === 'object' && 'signal' in input ? input.signal : undefined;
}
