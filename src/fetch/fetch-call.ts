/** A call as options see it: target, headers without control headers, the body's model. It is parsed at most once. */
import { type AdapterGate, type Classification, controlHeaders, type PlacementHints } from '../adapters/http/index.js';
import { bodyBytes, isReplayable } from '../base/request-body.js';
import { fieldsOf, parseJson } from '../base/stream/content-pieces.js';
import { type FlowRequest, type Outcome, tokenEstimator } from '../index.js';
import { type Cause, inSeatOf, noSeat, seatOfCause } from './reentrant.js';

type BodyFacts = NonNullable<ReturnType<typeof fieldsOf>>;
const noFacts: BodyFacts = {};
/** What fetch reads of its options and of a Request; `dispatcher` is undici's. */
const initMembers = /* @__PURE__ */ `method headers body referrer referrerPolicy mode credentials cache redirect
  integrity keepalive signal duplex dispatcher`.split(/\s+/);
const unknownBodyBytes = 65_536;
type FetchArguments = [string | URL | Request, RequestInit];

export class FetchCall {
  readonly url: string;
  readonly method: string;
  /** As the caller gave it; of a `Request` its stream. */
  readonly body: unknown;
  /** Aborts when the caller does not want the answer any more, or the client of the causing request has left. */
  readonly signal: AbortSignal | undefined;
  /** The endpoints that it was sent to so far, in their order. */
  readonly tried: string[] = [];
  private readonly input: string | URL | Request;
  private readonly init: RequestInit;
  private readonly sentHeaders: Headers;
  private areHeadersOwn = false;
  private facts: BodyFacts | undefined = undefined;

  constructor(input: string | URL | Request, init: RequestInit | undefined, contextSignal?: AbortSignal | undefined) {
    const request = isRequest(input) ? input : undefined;
    const own = membersOf(init);
    this.input = input;
    this.init = own;
    this.url = request?.url ?? String(input);
    this.method = own.method ?? request?.method ?? 'GET';
    this.sentHeaders = new Headers(own.headers ?? request?.headers);
    for (const name of controlHeaders) {
      if (!this.sentHeaders.has(name)) continue;
      this.sentHeaders.delete(name);
      this.areHeadersOwn = true;
    }
    this.body = own.body ?? request?.body ?? undefined;
    // As for fetch, null takes away the signal of a Request.
    this.signal = callerSignal(own.signal === undefined ? request?.signal : (own.signal ?? undefined), contextSignal);
  }

  /** As they will be sent; whoever sees them may change them. */
  get headers(): Headers {
    this.areHeadersOwn = true;
    return this.sentHeaders;
  }

  /** The model that a JSON body names. */
  get model(): string | undefined {
    const { model } = this.json;
    return typeof model === 'string' ? model : undefined;
  }

  /** Whether a stream of events is asked for, by the body or by `Accept`. */
  get isStream(): boolean {
    return this.json.stream === true || this.sentHeaders.get('accept')?.includes('text/event-stream') === true;
  }

  /** The most tokens that a JSON body allows, over all the answers that it asks for. */
  get maxOutputTokens(): number | undefined {
    const { max_tokens, max_completion_tokens, max_output_tokens, n } = this.json;
    const limits = [max_tokens, max_completion_tokens, max_output_tokens].filter(isCount);
    return limits.length === 0 ? undefined : Math.max(...limits) * (isCount(n) ? Math.max(n, 1) : 1);
  }

  private get json(): BodyFacts {
    this.facts ??= typeof this.body === 'string' ? parsed(this.body) : noFacts;
    return this.facts;
  }

  /** Bytes of the body as far as they are known; a guess for streams and forms. */
  get byteSize(): number {
    return bodyBytes(this.body, this.sentHeaders.get('content-length'), unknownBodyBytes);
  }

  /** Whether it can be sent twice. */
  get isReplayable(): boolean {
    return isReplayable(this.body);
  }

  /** It is not sent: a body that is a stream is told, as fetch does. */
  leaveBody(reason: unknown): void {
    const { body } = this;
    if (body instanceof ReadableStream && !body.locked) body.cancel(reason).catch(() => {});
  }

  /** The arguments for fetch, for this URL and with these headers beside the caller's. */
  request(url: string | URL, more: Readonly<Record<string, string>>, signal: AbortSignal): FetchArguments {
    const { input, init } = this;
    const added = Object.entries(more);
    // The caller's own object keeps the case of the names.
    const headers = this.areHeadersOwn || added.length > 0 ? { headers: new Headers(this.sentHeaders) } : undefined;
    for (const [name, value] of added) headers?.headers.set(name, value);
    if (!isRequest(input)) return [url, { ...init, ...headers, signal }];
    if (input.url !== String(url)) return [url, { ...membersOf(input), ...init, ...headers, signal }];
    // Options take these from a Request, even if they are none of them.
    const { referrer, referrerPolicy } = input;
    return [input, { referrer, referrerPolicy, ...init, ...headers, signal }];
  }
}

/** Of any realm or package. */
const isRequest = (input: unknown): input is Request => Object.prototype.toString.call(input) === '[object Request]';

/** A Request, or an object with getters, has them where a spread does not find them. */
function membersOf(given: RequestInit | Request | undefined): RequestInit {
  if (!given || Object.getPrototypeOf(given) === Object.prototype) return { ...given };
  const entries = initMembers.map((name) => [name, Reflect.get(given, name)] as const);
  return { ...given, ...Object.fromEntries(entries.filter(([, value]) => value !== undefined)) };
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0;

const parsed = (text: string): BodyFacts => (/^\s*\{/.test(text) ? (fieldsOf(parseJson(text)) ?? noFacts) : noFacts);

/** Aborts when the first of them does; undefined where there is none. */
export function callerSignal(own: AbortSignal | undefined, context: AbortSignal | undefined): AbortSignal | undefined {
  if (own === undefined || context === undefined || own === context) return own ?? context;
  return AbortSignal.any([own, context]);
}

const estimateTokens = tokenEstimator({ addEstimatedOutputTokens: true });

/** What every call tells of itself; `inputTokens`: of the prompt, as far as the call knows. */
export interface CallFacts extends Pick<FlowRequest, 'byteSize' | 'signal'> {
  readonly inputTokens?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
}

/** Asks whenever called. Tokens are those that the host names, else those of `estimate`, else the call's. */
export function turnFor<R extends FlowRequest & PlacementHints>(
  flow: AdapterGate<R>,
  named: Classification & Cause,
  call: Omit<R, keyof Classification> & CallFacts,
  estimate: (() => number | undefined) | undefined,
  reentrant: 'share' | 'reject' | undefined,
): () => Promise<Outcome> {
  const { fairnessId, priority, tokens, ttlMs, sloTtftMs, affinityKey, sessionId, endpointSubset } = named;
  const { parentSessionId, group } = named;
  const held = seatOfCause(flow, named);
  const maxWaitMs = held === undefined ? named.maxWaitMs : 0;
  const { maxOutputTokens } = call;
  const inputTokens = tokens === undefined && estimate === undefined ? call.inputTokens : undefined;
  const booked =
    inputTokens === undefined ? (tokens ?? estimate?.()) : estimateTokens({ inputTokens, maxOutputTokens });
  const hints = { ttlMs, maxWaitMs, sloTtftMs, affinityKey, sessionId, parentSessionId, group, endpointSubset };
  const request = Object.assign(hints, call, { inputTokens, tokens: booked }) as unknown as R;
  const key = { fairnessId, priority };
  return async () => {
    if (held !== undefined && reentrant === 'share') return inSeatOf(held);
    const outcome = await (flow.enter?.(request, key) ?? flow.enqueue(request, key));
    if (held === undefined || outcome.type !== 'EvictedTTL') return outcome;
    return { ...outcome, type: 'RejectedCapacity', reason: 'refused', detail: noSeat };
  };
}
