/** What the detectors that hold leases have in common: their options, who waits, and how they are heard and closed. */
import * as s from '../../base/schema/schema.js';
import { type Clock, FlowConfigError, type PoolView, type SaturationDetector } from '../../index.js';
import { leaseKey } from '../store/keys.js';
import type { RedisClient } from '../store/redis-store.js';
import type { Store } from '../store/store.js';
import { CapacityLease, type Grant, type LeaseDemand, type LeaseEvents, type LeaseStatus } from './capacity-lease.js';
import { LeaseClient } from './lease-client.js';
import { leaseOptions, type ParsedLeaseOptions, type SharedConcurrencyOptions } from './lease-options.js';

/** The part of a controller that tells how much waits. */
export interface WaitingFlow {
  stats(): { readonly waiting: number };
}

/** The common part of the detectors that hold leases. */
export interface LeasedDetector extends SaturationDetector {
  /** Its leases now: one, or one for each endpoint. */
  readonly status: readonly LeaseStatus[];
  /** Tells the detector whose requests wait. Without it, a full replica asks for as much as it can get. */
  attach(flow: WaitingFlow): void;
  /** Sets the limit of all replicas together; while they disagree, the smallest is in force. @throws FlowConfigError */
  setLimit(limit: number): void;
  /** Calls `listener` after each event; returns a function that stops this. */
  on<E extends keyof LeaseEvents>(event: E, listener: (payload: LeaseEvents[E]) => unknown): () => void;
  /** Ends the grant: running requests finish, and nothing new goes. The client stays open. Never rejects. */
  close(): Promise<void>;
}

export class HeldLeases {
  readonly unit: 'requests' | 'tokens';
  /** Of all replicas together. */
  readonly limit: number;
  readonly clock: Clock;
  readonly client: LeaseClient;
  /** The same for every detector. */
  readonly methods: Required<Pick<LeasedDetector, 'subscribe' | 'attach' | 'on' | 'close'>>;
  /** True while the controller is asked, which may ask the detector in turn, and let requests go. */
  isAsking = false;
  private flow: WaitingFlow | undefined = undefined;
  private readonly options: ParsedLeaseOptions;

  constructor(client: RedisClient | Store, options: SharedConcurrencyOptions, subject: string) {
    this.unit = unitOf(s.parse(leaseOptions, options, subject), subject);
    const leases = new LeaseClient(client, options, subject);
    const { settings, events } = leases;
    this.limit = settings.maxConcurrency ?? settings.maxTokens ?? 0;
    this.options = settings;
    this.clock = settings.clock;
    this.client = leases;
    const attach = (flow: WaitingFlow): void => {
      this.flow = flow;
    };
    this.methods = {
      on: (event, listener) => events.on(event, listener),
      close: () => leases.close(),
      subscribe: leases.subscribe,
      attach,
    };
  }

  get isAttached(): boolean {
    return this.flow !== undefined;
  }

  /** What a pool or an endpoint has in flight, in the unit of the limit. */
  inFlight({ inFlightRequests, inFlightTokens }: Pick<PoolView, 'inFlightRequests' | 'inFlightTokens'>): number {
    return this.unit === 'requests' ? inFlightRequests : inFlightTokens;
  }

  waiting(): number {
    this.isAsking = true;
    try {
      return this.flow?.stats().waiting ?? 0;
    } finally {
      this.isAsking = false;
    }
  }

  lease(endpoint: string | undefined, limit: number, demand: () => LeaseDemand): CapacityLease {
    const { prefix, pool: name } = this.options;
    const lease = new CapacityLease(leaseKey({ prefix, name }, endpoint), demand, limit, this.options);
    this.client.add(lease);
    return lease;
  }

  statusOf(lease: CapacityLease, endpoint: string | undefined, inFlight: number): LeaseStatus {
    const { unit, options, client } = this;
    const { last, limit, told, safeShare } = lease;
    const { grant: granted = 0, target = 0, replicas = 0, held = 0, isLearning = false }: Partial<Grant> = last ?? {};
    const nowMs = this.clock.now();
    const isExpired = nowMs >= lease.expiresAtMs;
    return {
      pool: options.pool,
      endpoint,
      replica: client.name,
      nameOrigin: client.nameOrigin,
      unit,
      limit,
      cap: lease.cap(nowMs),
      granted,
      target,
      safeShare,
      replicas,
      held,
      inFlight,
      wants: told.wants,
      leaseAgeMs: nowMs - lease.answeredSentAtMs,
      isExpired,
      isLearning,
      overAdmission: isExpired ? Math.max(0, inFlight - safeShare) : 0,
      epochChanges: client.epochChanges,
      store: client.figures,
    };
  }
}

/** A pool is limited in requests or in tokens. @throws FlowConfigError when there is no limit, or both */
function unitOf({ maxConcurrency, maxTokens }: ParsedLeaseOptions, subject: string): 'requests' | 'tokens' {
  if ((maxConcurrency === undefined) !== (maxTokens === undefined))
    return maxTokens === undefined ? 'requests' : 'tokens';
  const got = maxConcurrency === undefined ? 'neither' : 'both';
  throw new FlowConfigError(subject, [{ path: 'maxConcurrency', expected: 'either maxConcurrency or maxTokens', got }]);
}
