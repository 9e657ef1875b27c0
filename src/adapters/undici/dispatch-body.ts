/** Measures and watches a call's body before it is sent. Nothing here reads it. */
import type { Readable } from 'node:stream';
import { type HeaderSource, headerValue } from '../../base/headers/header-source.js';

/** The length of a body in memory; else Content-Length, or `unknownBodyBytes`. */
export function bodyBytes(body: unknown, headers: HeaderSource, unknownBodyBytes: number): number {
  if (body === undefined || body === null) return 0;
  if (typeof body === 'string') return Buffer.byteLength(body);
  if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return body.byteLength;
  if (body instanceof Blob) return body.size;
  const declared = Number(headerValue(headers, ['content-length']) ?? Number.NaN);
  return Number.isSafeInteger(declared) && declared >= 0 ? declared : unknownBodyBytes;
}

export function isStream(body: unknown): body is Readable {
  return typeof (body as Readable | null | undefined)?.pipe === 'function';
}

/**
 * Calls `fail` when a stream fails, which nobody else listens for before undici has it. Returns what stops listening.
 */
export function whenBodyFails(body: unknown, fail: (error: Error) => void): () => void {
  if (!isStream(body)) return () => {};
  body.on('error', fail);
  return () => body.off('error', fail);
}
