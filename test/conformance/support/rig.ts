/** A real controller on a manual clock, whose gate the harness opens request by request. */
import {
  type Drop,
  EndpointPool,
  FlowController,
  type FlowControllerOptions,
  type FlowRequest,
  type Lease,
  type Outcome,
  type OutcomeType,
  type PoolView,
  type SaturationDetector,
} from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';

/** Instant 0 of the vectors: far enough from the clock's own 0 for what lies in their past. */
const originMs = 1_000_000_000_000;

/** Full, except for the requests that it was told to let pass. */
export class ManualGate implements SaturationDetector {
  readonly type = 'manual-gate';
  /** Below it while open, reported as it is. */
  saturationWhenOpen = 0;
  /** At the ceiling or above while closed. */
  saturationWhenClosed = 1;
  private permits = 0;
  private announce: () => void = () => {};

  saturation(_pool: PoolView): number {
    return this.permits > 0 ? this.saturationWhenOpen : this.saturationWhenClosed;
  }

  dispatched(): void {
    this.permits--;
  }

  subscribe(listener: () => void): () => void {
    this.announce = listener;
    return () => {};
  }

  open(requests = Number.POSITIVE_INFINITY): void {
    this.permits = requests;
    this.announce();
  }

  close(): void {
    this.permits = 0;
  }
}

/** One request and what became of it. */
export class Ticket implements FlowRequest {
  /** Undefined until the request is queued or settled. */
  state: 'queued' | OutcomeType | undefined = undefined;
  drop: Drop | undefined = undefined;
  lease: Lease | undefined = undefined;
  /** How often the controller announced an end; must never exceed 1. */
  ends = 0;
  readonly id: string;
  readonly abort: AbortController;
  readonly signal: AbortSignal;
  /** May change later: what counts is what it was when the request came. */
  byteSize: number;
  readonly ttlMs: number | undefined;
  readonly maxWaitMs: number | undefined;
  readonly tokens: number | undefined;
  readonly sloTtftMs: number | undefined;
  readonly receivedAtMs: number | undefined;

  constructor(id: string, options: TicketOptions) {
    const { byteSize = 0, ttlMs, maxWaitMs, tokens, sloTtftMs, receivedAtMs, abort = new AbortController() } = options;
    this.id = id;
    this.abort = abort;
    this.signal = abort.signal;
    this.byteSize = byteSize;
    this.ttlMs = ttlMs;
    this.maxWaitMs = maxWaitMs;
    this.tokens = tokens;
    this.sloTtftMs = sloTtftMs;
    this.receivedAtMs = receivedAtMs;
  }
}

export interface TicketOptions extends Omit<Partial<FlowRequest>, 'signal' | 'byteSize'> {
  byteSize?: number | undefined;
  fairnessId?: string | undefined;
  priority?: number | undefined;
  abort?: AbortController | undefined;
}

export class Rig {
  readonly gate: ManualGate = new ManualGate();
  readonly pool: EndpointPool = new EndpointPool();
  readonly clock: ManualClock;
  readonly flow: FlowController<Ticket>;
  /** In order of dispatch. */
  readonly dispatched: Ticket[] = [];
  /** In order of their end. */
  readonly dropped: Ticket[] = [];
  readonly outcomes: Promise<Outcome>[] = [];
  private made = 0;

  /** `endpoints`: how many model servers there are at the start; `startMs`: on the vectors' clock. */
  constructor(options: Partial<FlowControllerOptions<Ticket>> = {}, { endpoints = 1, startMs = 0 } = {}) {
    this.clock = new ManualClock(originMs + startMs);
    this.setEndpoints(endpoints);
    const unlimited = { maxRequests: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };
    const { clock, gate: saturationDetector, pool } = this;
    this.flow = new FlowController<Ticket>({ limits: unlimited, saturationDetector, clock, pool, ...options });
    this.flow.on('queued', ({ item }) => {
      item.request.state = 'queued';
    });
    this.flow.on('dispatched', ({ item, lease }) => {
      this.end(item.request, 'Dispatched', this.dispatched);
      item.request.lease = lease;
    });
    this.flow.on('dropped', ({ request, outcome }) => {
      this.end(request, outcome.type, this.dropped);
      request.drop = outcome;
    });
  }

  /** Now, on the vectors' clock. */
  get nowMs(): number {
    return this.clock.now() - originMs;
  }

  /** Moves to an instant of the vectors' clock; never back. */
  advanceTo(ms: number): void {
    this.clock.advance(Math.max(ms - this.nowMs, 0));
  }

  enqueue(
    { fairnessId = 'flow', priority, ...request }: TicketOptions = {},
    id: string = `request-${this.made++}`,
  ): Ticket {
    const ticket = new Ticket(id, request);
    const outcome = this.flow.enqueue(ticket, { fairnessId, priority });
    this.outcomes.push(outcome);
    return ticket;
  }

  enqueueMany(count: number, options: TicketOptions = {}): Ticket[] {
    return Array.from({ length: count }, () => this.enqueue(options));
  }

  setEndpoints(count: number): void {
    for (const { id } of this.pool.endpoints.slice(count)) this.pool.remove(id);
    for (let index = this.pool.endpoints.length; index < count; index++) this.pool.add(`endpoint-${index}`);
  }

  private end(ticket: Ticket, state: OutcomeType, list: Ticket[]): void {
    ticket.state = state;
    ticket.ends++;
    list.push(ticket);
  }
}
