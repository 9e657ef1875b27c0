/** Bodies of requests: which can be sent twice, and how large they are as far as that is known. */

/** Whether a body can be sent again: a stream cannot, and a type that is not known here might be one. */
export function isReplayable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string' || ArrayBuffer.isView(body)) return true;
  if (body instanceof ArrayBuffer || body instanceof Blob) return true;
  return body instanceof FormData || body instanceof URLSearchParams;
}

/** The bytes of a body in memory; else those that its Content-Length says, or `otherwise`; 0 where there is no body. */
export function bodyBytes(body: unknown, contentLength: string | null | undefined, otherwise: number): number {
  if (body === undefined || body === null) return 0;
  if (typeof body === 'string') return utf8Bytes(body);
  if (body instanceof URLSearchParams) return body.toString().length;
  if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return body.byteLength;
  return body instanceof Blob ? body.size : declaredBytes(contentLength ?? 'none', otherwise);
}

export function declaredBytes(contentLength: string, otherwise: number): number {
  const bytes = Number(contentLength);
  return Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : otherwise;
}

/** The length of the text in UTF-8, counted without encoding it. */
function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    // Two surrogates make four bytes.
    const isSurrogate = unit >= 0xd800 && unit <= 0xdfff;
    if (unit > 0x7f) bytes += unit > 0x7ff && !isSurrogate ? 2 : 1;
  }
  return bytes;
}
