/**
 * Which bodies the gateway can route. The model in a JSON body decides where it goes. JSON under another type would go
 * to any server, so it gets 415.
 *
 *   application/json, …+json ──────────────────────────────► read
 *   anything else at a path that takes JSON ───────────────► 415
 *   text, forms of browsers and curl, or no type at all ───► 415, wherever it is sent; without a body it passes
 *   files, audio, multipart forms ─────────────────────────► streamed, unread
 */
import { ApiError, uploadEnds } from './api-error.js';
import type { RequestState } from './request-state.js';

/** Paths of OpenAI's interface, and of those beside it, that take JSON and nothing else. */
const takesJson =
  /^\/v1\/(?:chat\/completions|completions|responses|messages(?:\/count_tokens)?|embeddings|rerank|score|classify|pooling|moderations|tokenize|detokenize|images\/generations|audio\/speech)\/?$/;

/** Types that clients send when they do not name JSON. */
const saysNothing = /^(?:text\/|application\/x-www-form-urlencoded\b)/i;

/** @throws ApiError 415 for a body that the path does not take, or whose type says nothing */
export function checkMediaType({ req, path, isJson }: RequestState): void {
  if (isJson) return;
  const type = req.headers['content-type'] ?? '';
  const isEmpty =
    type === '' && req.headers['transfer-encoding'] === undefined && Number(req.headers['content-length'] ?? 0) === 0;
  if ((isEmpty || type !== '') && !saysNothing.test(type) && !takesJson.test(path)) return;
  const message = `The body must be JSON, and its Content-Type application/json; it is ${type === '' ? 'missing' : JSON.stringify(type.slice(0, 100))}.`;
  throw new ApiError(415, 'unsupported_media_type', message, { ...uploadEnds, 'accept-post': 'application/json' });
}

/** How a body is packed. */
export type ContentEncoding = 'gzip' | 'deflate' | 'br';

/** Undefined for a body that is not packed. @throws ApiError 415 for one that the gateway cannot unpack */
export function encodingOf({ req }: RequestState): ContentEncoding | undefined {
  const encoding = (req.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  switch (encoding) {
    case '':
    case 'identity':
      return undefined;
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'deflate':
    case 'br':
      return encoding;
    default:
      throw new ApiError(
        415,
        'unsupported_encoding',
        'The body must be sent as it is, or packed by one of gzip, deflate and br.',
        {
          ...uploadEnds,
          'accept-encoding': 'gzip, deflate, br',
        },
      );
  }
}
