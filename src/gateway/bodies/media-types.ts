/**
 * Which bodies the gateway can route: by the model in JSON. JSON under another type would go to any server.
 *
 *   application/json, …+json ──────────────────────────────► read
 *   anything else at a path that takes JSON ───────────────► 415
 *   text, forms of browsers and curl, or no type at all ───► 415, wherever it is sent; without a body it passes
 *   files, audio, multipart forms ─────────────────────────► passed on, unread
 */
import type { RequestState } from '../request-state.js';
import { ApiError, uploadEnds } from '../shared/api-error.js';
import { asLaxServersRead } from '../shared/safe-path.js';

/** Paths of OpenAI's interface, and of those beside it, that take JSON and nothing else. */
const takesJson =
  /^\/v1\/(?:chat\/completions|completions|responses|messages(?:\/count_tokens)?|embeddings|rerank|score|classify|pooling|moderations|tokenize|detokenize|images\/generations|audio\/speech)$/;

/** What a body in JSON may say of its letters. */
const utf8 = /^\s*(?:utf-?8|"utf-?8")\s*$/i;

/** Types that clients send when they do not name JSON. */
const saysNothing = /^(?:text\/|application\/x-www-form-urlencoded\b)/i;

/** @throws ApiError 415 for a body that the path does not take, whose type says nothing, or whose text is not UTF-8 */
export function checkMediaType({ req, path, isJson }: RequestState): void {
  const type = req.headers['content-type'] ?? '';
  if (isJson) return void checkCharset(type);
  const isEmpty =
    type === '' && req.headers['transfer-encoding'] === undefined && Number(req.headers['content-length'] ?? 0) === 0;
  if ((isEmpty || type !== '') && !saysNothing.test(type) && !takesJson.test(asLaxServersRead(path))) return;
  const message = `The body must be JSON, and its Content-Type application/json; it is ${type === '' ? 'missing' : JSON.stringify(type.slice(0, 100))}.`;
  throw new ApiError(415, 'unsupported_media_type', message, { ...uploadEnds, 'accept-post': 'application/json' });
}

/** A server that heeds another charset would read another model than the gateway did. */
function checkCharset(type: string): void {
  for (const parameter of type.split(';').slice(1)) {
    const [name = '', charset = ''] = parameter.split('=', 2);
    if (!/^\s*charset/i.test(name) || utf8.test(charset)) continue;
    const message = `JSON must be in UTF-8; its Content-Type says ${JSON.stringify(parameter.trim().slice(0, 100))}.`;
    throw new ApiError(415, 'unsupported_charset', message, uploadEnds);
  }
}

export type ContentEncoding = 'gzip' | 'deflate' | 'br';

/** Undefined for a body that is not packed. @throws ApiError 415 for one that the gateway cannot unpack */
export function encodingOf({ req }: RequestState): ContentEncoding | undefined {
  const encoding = (req.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') return undefined;
  if (encoding === 'x-gzip') return 'gzip';
  if (encoding === 'gzip' || encoding === 'deflate' || encoding === 'br') return encoding;
  const message = 'The body must be sent as it is, or packed by one of gzip, deflate and br.';
  throw new ApiError(415, 'unsupported_encoding', message, { ...uploadEnds, 'accept-encoding': 'gzip, deflate, br' });
}
