/**
 * Runs, step by step or to the end: the FlowController between simulated clients and servers, on simulated time.
 *
 *     source ──send──► controller ──dispatched──► server ──completed──► release ──► controller …
 *                          └──dropped──► client: gives up, or tries again
 *
 * Invariant: every decision of the controller is carried out before the next event, in the order of the decisions.
 * Servers and the controller are never called from inside one of their own calls. Longer than most files, because these
 * few steps are one loop.
 */
import * as s from '../../base/schema/schema.js';
import { type Drop, FlowController } from '../../index.js';
import { VirtualClock } from '../clock/virtual-clock.js';
import { type Random, type RandomStreams, randomStreams } from '../random/distributions.js';
import { type Ending, type OnEnd, type RequestDraft, SimRequest } from '../requests/sim-request.js';
import { checkArguments, fields, hooks as ofHooks } from '../schemas.js';
import { slowDown } from '../servers/server-faults.js';
import type { ServerHost, SimServer } from '../servers/sim-server.js';
import { startTraffic, type TrafficHost, tenantsOf } from '../traffic/traffic-source.js';
import { Clients } from './clients.js';
import { Fleet } from './fleet.js';
import type { SimulationResult } from './result.js';
import { RunMeasures } from './run-measures.js';
import { type ResolvedSimulation, resolveScenario, type SimulationOptions } from './simulation-options.js';

export class Simulation implements ServerHost, TrafficHost {
  readonly clock: VirtualClock = new VirtualClock();
  readonly flow: FlowController<SimRequest>;
  readonly trafficEndsAtMs: number;
  private readonly options: ResolvedSimulation;
  private readonly fleet: Fleet;
  private readonly measures: RunMeasures;
  /** By source. */
  private readonly clients: Clients[] = [];
  /** What the controller decided during the event, to be carried out after it. */
  private decisions: (() => void)[] = [];
  /** Running requests by their leases, in the order of dispatch; kept where they may be evicted, or servers may die. */
  private readonly running: Map<object, SimRequest> | undefined;
  private readonly dropped = new Map<string, number>();
  /** The number of reasons to go on: arrivals and think times to come, and requests that have not ended. */
  private open = 0;
  private endedAtMs = 0;
  private isOver = false;
  private readonly counts = {
    requests: 0,
    attempts: 0,
    dispatched: 0,
    completed: 0,
    evicted: 0,
    requeued: 0,
    cancelled: 0,
    broken: 0,
  };

  /** @throws FlowConfigError that lists everything that is wrong */
  constructor(options: SimulationOptions) {
    s.parse(fields, options, 'simulate');
    const { flow: given, ...body } = options;
    this.options = resolveScenario(body);
    const flow = typeof given === 'function' ? given() : given;
    checkArguments('simulate', { flow }, { flow: fields });
    this.trafficEndsAtMs = this.options.durationMs;
    const streams = randomStreams(this.options.seed);
    this.measures = new RunMeasures(this.options);
    this.fleet = new Fleet(this.options, flow, this, streams);
    this.running = flow.eviction !== undefined || this.options.outages.length > 0 ? new Map() : undefined;
    // A shadow lets everything through: what it would do is what is simulated.
    const mode = typeof flow.mode === 'object' ? 'queue' : flow.mode;
    this.flow = new FlowController<SimRequest>({ ...flow, mode, clock: this.clock, pool: this.fleet.pool });
    this.flow.on('dispatched', ({ item, lease }) => {
      const { request } = item;
      request.lease = lease;
      this.fleet.unaccepted++;
      this.decisions.push(() => this.run(request));
    });
    this.flow.on('dropped', ({ request, outcome }) => this.decisions.push(() => this.dropNow(request, outcome)));
    this.flow.on('evicted', ({ lease }) => {
      const request = this.running?.get(lease);
      if (request !== undefined) this.decisions.push(() => this.evict(request));
    });
    this.fleet.startReports(this.options.reports, flow, this.clock);
    this.startSources(streams);
    for (const { server, at, for: lengthMs = Infinity } of this.options.outages) {
      this.clock.at(at, () => this.serverDied(server));
      if (lengthMs < Infinity) this.clock.at(at + lengthMs, () => this.fleet.pool.update(server, { state: 'ready' }));
    }
    slowDown(this.options.slowdowns, this.servers, this.clock);
    this.measures.watch(this.flow, this.clock);
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
      // One decision may bring others.
      for (const decision of this.decisions) decision();
      if (this.decisions.length > 0) this.decisions = [];
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
        ...this.counts,
        dropped: Object.fromEntries([...this.dropped].sort(([a], [b]) => (a < b ? -1 : 1))),
        inFlight: stats.inFlight,
        waiting: stats.waiting,
      },
      ...this.measures.figures(endedAtMs),
      servers: this.fleet.figures(endedAtMs),
      events: this.clock.events,
      pluginErrors: stats.pluginErrors,
    };
  }

  // Clients.

  send(index: number, draft: RequestDraft, tenant: string, priority: number, onEnd: OnEnd): void {
    const clients = this.clients[index] as Clients;
    const { spec, traffic } = clients;
    const { tokens = spec.seats === undefined ? 'prompt' : 'seats' } = spec;
    const sizes = { prompt: draft.promptTokens, seats: draft.seats, total: draft.promptTokens + draft.outputTokens };
    const [size, key, nowMs] = [sizes[tokens], clients.keyOf(tenant, priority), this.clock.now()];
    const request = new SimRequest(index, traffic, key, draft, size, tokens === 'prompt', onEnd, nowMs);
    this.counts.requests++;
    this.open++;
    this.awaitPatience(request, clients);
    clients.requested();
    this.attempt(request);
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
    this.counts.attempts++;
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
    const leave = (): void => {
      if (!request.hasEnded) this.leave(request, clients.tellsGateway);
    };
    const unlessBegun = (): void => {
      if (Number.isNaN(request.firstTokenAtMs)) leave();
    };
    if (clients.patience !== undefined) this.clock.after(clients.patience(), unlessBegun);
    if (clients.deadline !== undefined) this.clock.after(clients.deadline(), leave);
  }

  /** The client has gone. If nobody notices, the work goes on and counts for nothing. */
  private leave(request: SimRequest, tellsGateway: boolean): void {
    if (!tellsGateway) return void this.end(request, 'cancelled');
    const { lease } = request;
    // The controller is told of it, unless the request is between two attempts.
    request.controller?.abort();
    if (lease !== undefined) {
      this.fleet.serverOf(request).abort(request);
      this.counts.cancelled++;
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
    if (delayMs === undefined) return void this.end(request, drop.reason === 'evicted' ? 'evicted' : 'dropped');
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
    request.onEnd(request, ending);
  }

  // The controller's decisions.

  private run(request: SimRequest): void {
    const nowMs = this.clock.now();
    this.counts.dispatched++;
    this.fleet.unaccepted--;
    request.dispatchedAtMs = nowMs;
    this.running?.set(request.lease as object, request);
    this.fleet.serverOf(request).accept(request);
    this.fleet.roomMade();
  }

  private evict(request: SimRequest): void {
    const { lease } = request;
    if (lease === undefined || lease.isReleased) return;
    this.fleet.serverOf(request).abort(request);
    this.counts.evicted++;
    if (this.options.onEvicted === 'requeue' && request.tokensOut === 0) {
      this.counts.requeued++;
      this.preempted(request);
      this.running?.delete(lease);
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

  /** No server works on it any more. */
  preempted(request: SimRequest): void {
    if (Number.isNaN(request.startedAtMs)) return;
    request.startedAtMs = NaN;
    this.measures.seatsTaken(request, -1, this.clock.now());
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
    if (this.options.usageReports === 'stream' && request.lease !== undefined)
      request.lease.report({ promptTokens: request.promptTokens, completionTokens: request.tokensOut });
  }

  completed(request: SimRequest): void {
    this.counts.completed++;
    this.release(request);
    this.end(request, 'completed');
  }

  roomMade(): void {
    this.fleet.roomMade();
  }

  /** Gives the seat back, with what was consumed. */
  private release(request: SimRequest): void {
    const { lease } = request;
    if (lease === undefined) return;
    this.preempted(request);
    this.measures.inSystem.add(-1, this.clock.now());
    this.fleet.charge(request);
    request.lease = undefined;
    this.running?.delete(lease);
    if (request.promptTokens > 0)
      lease.report({ promptTokens: request.promptTokens, completionTokens: request.tokensOut });
    lease.release();
  }

  // The machinery of the run.

  private startSources(streams: RandomStreams): void {
    const names = new Map<string, number>();
    for (const [traffic, spec] of this.options.traffic.entries()) {
      for (const tenant of tenantsOf(spec)) {
        const plain = `${tenant}/${spec.class ?? spec.priority ?? 0}`;
        const twins = names.get(plain) ?? 0;
        names.set(plain, twins + 1);
        const name = twins === 0 ? plain : `${plain}#${twins}`;
        const random = (part: string): Random => streams(`${name}/${part}`);
        const index = this.clients.push(new Clients(spec, traffic, random)) - 1;
        startTraffic(spec, index, tenant, this, random);
      }
    }
  }

  private serverDied(id: string): void {
    this.fleet.pool.update(id, { state: 'ill' });
    for (const request of [...(this.running?.values() ?? [])]) {
      if (request.lease?.endpoint?.id !== id) continue;
      this.fleet.serverOf(request).abort(request);
      this.counts.broken++;
      this.release(request);
      if (request.hasEnded) continue;
      if (request.tokensOut === 0) this.attempt(request);
      else this.end(request, 'failed');
    }
  }
}

export interface SimulateHooks {
  /** Called now and then with the part of the traffic's time that has been simulated, 0…1. */
  readonly onProgress?: ((done: number) => void) | undefined;
}

/** Events between two calls of `onProgress`. */
const eventsPerReport = 50_000;

/**
 * Finds what the controller would do with this traffic and these servers. In one go, without a timer: a million
 * requests take seconds. @throws FlowConfigError that lists everything that is wrong
 * @example
 * const result = simulate({
 *   duration: '10m',
 *   servers: [{ model: 'slots', slots: 8, serviceTime: { type: 'exponential', mean: 100 } }],
 *   traffic: [{ tenant: 'acme', arrivals: { type: 'poisson', rate: 70 } }],
 *   flow: () => ({ saturationDetector: concurrencyDetector({ maxConcurrency: 8 }) }),
 * });
 * console.log(result.all.queued.p99Ms);
 */
export function simulate(options: SimulationOptions, hooks: SimulateHooks = {}): SimulationResult {
  s.parse(ofHooks, hooks, 'simulate');
  const { onProgress } = hooks;
  const simulation = new Simulation(options);
  let events = 0;
  while (simulation.step()) {
    if (onProgress !== undefined && ++events % eventsPerReport === 0) onProgress(simulation.progress);
  }
  return simulation.result();
}

/** The seed of the scenario and those that follow it. @throws FlowConfigError */
export function simulateSeeds(
  options: SimulationOptions,
  seeds: number,
  hooks: SimulateHooks = {},
): SimulationResult[] {
  const shape = { options: fields, seeds: s.positiveInteger(), hooks: ofHooks };
  checkArguments('simulateSeeds', { options, seeds, hooks }, shape);
  const first = options.seed ?? 1;
  return Array.from({ length: seeds }, (_, index) =>
    simulate(
      { ...options, seed: first + index },
      { onProgress: hooks.onProgress && ((done) => hooks.onProgress?.((index + done) / seeds)) },
    ),
  );
}
