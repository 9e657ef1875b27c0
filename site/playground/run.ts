/**
 * One run of the settings: the replicas of a gateway on simulated servers, up to any instant that is asked for. The same
 * settings and the same instant are always the same picture, so that a slider that moves is answered by what would be
 * now, had it stood there from the start.
 */
import type { SimRequest } from 'headgate/simulator';
import { serverNames } from './code.ts';
import { active } from './faults.ts';
import { FirstTokens } from './first-tokens.ts';
import { type Counts, Invariants } from './invariants.ts';
import { Replica, seatsAt } from './replica.ts';
import { leaseS, lengthS, ofReplica, quotasOf, type Settings } from './settings.ts';
import { type SharedStore, sharedStore } from './shared-state.ts';

/** Simulated between two looks at the clock, ms. */
const sliceMs = 20;
/** Simulated between two looks at the invariants, ms. */
const lookEveryMs = 1000;
/** An answer of the store passes through fewer promises. */
const mostPromises = 24;

export interface Server {
  readonly id: string;
  isDown: boolean;
  isSlow: boolean;
  /** What runs in each seat; a request keeps its seat. */
  readonly seats: (SimRequest | undefined)[];
}

/** One moment of the controller. */
export interface Look {
  readonly waiting: number;
  readonly inFlight: number;
  /** How full the pool is, 1 is full. */
  readonly saturation: number;
  /** Highest first; `ceiling` is the saturation up to which a band may dispatch. */
  readonly bands: readonly { readonly priority: number; readonly waiting: number; readonly ceiling: number }[];
  /** Waiting requests of each tenant. */
  readonly flows: readonly number[];
  /** Quotas of the provider; `taken` is the part of what may go at once that is not free again, 1 is all of it. */
  readonly quotas: readonly { readonly unit: string; readonly taken: number }[];
  /** The part of its budget that each tenant has left, 0…1; empty without budgets. */
  readonly budgets: readonly number[];
  /** Seats that each replica may take by what it was granted; empty where one replica is alone. */
  readonly shares: readonly number[];
  /** KV cache or prefill that requests hold, the fullest of all servers, 0…1; undefined where it is not counted. */
  readonly ledger: number | undefined;
}

export class Run {
  readonly settings: Settings;
  /** Requests dropped so far, by tenant. */
  readonly dropped: number[];
  readonly servers: readonly Server[];
  readonly firstTokens: FirstTokens;
  readonly invariants: Invariants;
  private readonly counts: Counts = { dispatched: 0, released: 0, dropped: 0 };
  private readonly replicas: readonly Replica[];
  private readonly store: SharedStore;
  private readonly tenantOf: ReadonlyMap<string, number>;
  private readonly serverOf: ReadonlyMap<string, Server>;
  /** The endpoint that counts a seat too many while that fault holds. */
  private miscounted: object | undefined;
  private anyEndpoint: object | undefined;

  constructor(settings: Settings) {
    this.settings = settings;
    this.tenantOf = new Map(settings.tenants.map(({ name }, index) => [name, index]));
    this.dropped = settings.tenants.map(() => 0);
    this.servers = serverNames(settings.servers).map((id) => ({ id, isDown: false, isSlow: false, seats: [] }));
    this.serverOf = new Map(this.servers.map((server) => [server.id, server]));
    this.firstTokens = new FirstTokens(settings.tenants.length);
    this.store = sharedStore(() => this.reachedMs);
    this.replicas = Array.from({ length: settings.replicas }, (_, index) => new Replica(index, settings, this.store));
    this.invariants = new Invariants(this.replicas);
    for (const replica of this.replicas) this.listen(replica);
  }

  /** Brings the run to that instant, or as far as it gets within `budgetMs` of real time. True when it is there. */
  async advance(toMs: number, budgetMs: number): Promise<boolean> {
    const stopAtMs = performance.now() + budgetMs;
    const endMs = Math.min(toMs, lengthS * 1000);
    // Whole slices alone, so that the store answers at the same instants however a run is reached.
    while (this.reachedMs + sliceMs <= endMs) {
      await this.slice();
      if (performance.now() >= stopAtMs) break;
    }
    this.lookAtServers();
    return this.reachedMs + sliceMs > endMs;
  }

  /** Simulated so far, ms. */
  reachedMs = 0;

  /** Seats of each server, by the file that holds now. */
  get seats(): number {
    return seatsAt(this.settings, this.reachedMs / 1000);
  }

  get isCut(): boolean {
    return this.settings.replicas > 1 && active(this.settings.faults, 'cut', this.reachedMs / 1000) !== undefined;
  }

  private async slice(): Promise<void> {
    const { faults } = this.settings;
    const second = this.reachedMs / 1000;
    this.store.isCut = active(faults, 'cut', second) !== undefined;
    this.miscount(active(faults, 'miscount', second) !== undefined);
    this.reachedMs += sliceMs;
    for (const { simulation } of this.replicas) simulation.runUntil(this.reachedMs);
    if (this.replicas.length > 1) for (let promises = 0; promises < mostPromises; promises++) await undefined;
    this.firstTokens.look(this.reachedMs);
    if (this.reachedMs % lookEveryMs === 0) this.lookAtInvariants();
  }

  private lookAtInvariants(): void {
    const seats = this.servers.map((server) => taken(server));
    this.invariants.look(this.reachedMs, this.counts, seats);
  }

  /** No fault that headgate has: it shows that a wrong count is seen. */
  private miscount(isWrong: boolean): void {
    const endpoint = this.miscounted ?? this.anyEndpoint;
    if (endpoint === undefined || isWrong === (this.miscounted !== undefined)) return;
    const seats = Number(Reflect.get(endpoint, 'inFlightRequests'));
    Reflect.set(endpoint, 'inFlightRequests', seats + (isWrong ? 1 : -1));
    this.miscounted = isWrong ? endpoint : undefined;
  }

  tenantIndex(fairnessId: string): number {
    return this.tenantOf.get(fairnessId) ?? 0;
  }

  /** What waits, and the gate, read from the controllers. */
  look(): Look {
    const figures = this.replicas.map(({ simulation }) => simulation.flow.figures());
    const sum = (of: (each: (typeof figures)[number]) => number): number =>
      figures.reduce((total, each) => total + of(each), 0);
    const { tenants } = this.settings;
    const bandsOf = (priority: number) =>
      figures.flatMap(({ bands }) => bands.find((band) => band.priority === priority) ?? []);
    const told = figures.flatMap(({ quotas }) => quotas?.quotas ?? []);
    const capacity = figures.flatMap((each) => each.capacity ?? []);
    return {
      waiting: sum(({ stats }) => stats.waiting),
      inFlight: sum(({ stats }) => stats.inFlight),
      saturation: sum(({ stats }) => stats.saturation) / figures.length,
      bands: (figures[0]?.bands ?? []).map(({ priority, ceiling }) => ({
        priority,
        ceiling,
        waiting: bandsOf(priority).reduce((total, { waiting }) => total + waiting, 0),
      })),
      flows: tenants.map(({ name, priority }) =>
        bandsOf(priority).reduce((total, band) => total + (band.waitingOf(name)?.waiting ?? 0), 0),
      ),
      quotas: quotasOf(this.settings).map(({ unit, burst }) => {
        const all = told.filter((each) => each.unit === unit && each.owner === undefined);
        return {
          unit,
          taken: Math.min(1, all.reduce((total, { used, reserved }) => total + used + reserved, 0) / burst),
        };
      }),
      budgets: ofReplica(this.settings).budget > 0 ? tenants.map(({ name }) => this.budgetLeft(name)) : [],
      shares: this.replicas.flatMap(({ shared }) =>
        shared === undefined ? [] : shared.status.reduce((total, { cap }) => total + cap, 0),
      ),
      ledger: capacity.length === 0 ? undefined : Math.max(...capacity.map(({ used, limit }) => used / limit)),
    };
  }

  private budgetLeft(tenant: string): number {
    const all = this.replicas.flatMap(({ budgets }) => budgets?.budgetsOf(tenant, this.reachedMs) ?? []);
    const spent = all.reduce((total, { used, reserved }) => total + used + reserved, 0);
    return Math.max(0, 1 - spent / Math.max(1, this.settings.budget));
  }

  private listen({ simulation: { flow, clock } }: Replica): void {
    const leases = new Map<object, SimRequest>();
    flow.on('dispatched', ({ item, lease }) => {
      leases.set(lease, item.request);
      this.counts.dispatched++;
      this.anyEndpoint ??= lease.endpoint;
      this.sit(lease.endpoint?.id, undefined, item.request, clock.now());
      this.firstTokens.await(item.request, this.tenantOf.get(item.fairnessId) ?? 0);
    });
    flow.on('released', ({ lease }) => {
      const request = leases.get(lease);
      leases.delete(lease);
      this.counts.released++;
      if (request !== undefined) this.sit(lease.endpoint?.id, request, undefined, clock.now());
    });
    flow.on('dropped', ({ outcome }) => {
      this.counts.dropped++;
      const tenant = this.tenantOf.get(outcome.fairnessId);
      if (tenant !== undefined) this.dropped[tenant] = (this.dropped[tenant] ?? 0) + 1;
    });
  }

  /** Puts `next` where `previous` is: undefined is a free seat. */
  private sit(
    id: string | undefined,
    previous: SimRequest | undefined,
    next: SimRequest | undefined,
    atMs: number,
  ): void {
    const server = this.serverOf.get(id ?? '');
    if (server === undefined) return;
    const { seats } = server;
    const at = seats.indexOf(previous);
    seats[at < 0 ? seats.length : at] = next;
    const most = this.mostSeats(atMs / 1000);
    if (next !== undefined && taken(server) > most) this.invariants.over(atMs, server.id, taken(server), most);
  }

  /**
   * What may be taken of a server. Replicas hear of a reload at once, and of each other's grants within a lease: for so
   * long, and while they are cut from each other, the greater number may be in force.
   */
  private mostSeats(second: number): number {
    const { replicas, faults } = this.settings;
    if (replicas === 1) return seatsAt(this.settings, second);
    let from = second - leaseS - 1;
    for (const { kind, at, for: lengthS } of faults)
      if (kind === 'cut' && at <= second && at + lengthS >= from) from = Math.min(from, at - leaseS - 1);
    const instants = faults
      .filter(({ kind }) => kind === 'reload')
      .flatMap(({ at, for: lengthS }) => [at, at + lengthS]);
    const known = instants.filter((at) => at >= from && at <= second);
    return Math.max(...[from, ...known].map((at) => seatsAt(this.settings, at)));
  }

  private lookAtServers(): void {
    const { faults } = this.settings;
    const second = this.reachedMs / 1000;
    const has = (kind: 'outage' | 'slow', index: number): boolean =>
      active(
        faults.filter(({ of }) => of === index + 1),
        kind,
        second,
      ) !== undefined;
    for (const [index, server] of this.servers.entries()) {
      server.isDown = has('outage', index);
      server.isSlow = has('slow', index);
    }
  }
}

function taken({ seats }: Server): number {
  return seats.reduce((sum, request) => sum + (request === undefined ? 0 : 1), 0);
}
