/**
 * One run: the unchanged FlowController between simulated clients and simulated servers, on simulated time.
 *
 *     source ──send──► controller ──dispatched──► server ──completed──► release ──► controller …
 *                          └──dropped──► client: gives up, or tries again
 *
 * Invariant: every decision of the controller is carried out before the next event, in the order of the decisions.
 * Servers and the controller are never called from inside one of their own calls. Longer than most files, because these
 * few steps are one loop.
 */
import { type Drop, FlowController, type FlowKey, schemas } from '../../index.js';
import { checkArguments, fields } from '../check-arguments.js';
import { VirtualClock } from '../clock/virtual-clock.js';
import { RandomStreams } from '../random/random-streams.js';
import { type Ending, type RequestDraft, SimRequest } from '../requests/sim-request.js';
import type { ServerHost, SimServer } from '../servers/sim-server.js';
import { scheduleSlowdowns } from '../servers/slowdown.js';
import { type TrafficHost, type TrafficSource, tenantsOf, trafficSource } from '../traffic/traffic-source.js';
import { Clients } from './clients.js';
import { Fleet } from './fleet.js';
import type { SimulationResult } from './result.js';
import { RunMeasures } from './run-measures.js';
import {
  type ResolvedSimulation,
  resolveScenario,
  type SimulatedFlow,
  type SimulationOptions,
} from './simulation-options.js';

type Decision =
  | { readonly type: 'dispatched'; readonly request: SimRequest }
  | { readonly type: 'dropped'; readonly request: SimRequest; readonly drop: Drop }
  | { readonly type: 'evicted'; readonly request: SimRequest };

/** @see simulate */
export class Simulation implements ServerHost, TrafficHost {
  readonly clock: VirtualClock = new VirtualClock();
  readonly flow: FlowController<SimRequest>;
  readonly trafficEndsAtMs: number;
  private readonly options: ResolvedSimulation;
  private readonly streams: RandomStreams;
  private readonly fleet: Fleet;
  private readonly measures: RunMeasures;
  /** By source: its clients, the keys of its requests, and the index of its traffic. */
  private readonly clients: Clients[] = [];
  private readonly keys: Map<string, FlowKey>[] = [];
  private readonly lastKeys: FlowKey[] = [];
  private readonly trafficOf: number[] = [];
  private decisions: Decision[] = [];
  private readonly byLease = new Map<object, SimRequest>();
  private readonly mayEvict: boolean;
  /** Running requests, by arrival; kept where servers may die. */
  private readonly running: Set<SimRequest> | undefined;
  private readonly streamsUsage: boolean;
  private readonly dropped = new Map<string, number>();
  /** The number of reasons to go on: arrivals and think times to come, and requests that have not ended. */
  private open = 0;
  private endedAtMs = 0;
  private isOver = false;
  private requests = 0;
  private attempts = 0;
  private dispatched = 0;
  private completions = 0;
  private evicted = 0;
  private requeued = 0;
  private cancelled = 0;
  private broken = 0;

  /** @throws FlowConfigError that lists everything that is wrong */
  constructor(options: SimulationOptions) {
    schemas.parse(fields, options, 'simulate');
    const { flow: given, ...body } = options;
    this.options = resolveScenario(body);
    const flow = typeof given === 'function' ? given() : given;
    checkArguments('simulate', { flow }, { flow: fields });
    this.trafficEndsAtMs = this.options.durationMs;
    this.streams = new RandomStreams(this.options.seed);
    this.measures = new RunMeasures(this.options);
    this.fleet = new Fleet(this.options, flow, this, this.streams);
    this.mayEvict = flow.eviction !== undefined;
    this.running = this.options.outages.length > 0 ? new Set() : undefined;
    this.streamsUsage = this.options.usageReports === 'stream';
    // A shadow lets everything through: what it would do is what is simulated.
    const mode = flow.mode === 'shadow' ? 'queue' : flow.mode;
    this.flow = new FlowController<SimRequest>({ ...flow, mode, clock: this.clock, pool: this.fleet.pool });
    this.listen();
    this.report(flow);
    this.startSources();
    this.scheduleOutages();
    scheduleSlowdowns(this.options.slowdowns, this.servers, this.clock);
    this.clock.at(this.options.bucketMs, () => this.closeBucket());
  }

  get servers(): readonly SimServer[] {
    return this.fleet.servers;
  }

  /** The simulated part of the run, 0…1. It is a guess, because it is not known how long the rest takes. */
  get progress(): number {
    return this.isOver ? 1 : Math.min(1, this.clock.now() / this.options.durationMs);
  }

  /** Runs the next event and what follows from it. False when the run is over. */
  step(): boolean {
    const { durationMs, drainMs } = this.options;
    if (this.isOver) return false;
    if (this.open > 0 && this.clock.step(durationMs + drainMs)) {
      this.followUp();
      return true;
    }
    this.isOver = true;
    this.endedAtMs =
      this.open > 0 ? this.clock.now() : Math.max(this.endedAtMs, Math.min(this.clock.now(), durationMs));
    return false;
  }

  /** Runs until that time, or until the run is over. */
  runUntil(untilMs: number): void {
    while (this.clock.now() < untilMs && this.step());
  }

  /** The result so far; of the whole run once `step` has returned false. */
  result(): SimulationResult {
    const { name, seed, durationMs, warmUpMs } = this.options;
    const stats = this.flow.stats();
    const endedAtMs = this.isOver ? this.endedAtMs : this.clock.now();
    return {
      name,
      seed,
      durationMs,
      warmUpMs,
      endedAtMs,
      isCutShort: this.open > 0,
      counts: {
        requests: this.requests,
        attempts: this.attempts,
        dispatched: this.dispatched,
        completed: this.completions,
        evicted: this.evicted,
        requeued: this.requeued,
        cancelled: this.cancelled,
        broken: this.broken,
        dropped: Object.fromEntries([...this.dropped].sort(([a], [b]) => (a < b ? -1 : 1))),
        inFlight: stats.inFlight,
        waiting: stats.waiting,
      },
      ...this.measures.figures(endedAtMs),
      servers: this.servers.map((server) => ({ id: server.id, ...server.use(endedAtMs) })),
      events: this.clock.events,
      pluginErrors: stats.pluginErrors,
    };
  }

  // Clients.

  send(
    source: TrafficSource,
    draft: RequestDraft,
    tenant: string = source.tenant,
    priority: number = source.spec.priority ?? 0,
  ): SimRequest {
    const { spec, index } = source;
    const { tokens = spec.seats === undefined ? 'prompt' : 'seats' } = spec;
    const booked =
      tokens === 'prompt'
        ? draft.promptTokens
        : tokens === 'seats'
          ? draft.seats
          : draft.promptTokens + draft.outputTokens;
    const nowMs = this.clock.now();
    const request = new SimRequest(
      index,
      this.trafficOf[index] as number,
      this.keyOf(index, tenant, priority),
      draft,
      booked,
      tokens === 'prompt',
      source,
      nowMs,
    );
    const clients = this.clients[index] as Clients;
    this.requests++;
    this.open++;
    this.awaitPatience(request, clients);
    clients.requested();
    this.attempt(request);
    return request;
  }

  sourceOpened(): void {
    this.open++;
  }

  sourceClosed(): void {
    this.open--;
  }

  private attempt(request: SimRequest): void {
    const nowMs = this.clock.now();
    request.attempts++;
    request.enqueuedAtMs = nowMs;
    this.attempts++;
    this.measures.inSystem.add(1, nowMs);
    this.measures.sent(request);
    // The outcome comes by the events, in the same turn.
    void this.flow.enqueue(request, request.key);
  }

  private awaitPatience(request: SimRequest, clients: Clients): void {
    if (clients.mayLeave) {
      request.controller = new AbortController();
      request.signal = request.controller.signal;
    }
    const { firstTokenMs, lastTokenMs } = clients.drawPatience();
    const leave = (): void => {
      if (!request.hasEnded) this.leave(request, clients.tellsGateway);
    };
    if (firstTokenMs < Number.POSITIVE_INFINITY) {
      this.clock.after(firstTokenMs, () => {
        if (Number.isNaN(request.firstTokenAtMs)) leave();
      });
    }
    if (lastTokenMs < Number.POSITIVE_INFINITY) this.clock.after(lastTokenMs, leave);
  }

  /** The client has gone. If nobody notices, the work goes on and counts for nothing. */
  private leave(request: SimRequest, tellsGateway: boolean): void {
    if (!tellsGateway) {
      this.end(request, 'cancelled');
      return;
    }
    const { lease } = request;
    // The controller is told of it, unless the request is between two attempts.
    request.controller?.abort();
    if (lease !== undefined) {
      this.server(request).abort(request);
      this.cancelled++;
      this.release(request);
    }
    this.end(request, 'cancelled');
  }

  private dropNow(request: SimRequest, drop: Drop): void {
    const nowMs = this.clock.now();
    this.measures.inSystem.add(-1, nowMs);
    this.dropped.set(drop.reason, (this.dropped.get(drop.reason) ?? 0) + 1);
    if (request.hasEnded) return;
    request.dropReason = drop.reason;
    const delayMs = this.clients[request.source]?.retryDelayMs(drop, request.attempts, nowMs);
    if (delayMs === undefined) {
      this.end(request, drop.reason === 'evicted' ? 'evicted' : 'dropped');
      return;
    }
    this.clock.after(delayMs, () => {
      if (!request.hasEnded) this.attempt(request);
    });
  }

  private end(request: SimRequest, ending: Ending): void {
    if (request.hasEnded) return;
    request.hasEnded = true;
    this.open--;
    this.endedAtMs = this.clock.now();
    this.measures.ended(request, ending, this.clock.now());
    request.owner.ended(request, ending);
  }

  // The controller's decisions.

  private listen(): void {
    this.flow.on('dispatched', ({ item, lease }) => {
      const { request } = item;
      request.lease = lease;
      this.fleet.unaccepted++;
      this.decisions.push({ type: 'dispatched', request });
    });
    this.flow.on('dropped', ({ request, outcome }) => {
      this.decisions.push({ type: 'dropped', request, drop: outcome });
    });
    if (!this.mayEvict) return;
    this.flow.on('evicted', ({ lease }) => {
      const request = this.byLease.get(lease);
      if (request !== undefined) this.decisions.push({ type: 'evicted', request });
    });
  }

  private followUp(): void {
    for (let index = 0; index < this.decisions.length; index++) {
      const decision = this.decisions[index] as Decision;
      if (decision.type === 'dispatched') this.run(decision.request);
      else if (decision.type === 'dropped') this.dropNow(decision.request, decision.drop);
      else this.evict(decision.request);
    }
    if (this.decisions.length > 0) this.decisions = [];
  }

  private run(request: SimRequest): void {
    const nowMs = this.clock.now();
    this.dispatched++;
    this.fleet.unaccepted--;
    request.dispatchedAtMs = nowMs;
    if (this.mayEvict) this.byLease.set(request.lease as object, request);
    this.running?.add(request);
    this.server(request).accept(request);
    this.fleet.roomMade();
  }

  private evict(request: SimRequest): void {
    const { lease } = request;
    if (lease === undefined || lease.isReleased) return;
    this.server(request).abort(request);
    this.evicted++;
    const mayRequeue = this.options.onEvicted === 'requeue' && request.tokensOut === 0;
    if (mayRequeue) {
      this.requeued++;
      this.stopped(request);
      this.running?.delete(request);
      this.byLease.delete(lease);
      request.lease = undefined;
      void lease.requeue();
      return;
    }
    this.release(request);
    this.end(request, 'evicted');
  }

  // Servers.

  started(request: SimRequest): void {
    request.startedAtMs = this.clock.now();
    this.measures.seatsTaken(request, 1, request.startedAtMs);
  }

  preempted(request: SimRequest): void {
    this.stopped(request);
  }

  token(request: SimRequest): void {
    const nowMs = this.clock.now();
    const isFirst = Number.isNaN(request.firstTokenAtMs);
    if (isFirst) {
      request.firstTokenAtMs = nowMs;
      this.fleet.observe(nowMs - request.dispatchedAtMs, request.promptTokens, nowMs);
    }
    const tokens = request.tokensOut - request.tokensTold;
    request.tokensTold = request.tokensOut;
    this.measures.served(request, (isFirst ? request.promptTokens : 0) + 2 * tokens, nowMs);
    if (this.streamsUsage && request.lease !== undefined) {
      request.lease.report({ promptTokens: request.promptTokens, completionTokens: request.tokensOut });
    }
  }

  completed(request: SimRequest): void {
    this.completions++;
    this.release(request);
    this.end(request, 'completed');
  }

  roomMade(): void {
    this.fleet.roomMade();
  }

  private server(request: SimRequest): SimServer {
    return this.fleet.server(request.lease?.endpoint?.id as string);
  }

  /** Gives the seat back, with what was consumed. */
  private release(request: SimRequest): void {
    const lease = request.lease;
    if (lease === undefined) return;
    this.stopped(request);
    this.measures.inSystem.add(-1, this.clock.now());
    request.lease = undefined;
    this.running?.delete(request);
    if (this.mayEvict) this.byLease.delete(lease);
    if (request.promptTokens > 0)
      lease.report({ promptTokens: request.promptTokens, completionTokens: request.tokensOut });
    lease.release();
  }

  /** No server works on it any more. */
  private stopped(request: SimRequest): void {
    if (Number.isNaN(request.startedAtMs)) return;
    request.startedAtMs = Number.NaN;
    this.measures.seatsTaken(request, -1, this.clock.now());
  }

  // The machinery of the run.

  private startSources(): void {
    const names = new Map<string, number>();
    for (const [traffic, spec] of this.options.traffic.entries()) {
      for (const tenant of tenantsOf(spec)) {
        const plain = `${tenant}/${spec.class ?? spec.priority ?? 0}`;
        const twins = names.get(plain) ?? 0;
        names.set(plain, twins + 1);
        const name = twins === 0 ? plain : `${plain}#${twins}`;
        const index = this.clients.length;
        this.trafficOf.push(traffic);
        this.clients.push(new Clients(spec.client ?? {}, this.streams, name));
        this.keys.push(new Map());
        trafficSource(spec, index, tenant, name, this, this.streams).start();
      }
    }
  }

  /** One object for all requests of a flow, which measures find their groups by. */
  private keyOf(source: number, fairnessId: string, priority: number): FlowKey {
    const last = this.lastKeys[source];
    if (last !== undefined && last.fairnessId === fairnessId && last.priority === priority) return last;
    const keys = this.keys[source] as Map<string, FlowKey>;
    const name = `${priority}/${fairnessId}`;
    const key = keys.get(name) ?? { fairnessId, priority };
    keys.set(name, key);
    this.lastKeys[source] = key;
    return key;
  }

  private scheduleOutages(): void {
    for (const { server, at, for: lengthMs = Number.POSITIVE_INFINITY } of this.options.outages) {
      this.clock.at(at, () => this.serverDied(server));
      if (lengthMs < Number.POSITIVE_INFINITY)
        this.clock.at(at + lengthMs, () => this.fleet.pool.update(server, { state: 'ready' }));
    }
  }

  private serverDied(id: string): void {
    this.fleet.pool.update(id, { state: 'ill' });
    for (const request of [...(this.running ?? [])]) {
      if (request.lease?.endpoint?.id !== id) continue;
      this.server(request).abort(request);
      this.broken++;
      this.release(request);
      if (request.hasEnded) continue;
      if (request.tokensOut === 0) this.attempt(request);
      else this.end(request, 'failed');
    }
  }

  private report(flow: SimulatedFlow): void {
    const reporting = Fleet.reporting(this.options, flow);
    if (reporting === undefined) return;
    const { intervalMs, delayMs } = reporting;
    const scrape = (): void => {
      const deliver = this.fleet.report(this.clock.now());
      if (delayMs === 0) deliver();
      else this.clock.after(delayMs, deliver);
      this.clock.after(intervalMs, scrape);
    };
    scrape();
  }

  private closeBucket(): void {
    const { bands, stats } = this.flow.figures();
    this.measures.closeBucket(this.clock.now(), {
      waitingByBand: bands.map(({ priority, waiting }) => [priority, waiting] as const),
      inFlight: stats.inFlight,
      saturation: stats.saturation,
    });
    if (!this.measures.series.isFull) this.clock.after(this.options.bucketMs, () => this.closeBucket());
  }
}
