/**
 * One request's way through the gate, as every Node framework walks it. Invariant: a lease that was given out is released exactly
 * once, at the end of the response or, if the response ended first, when the lease arrives.
 *
 *   strip headers → classify → onResponseEnd ─┬→ tryEnqueue ──→ verdict
 *                                  │ aborts   └→ enqueue(signal) → verdict
 *                                  └→ lease.abort, lease.release
 */
import {
  type AdapterGate,
  type Classification,
  checkAdapterOptions,
  type FlowControlOptions,
  type HttpFlowRequest,
} from '../http/adapter-options.js';
import { flowKeyFromHeaders } from '../http/flow-key-from-headers.js';
import { type HttpErrorResponse, toHttpResponse } from '../http/to-http-response.js';
import { type Drop, FlowControlError, type Lease, type Outcome } from '../index.js';
import { endWhenEvicted } from './end-evicted.js';
import type { NodeRequest, NodeResponse } from './node-request.js';
import { onResponseEnd } from './on-response-end.js';
import { bodyBytes, continueUpload, mustCloseToRefuse, readAhead } from './request-body.js';
import { RequestFlow, type WithFlow } from './request-flow.js';
import { stripRequestHeaders } from './strip-request-headers.js';

/**
 * What the framework is to do.
 * - `pass`: run the handler; without `flow` the request needs no lease.
 * - `refuse`: send the response.
 * - `fail`: hand the error to the host.
 * - `gone`: nothing; the response is over.
 */
export type Verdict =
  | { readonly type: 'pass'; readonly flow: RequestFlow | undefined }
  | { readonly type: 'refuse'; readonly response: HttpErrorResponse }
  | { readonly type: 'fail'; readonly error: unknown }
  | { readonly type: 'gone' };

export class Gatekeeper<Subject extends object> {
  private readonly gate: AdapterGate<HttpFlowRequest<NodeRequest>>;
  private readonly options: FlowControlOptions<Subject>;

  constructor(gate: AdapterGate<HttpFlowRequest<NodeRequest>>, options: FlowControlOptions<Subject>) {
    checkAdapterOptions(options);
    this.gate = gate;
    this.options = options;
  }

  /** Calls `decide` once: in the same turn unless the request has to wait. */
  enter(subject: Subject, req: NodeRequest, res: NodeResponse, decide: (verdict: Verdict) => void): void {
    let classification: Classification | undefined;
    let byteSize: number;
    try {
      classification = this.classify(subject, req);
      byteSize = this.options.byteSize?.(subject) ?? bodyBytes(req, this.options.unknownBodyBytes ?? 65_536);
    } catch (error) {
      decide({ type: 'fail', error });
      return;
    }
    // A request that has this controller's lease already would wait for itself.
    if (classification === undefined || (subject as WithFlow<Subject>).flow?.gate === this.gate) {
      continueUpload(req, res);
      decide({ type: 'pass', flow: undefined });
      return;
    }
    const { fairnessId, priority, tokens, ttlMs, sloTtftMs } = classification;
    const request: HttpFlowRequest<NodeRequest> = { byteSize, signal: undefined, tokens, ttlMs, sloTtftMs, req };
    this.ask(request, { fairnessId, priority }, res, decide);
  }

  /** Undefined for a request that needs no lease. The headers are gone afterwards. */
  private classify(subject: Subject, req: NodeRequest): Classification | undefined {
    const { skip, classify, trust = false, objectives, defaultFairnessId, sessionHeaders } = this.options;
    try {
      if (skip?.(subject) === true) return undefined;
      if (classify !== undefined) return classify(subject);
      const isTrusted = typeof trust === 'function' ? trust(subject) : trust;
      return flowKeyFromHeaders(req.headers, { objectives, trust: isTrusted, defaultFairnessId, sessionHeaders });
    } finally {
      stripRequestHeaders(req);
    }
  }

  private ask(
    request: HttpFlowRequest<NodeRequest>,
    key: { fairnessId: string; priority: number | undefined },
    res: NodeResponse,
    decide: (verdict: Verdict) => void,
  ): void {
    const { gate } = this;
    let isOver = false;
    let lease: Lease | undefined;
    let waiting: AbortController | undefined;

    onResponseEnd(request.req, res, (isSent) => {
      isOver = true;
      waiting?.abort('the client left');
      if (lease === undefined) return;
      if (!isSent) lease.abort(clientLeft());
      if (this.options.releaseOn !== 'manual') lease.release();
    });

    const settle = (outcome: Outcome): void => {
      waiting = undefined;
      // Something else may have answered meanwhile, a timeout for instance.
      if (isOver || res.writableEnded) {
        if (outcome.type === 'Dispatched') outcome.lease.release();
        decide(gone);
      } else if (outcome.type === 'Dispatched') {
        lease = outcome.lease;
        endWhenEvicted(outcome.lease, outcome.queuedMs, request.req, res, this.options);
        continueUpload(request.req, res);
        decide({ type: 'pass', flow: new RequestFlow(outcome.lease, outcome.queuedMs, gate) });
      } else {
        decide(this.refuse(outcome, request.req, res));
      }
    };
    const fail = (error: unknown): void => decide({ type: 'fail', error });

    if (isOver) {
      decide(gone);
      return;
    }
    let outcome: Outcome | undefined;
    try {
      outcome = gate.tryEnqueue?.(request, key);
    } catch (error) {
      fail(error);
      return;
    }
    if (outcome !== undefined) {
      settle(outcome);
      return;
    }
    readAhead(request.req, request.byteSize);
    waiting = new AbortController();
    gate.enqueue({ ...request, signal: waiting.signal }, key).then(settle, fail);
  }

  private refuse(drop: Drop, req: NodeRequest, res: NodeResponse): Verdict {
    const { status, headers, body } = toHttpResponse(drop, this.options);
    // A gateway that shuts down has no use for idle connections either.
    const mustClose = drop.reason === 'shutting-down' ? req.httpVersionMajor === 1 : mustCloseToRefuse(req);
    const response = { status, headers: mustClose ? { ...headers, connection: 'close' } : headers, body };
    // Of a response that has begun, only the host knows how to end it.
    if (this.options.onDrop === 'throw' || res.headersSent) return { type: 'fail', error: failure(drop, response) };
    return { type: 'refuse', response };
  }
}

const gone: Verdict = { type: 'gone' };

/** An AbortError, as upstream calls expect. Handlers that let it through should not be logged as failed, and Koa heeds `expose`. */
function clientLeft(): DOMException {
  return Object.assign(new DOMException('The client left', 'AbortError'), { status: 499, expose: true });
}

/** The body is the host's to write, and so is its type. */
function failure(drop: Drop, { status, headers }: HttpErrorResponse): FlowControlError {
  const { 'content-type': _, ...others } = headers;
  return new FlowControlError(drop, { status, headers: others });
}
