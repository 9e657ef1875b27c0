/** Which bodies of requests can be sent twice. */

/** Whether a body can be sent again: a stream cannot, and a type that is not known here might be one. */
export function isReplayable(body: unknown): boolean {
  return (
    body === undefined ||
    body === null ||
    typeof body === 'string' ||
    ArrayBuffer.isView(body) ||
    body instanceof ArrayBuffer ||
    body instanceof Blob ||
    body instanceof FormData ||
    body instanceof URLSearchParams
  );
}
