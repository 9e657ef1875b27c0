/**
 * One call of a fetch, as options see it: its target and its headers without the control headers, and what a JSON body
 * says of its model. A body is parsed at most once, when somebody asks for what is in it.
 */
import { controlHeaders } from '../adapters/http/index.js';
import { isReplayable } from '../base/replayable-body.js';
import { callerSignal } from './caller-signal.js';

interface BodyFacts {
  readonly model?: unknown;
  readonly stream?: unknown;
  readonly n?: unknown;
  readonly max_tokens?: unknown;
  readonly max_completion_tokens?: unknown;
  readonly max_output_tokens?: unknown;
}

const noFacts: BodyFacts = {};
/** Booked for a body of unknown length. */
const unknownBodyBytes = 65_536;

export class FetchCall {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  /** As the caller gave it; of a `Request` its stream. */
  readonly body: unknown;
  /**
   * Aborts when the caller does not want the answer any more, or the client of the request that caused the call has
   * left.
   */
  readonly signal: AbortSignal | undefined;
  /** The endpoints that it was sent to so far, in their order. */
  readonly tried: string[] = [];
  private readonly input: string | URL | Request;
  private readonly init: RequestInit | undefined;
  private facts: BodyFacts | undefined = undefined;

  constructor(input: string | URL | Request, init: RequestInit | undefined, contextSignal?: AbortSignal | undefined) {
    const request = typeof input === 'object' && 'url' in input ? input : undefined;
    this.input = input;
    this.init = init;
    this.url = request?.url ?? String(input);
    this.method = init?.method ?? request?.method ?? 'GET';
    this.headers = new Headers(init?.headers ?? request?.headers);
    for (const name of controlHeaders) this.headers.delete(name);
    this.body = init?.body ?? request?.body ?? undefined;
    // As for fetch, null takes away the signal of a Request.
    this.signal = callerSignal(
      init?.signal === undefined ? request?.signal : (init.signal ?? undefined),
      contextSignal,
    );
  }

  /** The model that a JSON body names. */
  get model(): string | undefined {
    const { model } = this.json;
    return typeof model === 'string' ? model : undefined;
  }

  /** Whether a stream of events is asked for, by the body or by `Accept`. */
  get isStream(): boolean {
    return this.json.stream === true || this.headers.get('accept')?.includes('text/event-stream') === true;
  }

  /** The most tokens that a JSON body allows, over all the answers that it asks for. */
  get maxOutputTokens(): number | undefined {
    const { max_tokens, max_completion_tokens, max_output_tokens, n } = this.json;
    const limits = [max_tokens, max_completion_tokens, max_output_tokens].filter(isCount);
    return limits.length === 0 ? undefined : Math.max(...limits) * (isCount(n) ? Math.max(n, 1) : 1);
  }

  /** A JSON body; an empty object for any other. */
  private get json(): BodyFacts {
    this.facts ??= typeof this.body === 'string' ? parsed(this.body) : noFacts;
    return this.facts;
  }

  /** Bytes of the body as far as they are known; a guess for streams and forms. */
  get byteSize(): number {
    const { body } = this;
    if (body === undefined) return 0;
    if (typeof body === 'string') return utf8Bytes(body);
    if (body instanceof URLSearchParams) return body.toString().length;
    if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return body.byteLength;
    if (body instanceof Blob) return body.size;
    const declared = Number(this.headers.get('content-length') ?? Number.NaN);
    return Number.isSafeInteger(declared) && declared >= 0 ? declared : unknownBodyBytes;
  }

  /** Whether it can be sent twice. */
  get isReplayable(): boolean {
    return isReplayable(this.body);
  }

  /** The options for fetch, for this URL and with these headers beside the caller's. */
  request(
    url: string | URL,
    more: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): [string | URL | Request, RequestInit] {
    const headers = new Headers(this.headers);
    for (const [name, value] of Object.entries(more)) headers.set(name, value);
    const isRequest = typeof this.input === 'object' && 'url' in this.input;
    const target =
      isRequest && this.input.url === String(url) ? this.input : isRequest ? new Request(url, this.input) : url;
    return [target, { ...this.init, headers, signal }];
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

function parsed(text: string): BodyFacts {
  if (!/^\s*\{/.test(text)) return noFacts;
  try {
    return JSON.parse(text) as BodyFacts;
  } catch {
    return noFacts;
  }
}

/** The length of the text in UTF-8, counted without encoding it. */
function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) bytes += unit > 0x7ff && !isSurrogate(unit) ? 2 : 1;
  }
  return bytes;
}

/** Two of them make four bytes. */
function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}
