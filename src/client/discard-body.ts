/** Getting rid of a response that nobody will read. */

/** No refusal needs more bytes; a new connection is then cheaper than to read on. */
const mostBytes = 65_536;

/** Reads the body to its end in the background, for the connection; cancels a long one, and the result cancels it. */
export function discardBody({ body }: Pick<Response, 'body'>): () => void {
  // React Native has no bodies as streams; a locked one has a reader already.
  if (!body || body.locked) return () => {};
  const reader = body.getReader();
  const cancel = (): void => void reader.cancel().catch(ignore);
  drain(reader).then(cancel, ignore);
  return cancel;
}

async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  for (let bytes = 0; bytes <= mostBytes; ) {
    const { done, value } = await reader.read();
    if (done) return;
    bytes += value?.byteLength ?? 0;
  }
}

/** The response is done with, however it ended. */
function ignore(): void {}
