/** One attempt, from its dispatch to an answer or to another attempt. Invariant: the lease ends here or with a body. */
import { isOverloadRefusal, refusalWaitMs } from '../adapters/http/index.js';
import { firstTokenMsOf, isEventStream, readToFirstToken } from '../base/stream/first-token.js';
import { GatheredBytes } from '../base/stream/gathered-bytes.js';
import { withBody } from '../base/stream/with-body.js';
import { isUnconnected } from '../base/unconnected.js';
import type { EndpointView, Lease } from '../index.js';
import { usageReader } from '../upstream/index.js';
import type { FetchCall } from './fetch-call.js';
import type { FetchSettings } from './fetch-options.js';
import { LeaseEnd, leasedStream, type UnreadCount } from './lease-end.js';

/**
 * - `answered`: for the caller; the lease goes with it.
 * - `refused`: because of load. `pass` makes the answer for the caller; without it the lease still has to end.
 * - `evicted`: before there was an answer. The lease still has to end.
 * - `late`: no content token in time.
 */
export type AttemptResult =
  | { readonly type: 'answered'; readonly response: Response }
  | ({ readonly type: 'refused' } & Refusal)
  | { readonly type: 'evicted' | 'late' };

type Refusal = Readonly<{ waitMs: number | undefined; pass: () => Response; discard: () => void }>;

type Body = ReadableStreamDefaultReader<Uint8Array>;

/** Refusals are short; a longer one is judged by its beginning. */
const longestRefusal = 65_536;
/** How long an endpoint is avoided if its refusal does not say. */
const avoidMs = 5000;

export class Attempt {
  readonly lease: Lease;
  readonly end: LeaseEnd<Uint8Array>;
  private readonly call: FetchCall;
  private readonly settings: FetchSettings;
  private readonly counts: UnreadCount;
  private readonly firstTokenMs: number;
  private headTimer: unknown = undefined;
  private tokenTimer: unknown = undefined;

  /** `mayRetry`: another attempt is possible, so that this one can be given up. */
  constructor(lease: Lease, call: FetchCall, settings: FetchSettings, counts: UnreadCount, mayRetry: boolean) {
    this.lease = lease;
    this.end = new LeaseEnd(lease, call.signal);
    this.call = call;
    this.settings = settings;
    this.counts = counts;
    const { firstToken, firstTokenByModel } = settings.timeouts;
    const isAwaited = mayRetry && call.isStream;
    this.firstTokenMs = isAwaited ? firstTokenMsOf(call.model, firstToken, firstTokenByModel) : Infinity;
  }

  /** Rejects as fetch does: when the caller aborts, there is no connection, or no head of an answer comes in time. */
  async run(): Promise<AttemptResult> {
    const { end, settings } = this;
    try {
      const lateHead = (): unknown => new DOMException('The answer did not begin in time', 'TimeoutError');
      this.headTimer = this.timer(settings.timeouts.firstByte, lateHead);
      this.tokenTimer = this.timer(this.firstTokenMs, () => tooLate);
      const response = await this.send();
      end.signal.throwIfAborted();
      this.stop(this.headTimer);
      return await this.judge(response);
    } catch (error) {
      if (this.lease.isEvicted && end.leave()) return { type: 'evicted' };
      if (isUnconnected(error)) this.lease.unsent();
      end.settle();
      if (end.signal.aborted && end.signal.reason === tooLate) return { type: 'late' };
      throw end.signal.aborted ? end.signal.reason : error;
    } finally {
      this.stop(this.headTimer);
      this.stop(this.tokenTimer);
    }
  }

  private send(): Promise<Response> {
    const { call, lease, end, settings } = this;
    const { endpoint } = lease;
    const { fetch = globalThis.fetch, route, headersFor } = settings;
    if (endpoint === undefined) return fetch(...call.request(call.url, {}, end.signal));
    call.tried.push(endpoint.id);
    const url = route?.(endpoint, call) ?? endpointUrl(endpoint, call.url);
    return fetch(...call.request(url, headersFor?.(endpoint, call) ?? {}, end.signal));
  }

  private async judge(response: Response): Promise<AttemptResult> {
    const { lease, end, settings } = this;
    const body: Body | undefined = response.body?.getReader();
    if (mayRefuse(response)) {
      end.awaitPieces(settings.clock, settings.timeouts.idle);
      const held = body === undefined ? [] : await readBeginning(body);
      const answer = { status: response.status, headers: response.headers, body: textOf(held) };
      lease.answered(answer);
      if (isOverloadRefusal(answer)) return this.refused(response, body, held);
      return { type: 'answered', response: this.pass(response, body, held) };
    }
    // An opaque answer of a page tells nothing.
    if (response.status > 0) lease.answered(response);
    const awaitsToken = this.firstTokenMs < Infinity && body !== undefined && isEventStream(response.headers);
    if (!awaitsToken) this.stop(this.tokenTimer);
    const held = awaitsToken ? await readToFirstToken(body) : [];
    end.signal.throwIfAborted();
    if (settings.usage && response.ok) end.reader = usageReader({ lease, cachedTokens: true });
    return { type: 'answered', response: this.pass(response, body, held) };
  }

  private refused(response: Response, body: Body | undefined, held: Uint8Array[]): AttemptResult {
    const { endpoint } = this.lease;
    const waitMs = refusalWaitMs(response.headers);
    if (endpoint !== undefined) this.settings.pool?.markOverloaded(endpoint, waitMs ?? avoidMs);
    return {
      type: 'refused',
      waitMs,
      pass: () => this.pass(response, body, held),
      discard: () => void body?.cancel().catch(() => {}),
    };
  }

  private pass(response: Response, body: Body | undefined, held: Uint8Array[]): Response {
    const { end, counts, settings } = this;
    if (body === undefined) {
      end.settle();
      return response;
    }
    end.awaitPieces(settings.clock, settings.timeouts.idle);
    end.isAnswered = true;
    if (response.headers.get('content-length') === '0') end.settle();
    return withBody(response, leasedStream(body, held, end, counts));
  }

  private timer(ms: number, reason: () => unknown): unknown {
    return ms === Infinity ? undefined : this.settings.clock.setTimeout(() => this.end.abort(reason()), ms);
  }

  private stop(timer: unknown): void {
    if (timer !== undefined) this.settings.clock.clearTimeout(timer);
  }
}

/** The reason that ends an attempt before another one; no caller sees it. */
const tooLate: unique symbol = Symbol('no content token in time');

/** Tells of load by status or text, which is waited for where the status says so, or its length is told. */
function mayRefuse({ status, headers }: Response): boolean {
  if (status < 400) return false;
  return isOverloadRefusal({ status }) || Number(headers.get('content-length') ?? NaN) <= longestRefusal;
}

async function readBeginning(body: Body): Promise<Uint8Array[]> {
  const held = new GatheredBytes();
  while (held.length <= longestRefusal) {
    const { done, value } = await body.read();
    if (done) break;
    held.push(value);
  }
  return held.parts();
}

function textOf(chunks: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join('');
}

/**
 * The call's path at label `url`, else `address`, else the id. A path of their own comes first, unless the call's
 * begins with it: `https://host/v1` takes `/v1/models` once. @throws TypeError when that makes no URL
 */
function endpointUrl({ id, labels }: EndpointView, url: string): URL {
  const text = labels.url ?? labels.address ?? id;
  const base = new URL(/^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  const target = new URL(url, base);
  const prefix = base.pathname.replace(/\/+$/, '');
  const path = prefix === '' || target.pathname === prefix || target.pathname.startsWith(`${prefix}/`) ? '' : prefix;
  return new URL(`${base.origin}${path}${target.pathname}${target.search}`);
}
