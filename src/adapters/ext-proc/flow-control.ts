/** Flow control for the streams of a proxy: each request is held until it is dispatched, and told its endpoint. */
import { letProcessEnd } from '../../base/clock.js';
import type { Drop, EndpointPool, EndpointView, Lease } from '../../index.js';
import { FlowControlError, subsetHint } from '../../index.js';
import type { AdapterGate, Classification, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import { flowKeyFromHeaders } from '../http/flow-key-from-headers.js';
import { HttpFlowControl, type Verdict } from '../http/http-flow-control.js';
import { type HttpErrorResponse, openaiError, slowUploadResponse, toHttpResponse } from '../http/to-http-response.js';
import type { AnswerReader, ExtProcDecider, ExtProcRequest, ExtProcSink } from './ext-proc-stream.js';
import { ExtProcStream } from './ext-proc-stream.js';
import type { Struct } from './messages.js';

/** Where a request may go: the best first. */
export type Ranking = (endpoints: readonly EndpointView[], request: ExtProcRequest) => readonly EndpointView[];

export interface ExtProcOptions extends Omit<FlowControlOptions<ExtProcRequest>, 'waiting'> {
  /** The controller's pool. The proxy is told each endpoint as `ip:port`: its label `address`, else its `id`. */
  pool: EndpointPool;
  /** How many endpoints the proxy is told, the one of the lease first; it tries the next at a retry. @default 1 */
  maxEndpoints?: number | undefined;
  /** Orders the others, and all for a request without a body, which needs no lease. @default fewest in flight first */
  rank?: Ranking | undefined;
  /** Facts for the proxy beside the endpoint, in the metadata `envoy.lb`: for its log, or its rate limits. */
  facts?: ((request: ExtProcRequest) => Struct | undefined) | undefined;
  /** The request is whole, and flow control has not seen it. It may change `body`; an answer refuses the request. */
  received?: ((request: ExtProcRequest) => HttpErrorResponse | undefined) | undefined;
  /** A server has begun to answer. */
  responding?: ((request: ExtProcRequest, lease: Lease) => AnswerReader | undefined) | undefined;
  /** The exchange is over; `lease` is undefined for a request that was not dispatched. */
  ended?: ((request: ExtProcRequest, lease: Lease | undefined) => void) | undefined;
  /** A hook has failed, and its request got 500. */
  failed?: ((error: unknown, request: ExtProcRequest) => void) | undefined;
  /** Bytes of all bodies that are being read; further ones get 503. @default 268435456 */
  maxReadingBytes?: number | undefined;
  /** Streams that are open; further ones end with RESOURCE_EXHAUSTED. @default 50000 */
  maxStreams?: number | undefined;
  /** How long a request may take to arrive, ms; then it gets 408. @default 60000 */
  receiveTimeoutMs?: number | undefined;
}

type ExtProcGate = AdapterGate<HttpFlowRequest<ExtProcRequest>>;

/** Begins an exchange on a stream of the proxy. `serveExtProc` calls it. */
export type ExtProcHandler = (sink: ExtProcSink) => ExtProcStream;

const resourceExhausted = 8;

/**
 * Holds the requests of a proxy until they are dispatched, and answers where they go. The seat is given back when the
 * answer has ended, or the stream. Drops are immediate responses by the error contract. Requests without a body pass.
 * Source: Gateway API Inference Extension, endpoint picker protocol.
 * @throws FlowConfigError for options that cannot be right.
 * @example
 * const handler = flowControl(flow, { pool, trust: true, contract: 'llm-d' });
 * const server = await serveExtProc(handler, { port: 9002 });
 */
export function flowControl(flow: ExtProcGate, options: ExtProcOptions): ExtProcHandler {
  const { maxStreams = 50_000, receiveTimeoutMs = 60_000, ...rest } = options;
  const decider = new Decider(flow, rest);
  return function open(sink) {
    const stream = new ExtProcStream(sink, decider);
    if (++decider.streams > maxStreams) stream.end(resourceExhausted, `more than ${maxStreams} streams are open`);
    const late = (): void => stream.refuse(slowUploadResponse('openai'));
    stream.timer = letProcessEnd(setTimeout(late, receiveTimeoutMs));
    return stream;
  };
}

const bySubset = subsetHint({ heedsPorts: true });

const byLoad: Ranking = (endpoints) =>
  [...endpoints].sort((a, b) => a.inFlightRequests / a.weight - b.inFlightRequests / b.weight);

class Decider implements ExtProcDecider {
  readonly maxRequestBytes: number;
  streams = 0;
  private readingBytes = 0;
  private readonly hooks: ExtProcOptions;
  private readonly control: HttpFlowControl<ExtProcStream, ExtProcRequest>;

  constructor(flow: ExtProcGate, options: ExtProcOptions) {
    this.hooks = options;
    const { pool, maxEndpoints, rank, facts, received, responding, ended, failed, maxReadingBytes, ...rest } = options;
    const { maxRequestBytes = 16_777_216, skip = ({ hasNoBody }) => hasNoBody } = rest;
    this.maxRequestBytes = maxRequestBytes;
    const classify = (request: ExtProcStream): Classification => this.classify(request);
    this.control = new HttpFlowControl(flow, { ...rest, skip, classify });
  }

  reserve(bytes: number): boolean {
    const { maxReadingBytes = 268_435_456 } = this.hooks;
    if (bytes > 0 && this.readingBytes + bytes > maxReadingBytes) return false;
    this.readingBytes += bytes;
    return true;
  }

  decide(stream: ExtProcStream): void {
    clearTimeout(stream.timer);
    try {
      // Waiting would not help where the proxy allows none of them.
      const isUnplaced = this.hooks.pool.endpoints.length > 0 && this.allowed(stream).length === 0;
      const answer = this.hooks.received?.(stream) ?? (isUnplaced ? this.noEndpoints() : undefined);
      if (answer !== undefined) {
        stream.stripHeaders();
        stream.refuse(answer);
        return;
      }
      const verdict = this.control.judge(stream, stream);
      if ('then' in verdict) void verdict.then((late) => this.follow(stream, late));
      else this.follow(stream, verdict);
    } catch (error) {
      this.fail(stream, error);
    }
  }

  responded(stream: ExtProcStream, headers: ReadonlyMap<string, string>, served: string | undefined): void {
    const lease = stream.flow?.lease;
    if (lease === undefined) return;
    try {
      const endpoint =
        served === undefined ? undefined : this.hooks.pool.endpoints.find((each) => addressOf(each) === served);
      if (endpoint !== undefined && endpoint !== lease.endpoint && !lease.isReleased) lease.bind(endpoint);
      if (stream.status > 0) lease.answered({ status: stream.status, headers });
      stream.reader = this.hooks.responding?.(stream, lease);
    } catch (error) {
      this.fail(stream, error);
    }
  }

  ended(stream: ExtProcStream): void {
    this.streams--;
    clearTimeout(stream.timer);
    try {
      this.hooks.ended?.(stream, stream.flow?.lease);
    } catch (error) {
      this.hooks.failed?.(error, stream);
    }
  }

  private classify(request: ExtProcStream): Classification {
    const { trust = false, classify, objectives, defaultFairnessId, sessionHeaders } = this.hooks;
    request.isTrusted = (typeof trust === 'function' ? trust(request) : trust) === true;
    const told = { objectives, trust: request.isTrusted, defaultFairnessId, sessionHeaders };
    const key = classify?.(request) ?? flowKeyFromHeaders(request.headers, told);
    // The proxy says it in its metadata, which clients cannot write; a header of that name means nothing.
    return { ...key, endpointSubset: request.subset };
  }

  private noEndpoints(): HttpErrorResponse {
    const drop: Drop = { type: 'RejectedOther', reason: 'no-endpoints', fairnessId: '', priority: 0, queuedMs: 0 };
    return toHttpResponse(drop, this.hooks);
  }

  private allowed({ subset }: ExtProcRequest): readonly EndpointView[] {
    return subset === undefined ? this.hooks.pool.endpoints : bySubset.keep(this.hooks.pool.endpoints, subset.join());
  }

  private follow(stream: ExtProcStream, verdict: Verdict): void {
    try {
      if (verdict.type === 'pass') this.send(stream, verdict.flow);
      else if (verdict.type === 'reject') stream.refuse(verdict.response);
      else if (verdict.type === 'fail') throw verdict.error;
    } catch (error) {
      this.fail(stream, error);
    }
  }

  private send(stream: ExtProcStream, granted: ExtProcStream['flow']): void {
    stream.flow = granted;
    const { maxEndpoints = 1, rank = byLoad, facts } = this.hooks;
    const first = granted?.lease.endpoint;
    const isOther = (each: EndpointView): boolean =>
      each !== first && (each.state ?? 'ready') === 'ready' && each.overloadedUntilMs === 0;
    const others = first !== undefined && maxEndpoints < 2 ? [] : rank(this.allowed(stream).filter(isOther), stream);
    const destinations = [...(first === undefined ? [] : [first]), ...others].slice(0, maxEndpoints).map(addressOf);
    if (destinations.length === 0) return void stream.refuse(this.noEndpoints());
    stream.proceedTo(destinations, facts?.(stream));
  }

  private fail(stream: ExtProcStream, error: unknown): void {
    if (error instanceof FlowControlError) {
      const { status, headers, message, code } = error;
      const answer = openaiError(status, message, code);
      stream.refuse({ ...answer, headers: { ...answer.headers, ...headers } });
      return;
    }
    this.hooks.failed?.(error, stream);
    stream.refuse(openaiError(500, 'The endpoint picker failed.', 'ERR_FLOW_INTERNAL'));
  }
}

/** `ip:port`, as proxies name it. */
function addressOf({ id, labels }: EndpointView): string {
  return (labels.address ?? id).replace(/^[a-z][a-z\d+.-]*:\/\//i, '').replace(/\/.*$/, '');
}
