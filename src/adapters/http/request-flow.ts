/** The lease and the waiting time that a handler finds on its request. */
import type { Lease } from '../../index.js';
import type { PlacementHints, RequestContext } from './adapter-options.js';
import type { ErrorBody } from './error-body.js';

/** `req.flow`, `request.flow`, `ctx.flow`, `c.var.flow`: the lease of the request, and when to stop. */
export class RequestFlow {
  /** Released when the response ends, unless `releaseOn` is `manual`. */
  readonly lease: Lease;
  /** Time spent waiting for the lease, ms. */
  readonly queuedMs: number;
  /** How many requests more could wait in its band at its dispatch; undefined without the option `bandHeadroom`. */
  readonly bandHeadroom: number | undefined;
  /** @internal Who gave the lease. */
  readonly gate: object;
  /** @internal For the calls that the request causes; undefined unless the option `context` asks. */
  readonly context: RequestContext | undefined;
  /** @internal The option `body`, for whatever else answers the request with an error. */
  readonly errorBody: ErrorBody | undefined;

  constructor(lease: Lease, queuedMs: number, gate: object, room?: number, context?: RequestContext, body?: ErrorBody) {
    this.lease = lease;
    this.queuedMs = queuedMs;
    this.gate = gate;
    this.bandHeadroom = room;
    this.context = context;
    this.errorBody = body;
  }

  /** Aborts when the client leaves, or when the work must stop for another reason: pass it to the upstream call. */
  get signal(): AbortSignal {
    return this.lease.signal;
  }
}

/** A request that `flowControl` may stand before. `flowOf` tells its lease for certain. */
export type WithFlow<T> = T & { flow?: RequestFlow };

/** What the option `context` holds while a request runs. Invariant: it makes no signal that nobody asks for. */
export function leasedContext(lease: Lease, gate: RequestContext['gate'], hints: PlacementHints): RequestContext {
  const { fairnessId, priority } = lease;
  const { affinityKey, sessionId, endpointSubset } = hints;
  return {
    fairnessId,
    priority,
    lease,
    gate,
    affinityKey,
    sessionId,
    endpointSubset,
    get signal() {
      return lease.signal;
    },
  };
}
