/** An attempt that is given up when a stream brings no content token in time. */
import { fieldsOf, parseJson } from '../base/stream/content-pieces.js';
import { firstTokenMsOf, isEventStream, readToFirstToken } from '../base/stream/first-token.js';
import { streamAhead } from '../base/stream/read-ahead.js';
import { withBody } from '../base/stream/with-body.js';
import type { Clock } from '../index.js';
import { type Fetch, signalOf } from './sent-again.js';

/** Spans of time in ms; Infinity: as long as it takes. */
export interface FirstTokenTimeouts {
  /** For every request for a stream. @default Infinity */
  firstToken?: number | undefined;
  /** By the model in a JSON body. */
  firstTokenByModel?: Readonly<Record<string, number>> | undefined;
}

/** Infinity for a request without a stream, because its answer comes whole. */
export function awaitsTokenMs({ firstToken, firstTokenByModel }: FirstTokenTimeouts, body: unknown): number {
  const { model, stream } = (typeof body === 'string' && fieldsOf(parseJson(body))) || {};
  return stream === true ? firstTokenMsOf(model, firstToken, firstTokenByModel) : Infinity;
}

/** The answer, with its first content token. Undefined, and cancelled, where `mayGiveUp` agrees, once, after `ms`. */
export async function fetchToFirstToken(
  fetch: Fetch,
  input: string | URL | Request,
  init: RequestInit | undefined,
  ms: number,
  clock: Clock,
  mayGiveUp: () => boolean,
): Promise<Response | undefined> {
  if (ms === Infinity) return fetch(input, init);
  const late = new AbortController();
  const caller = signalOf(input, init);
  const timer = clock.setTimeout(() => {
    if (mayGiveUp()) late.abort();
  }, ms);
  try {
    const signal = caller === undefined ? late.signal : AbortSignal.any([caller, late.signal]);
    const response = await fetch(input, { ...init, signal });
    if (response.body === null || !isEventStream(response.headers)) return response;
    const reader = response.body.getReader();
    return withBody(response, streamAhead(reader, await readToFirstToken(reader), {}));
  } catch (error) {
    if (late.signal.aborted && caller?.aborted !== true) return undefined;
    throw error;
  } finally {
    clock.clearTimeout(timer);
  }
}
