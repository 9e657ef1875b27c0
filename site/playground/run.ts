/**
 * One run of the settings: the package's controller on simulated servers, up to any instant that is asked for. The same
 * settings and the same instant are always the same picture, so that a slider that moves is answered by what would be
 * now, had it stood there from the start.
 */
import { loadScenario, type SimRequest, Simulation } from 'headgate/simulator';
import { serverNames } from './code.ts';
import { FirstTokens } from './first-tokens.ts';
import { scenarioOf } from './scenario.ts';
import { lengthS, quotasOf, type Settings } from './settings.ts';

/** Simulated between two looks at the clock, ms. */
const sliceMs = 20;

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
}

export class Run {
  readonly settings: Settings;
  /** Requests dropped so far, by tenant. */
  readonly dropped: number[];
  readonly servers: readonly Server[];
  readonly firstTokens: FirstTokens;
  private readonly simulation: Simulation;
  private readonly tenantOf: ReadonlyMap<string, number>;
  private readonly serverOf: ReadonlyMap<string, Server>;

  constructor(settings: Settings) {
    this.settings = settings;
    this.tenantOf = new Map(settings.tenants.map(({ name }, index) => [name, index]));
    this.dropped = settings.tenants.map(() => 0);
    this.servers = serverNames(settings.servers).map((id) => ({ id, isDown: false, isSlow: false, seats: [] }));
    this.serverOf = new Map(this.servers.map((server) => [server.id, server]));
    this.firstTokens = new FirstTokens(settings.tenants.length);
    this.simulation = new Simulation(loadScenario(scenarioOf(settings)).options);
    this.listen();
  }

  get nowMs(): number {
    return this.simulation.clock.now();
  }

  /** Brings the run to that instant, or as far as it gets within `budgetMs` of real time. True when it is there. */
  advance(toMs: number, budgetMs: number): boolean {
    const stopAtMs = performance.now() + budgetMs;
    const endMs = Math.min(toMs, lengthS * 1000);
    while (this.reachedMs < endMs) {
      this.reachedMs = Math.min(endMs, this.reachedMs + sliceMs);
      this.simulation.runUntil(this.reachedMs);
      this.firstTokens.look(this.reachedMs);
      if (performance.now() >= stopAtMs) break;
    }
    this.lookAtServers();
    return this.reachedMs >= endMs;
  }

  /** Simulated so far, ms. */
  reachedMs = 0;

  tenantIndex(fairnessId: string): number {
    return this.tenantOf.get(fairnessId) ?? 0;
  }

  /** What waits, and the gate, read from the controller. */
  look(): Look {
    const { flow } = this.simulation;
    const { stats, bands, quotas } = flow.figures();
    const told = quotas?.quotas ?? [];
    return {
      waiting: stats.waiting,
      inFlight: stats.inFlight,
      saturation: stats.saturation,
      bands: bands.map(({ priority, waiting, ceiling }) => ({ priority, waiting, ceiling })),
      flows: this.settings.tenants.map(
        ({ name, priority }) => bands.find((band) => band.priority === priority)?.waitingOf(name)?.waiting ?? 0,
      ),
      quotas: quotasOf(this.settings).map(({ unit, burst }) => {
        const { used = 0, reserved = 0 } = told.find((each) => each.unit === unit) ?? {};
        return { unit, taken: Math.min(1, (used + reserved) / burst) };
      }),
    };
  }

  private listen(): void {
    const { flow } = this.simulation;
    const leases = new Map<object, SimRequest>();
    flow.on('dispatched', ({ item, lease }) => {
      leases.set(lease, item.request);
      this.sit(lease.endpoint?.id, undefined, item.request);
      this.firstTokens.await(item.request, this.tenantOf.get(item.fairnessId) ?? 0);
    });
    flow.on('released', ({ lease }) => {
      const request = leases.get(lease);
      leases.delete(lease);
      if (request !== undefined) this.sit(lease.endpoint?.id, request, undefined);
    });
    flow.on('dropped', ({ outcome }) => {
      const tenant = this.tenantOf.get(outcome.fairnessId);
      if (tenant !== undefined) this.dropped[tenant] = (this.dropped[tenant] ?? 0) + 1;
    });
  }

  /** Puts `next` where `previous` is: undefined is a free seat. */
  private sit(server: string | undefined, previous: SimRequest | undefined, next: SimRequest | undefined): void {
    const seats = this.serverOf.get(server ?? '')?.seats;
    if (seats === undefined) return;
    const at = seats.indexOf(previous);
    seats[at < 0 ? seats.length : at] = next;
  }

  private lookAtServers(): void {
    const { outage, slow, faultAt, faultFor } = this.settings;
    const atS = this.reachedMs / 1000;
    const isFault = atS >= faultAt && atS < faultAt + faultFor;
    for (const [index, server] of this.servers.entries()) {
      server.isDown = isFault && index === outage - 1;
      server.isSlow = isFault && index === slow - 1;
    }
  }
}
