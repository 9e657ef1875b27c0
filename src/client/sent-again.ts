/** What a request needs to be sent again, and getting rid of the response before. */

/** The signature that every fetch has. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

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

/** No refusal needs more bytes; a new connection is then cheaper than to read on. */
const mostBytes = 65_536;

/** Reads the body to its end in the background, for the connection; cancels a long one, and the result cancels it. */
export function discardBody({ body }: Pick<Response, 'body'>): () => void {
  // React Native has no bodies as streams; a locked one has a reader already.
  if (!body || body.locked) return () => {};
  const reader = body.getReader();
  const cancel = (): Promise<void> => reader.cancel().catch(() => {});
  const drain = async (): Promise<void> => {
    for (let bytes = 0; bytes <= mostBytes; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value?.byteLength ?? 0;
    }
  };
  // The response is done with, however it ended.
  drain().then(cancel, () => {});
  return cancel;
}
