/** The simulated servers behind one controller: endpoints, their reported load, and detectors that learn from them. */
import { groupLabel } from '../../base/endpoint-turns.js';
import { EndpointPool, type SaturationDetector } from '../../index.js';
import type { AdaptiveDetector } from '../../types/index.js';
import type { VirtualClock } from '../clock/virtual-clock.js';
import type { RandomStreams } from '../random/distributions.js';
import type { SimRequest } from '../requests/sim-request.js';
import { isServerRoomDetector, type ServerRoomDetector } from '../servers/server-room-detector.js';
import { factoryOf, namesOf } from '../servers/server-spec.js';
import type { ServerHost, SimServer } from '../servers/sim-server.js';
import type { ServerPrice } from '../servers/spend.js';
import type { ServerFigures } from './result.js';
import type { ResolvedSimulation, SimulatedFlow } from './simulation-options.js';

/** The interval at which gateways scrape by default. */
const defaultIntervalMs = 50;

export class Fleet {
  readonly pool: EndpointPool = new EndpointPool();
  readonly servers: readonly SimServer[];
  private readonly byId: ReadonlyMap<string, SimServer>;
  /** Of servers that have a price. */
  private readonly bills = new Map<string, { readonly price: ServerPrice; spent: number }>();
  private readonly adaptive: readonly AdaptiveDetector[];
  private readonly room: readonly ServerRoomDetector[];

  constructor({ servers }: ResolvedSimulation, flow: SimulatedFlow, host: ServerHost, streams: RandomStreams) {
    this.servers = servers.flatMap((spec) => {
      const make = factoryOf(spec);
      return namesOf(spec).map((id) => {
        this.pool.add(id, spec.labels === undefined ? {} : { labels: spec.labels });
        if (spec.price !== undefined) this.bills.set(id, { price: spec.price, spent: 0 });
        return make(id, host, streams(`server/${id}`));
      });
    });
    this.byId = new Map(this.servers.map((server) => [server.id, server]));
    const detectors = detectorsOf(flow);
    this.adaptive = detectors.filter(
      (each): each is AdaptiveDetector => 'observe' in each && typeof each.observe === 'function',
    );
    this.room = detectors.filter(isServerRoomDetector);
    for (const detector of this.room) {
      // Only one request at a time, because a request that was dispatched and has not reached the server yet takes its
      // room.
      detector.attach((id) => this.unaccepted === 0 && this.byId.get(id)?.hasRoom() === true);
    }
  }

  /** Requests dispatched that no server has been given yet. */
  unaccepted = 0;

  serverOf({ lease }: SimRequest): SimServer {
    return this.byId.get(lease?.endpoint?.id as string) as SimServer;
  }

  /** The request leaves its server. */
  charge({ lease, promptTokens, tokensOut }: SimRequest): void {
    const bill = this.bills.get(lease?.endpoint?.id ?? '');
    const { input = 0, output = 0 } = bill?.price ?? {};
    if (bill !== undefined) bill.spent += (promptTokens * input + tokensOut * output) / 1e6;
  }

  figures(endedAtMs: number): ServerFigures[] {
    return this.servers.map((server) => {
      const { id } = server;
      const group = this.pool.get(id)?.labels[groupLabel];
      const { price: { perHour = 0 } = {}, spent } = this.bills.get(id) ?? {};
      const cost = spent === undefined ? undefined : spent + (perHour * endedAtMs) / 3_600_000;
      return { id, group, cost, ...server.use(endedAtMs) };
    });
  }

  /** Tells detectors of headroom that there may be some. */
  roomMade(): void {
    for (const detector of this.room) detector.roomMade();
  }

  /** The first token of a request came this long after its dispatch. */
  observe(ttftMs: number, promptTokens: number, nowMs: number): void {
    for (const detector of this.adaptive) detector.observe({ ttftMs, promptTokens }, nowMs);
  }

  /** Reports the loads of the servers, late where that is asked for, if somebody needs them. */
  startReports(reports: ResolvedSimulation['reports'], flow: SimulatedFlow, clock: VirtualClock): void {
    const isNeeded = detectorsOf(flow).some((detector) => detector.needsPool === true);
    if (reports === undefined && !isNeeded) return;
    const { interval = defaultIntervalMs, delay = 0 } = reports ?? {};
    const scrape = (): void => {
      const sampledAtMs = clock.now();
      const loads = this.servers.map((server) => ({ id: server.id, load: server.load() }));
      const deliver = (): void => {
        for (const { id, load } of loads) this.pool.report(id, { ...load, sampledAtMs });
      };
      if (delay === 0) deliver();
      else clock.after(delay, deliver);
      clock.after(interval, scrape);
    };
    scrape();
  }
}

/** The controller's detector, those of its bands, and those that they are made of, as far as they can be seen. */
function detectorsOf(flow: SimulatedFlow): SaturationDetector[] {
  const given: unknown[] = [
    flow.saturationDetector,
    flow.defaultBand?.saturationDetector,
    flow.defaultNegativeBand?.saturationDetector,
    ...(flow.bands ?? []).map(({ saturationDetector }) => saturationDetector),
    ...(insideOf.get(flow) ?? []),
  ];
  return [...new Set(given)].filter(
    (detector): detector is SaturationDetector => typeof detector === 'object' && detector !== null,
  );
}

const insideOf = new WeakMap<SimulatedFlow, readonly SaturationDetector[]>();

/** Notes detectors that stand inside others, which cannot be seen from outside; scenario files know them. */
export function noteDetectors(flow: SimulatedFlow, detectors: readonly SaturationDetector[]): void {
  insideOf.set(flow, detectors);
}
