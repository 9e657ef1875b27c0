/**
 * A pool of model servers with one to three controllers before it, and a history of random steps. After every step the
 * hosts' books are compared with what the controllers say of themselves.
 */
import {
  type AdmissionPolicy,
  type BandOptions,
  type Constraint,
  concurrencyDetector,
  EndpointPool,
  type EndpointView,
  edf,
  type FairnessPolicy,
  FlowConfigError,
  type FlowControllerOptions,
  type FlowEvents,
  fcfs,
  globalStrict,
  inFlightEviction,
  type Lease,
  type OrderingPolicy,
  overviewOf,
  roundRobin,
  type SaturationDetector,
  sloDeadline,
  staticUsageLimit,
  type UsageLimitPolicy,
  utilizationDetector,
} from '../../src/index.js';
import type { AdaptiveDetector } from '../../src/types/index.js';
import { dial } from '../support/flow.js';
import { CountedSignal } from './counted-signal.js';
import { type GateRules, Host, type TestRequest } from './host.js';
import { isSilent, optionsOf } from './inside.js';
import {
  type Mischief,
  nonsenseAdmission,
  nonsenseDetector,
  nonsenseEviction,
  nonsenseFairness,
  nonsenseFilter,
  nonsenseOrdering,
  nonsensePicker,
  nonsenseUsageLimit,
} from './nonsense.js';
import { Random } from './random.js';
import { reached } from './reached.js';
import { byModel } from './room.js';
import {
  type Tangle,
  tangledAnswer,
  tangledBandOrder,
  tangledConstraint,
  tangledDetector,
  tangledFairness,
  tangledOrdering,
  tangledPicker,
  tangledVictims,
} from './tangle.js';
import { WorldClock } from './world-clock.js';

type Options = FlowControllerOptions<TestRequest>;
type LeaseOptions = 'maxLeaseMs' | 'overdueLeases' | 'traceLeases';

export interface WorldOptions {
  readonly seed: number;
  /** Plugins and listeners that throw, answer nonsense and call back. */
  readonly hasNonsense: boolean;
  /** Everything that may hold a request back, at once: quotas, sessions, breakers, composites of them, caps. */
  readonly isTangled: boolean;
}

/** One step: what, and a number from which the rest follows. */
export interface Step {
  readonly kind: StepKind;
  readonly salt: number;
}

const priorities = [-3, -1, 0, 2, 9] as const;
const models = ['m', 'n'] as const;
const groups: readonly NonNullable<BandOptions['endpoints']>[] = [
  ['own'],
  ['own', { group: 'paid', after: 40 }],
  ['own', { group: 'paid', after: 300 }],
  ['paid', 'own'],
];
const causes = ['saturated', 'overloaded', 'budget', undefined] as const;
const recheckIntervalMs = 10;
/** More than the requests of a step can take, at one dispatch a turn. */
const mostTurns = 2000;
/** Steps in which every silent detector is asked again. */
const hasRechecked: ReadonlySet<string> = new Set(['advanceLong', 'lookAgain']);
const events = [
  'queued',
  'dispatched',
  'dropped',
  'released',
  'gate',
  'regime',
  'pluginError',
  'bandAdded',
  'bandRemoved',
  'flowRemoved',
  'evicted',
  'leaseOverdue',
];

export class World {
  readonly clock: WorldClock;
  readonly faults: string[] = [];
  private readonly random: Random;
  private readonly pool: EndpointPool | undefined;
  private readonly hosts: Host[] = [];
  private readonly signals: CountedSignal[] = [];
  private readonly endpoints: EndpointView[] = [];
  private readonly works: (() => void)[] = [];
  private readonly dials: { turnTo(value: number): void; value: number }[] = [];
  private readonly adaptive: AdaptiveDetector[] = [];
  private readonly hasNonsense: boolean;
  private readonly isTangled: boolean;
  /** Some detectors tell sessions apart; `holBlocking` must be 'none' then. */
  private readonly limitsSessions: boolean;
  /** Bands may name groups of endpoints; headroom must not be 'preferred' then. */
  private readonly usesGroups: boolean;
  private requests = 0;
  /** Its plan changes now and then. */
  private weightOfA = 3;
  /** How many times plugins may still call back in this step. */
  private meddling = 0;

  constructor({ seed, hasNonsense, isTangled }: WorldOptions) {
    this.random = new Random(seed);
    this.hasNonsense = hasNonsense;
    this.isTangled = isTangled;
    const { random } = this;
    this.limitsSessions = isTangled && random.chance(0.5);
    this.clock = new WorldClock(1_000_000, {
      tellsTurns: !hasNonsense && random.chance(0.4),
      runsBackwards: !isTangled && random.chance(0.1),
    });
    this.pool = random.chance(0.6) ? new EndpointPool() : undefined;
    this.usesGroups = this.pool !== undefined && random.chance(0.4);
    for (let i = random.int(4); i > 0; i--) this.addEndpoint(random);
    const hostCount = this.pool !== undefined && random.chance(0.4) ? 2 + random.int(2) : 1;
    for (let i = 0; i < hostCount; i++) this.hosts.push(this.makeHost(random));
  }

  async perform({ kind, salt }: Step): Promise<void> {
    this.meddling = this.hasNonsense ? 4 : 0;
    steps[kind].call(this, new Random(salt));
    await this.settle();
    this.meddling = 0;
    if (kind === 'lookAgain') {
      for (const host of this.hosts) host.expectNothingLeft();
      await this.settle();
    }
    this.compare(kind);
  }

  /** Closes everything, gives every seat back, and looks for what was left behind. */
  async end(): Promise<void> {
    for (const host of this.hosts) host.close(0);
    for (const finish of this.works.splice(0)) finish();
    await this.settle();
    for (const host of this.hosts) for (const lease of host.leases) lease.release();
    await this.settle();
    this.compare('end');
    const same = (what: string, got: number, expected: number): void => this.hosts[0]?.same(what, got, expected);
    same('timers after the end', this.clock.pendingTimers, 0);
    for (const host of this.hosts) {
      const { waiting, waitingBytes, inFlight, inFlightTokens, state } = host.flow.stats();
      same(`left behind (${state})`, waiting + waitingBytes + inFlight + inFlightTokens, 0);
    }
    if (this.pool !== undefined) same('controllers on the pool', this.pool.controllers.length, 0);
    for (const { subscribers } of this.dials as { subscribers?: number }[]) same('subscribers', subscribers ?? 0, 0);
    if (!this.hasNonsense) for (const host of this.hosts) host.expectNothingReserved();
  }

  /** Everything that is settled gets answered. */
  private async settle(): Promise<void> {
    let hasTurned = true;
    for (let turn = 0, before = -1; before !== this.activity || hasTurned; turn++) {
      before = this.activity;
      for (let i = 0; i < 8; i++) await Promise.resolve();
      hasTurned = this.clock.endTurn();
      if (turn < mostTurns) continue;
      this.faults.push(`the event loop turned ${turn} times without coming to rest`);
      return;
    }
  }

  private get activity(): number {
    return this.hosts.reduce((sum, host) => sum + host.activity, 0);
  }

  private compare(kind: string): void {
    const { pool, hosts } = this;
    const before = this.faults.length;
    for (const host of hosts) host.compare();
    const [first] = hosts as [Host];
    const [least, most] = [0, 1].map((bound) => sumOf(hosts, (host) => host.expectedTimers[bound] as number)) as [
      number,
      number,
    ];
    const { pendingTimers } = this.clock;
    first.expect(
      least <= pendingTimers && pendingTimers <= most,
      `timers: got ${pendingTimers}, expected ${least} to ${most}`,
    );
    for (const endpoint of this.endpoints) {
      const seats = hosts.flatMap((host) => host.seatsAt(endpoint));
      if (hosts.filter((host) => host.seatsAt(endpoint).length > 0).length > 1)
        reached.saw('two controllers have requests on one server');
      first.same(`seats on ${endpoint.id}`, endpoint.inFlightRequests, seats.length);
      first.same(`tokens on ${endpoint.id}`, endpoint.inFlightTokens, tokensOf(seats));
      // A detector that reports from inside its own hook gets ahead of the books, and seats are told apart by time.
      if (!this.hasNonsense && !this.clock.runsBackwards)
        first.same(
          `unsampled on ${endpoint.id}`,
          endpoint.unsampledRequests,
          sumOf(hosts, (host) => host.unsampledAt(endpoint)),
        );
    }
    if (pool !== undefined) {
      first.same(
        'Σ seats',
        pool.inFlightRequests,
        sumOf(pool.endpoints, (endpoint) => endpoint.inFlightRequests),
      );
      first.same(
        'Σ tokens',
        pool.inFlightTokens,
        sumOf(pool.endpoints, (endpoint) => endpoint.inFlightTokens),
      );
    }
    for (const source of this.signals) {
      const listening = hosts.filter((host) =>
        [...host.waiting].some(({ request }) => request.source === source),
      ).length;
      first.same('listeners on a signal', source.live.size, listening);
    }
    for (const host of hosts) {
      // A silent detector is asked again by the timer that was counted above; once that has run, nobody may be left
      // behind either.
      const mayLag = this.clock.runsBackwards || (host.mayLag && (!hasRechecked.has(kind) || this.hasNonsense));
      const { left } = host.mayFadeSoon(recheckIntervalMs) || mayLag ? { left: undefined } : host;
      if (left !== undefined) host.fail(`left behind: ${left}`);
    }
    for (let i = before; i < this.faults.length; i++)
      this.faults[i] = `after ${kind} at ${this.clock.now()}: ${this.faults[i]}`;
  }

  // What worlds are made of.

  private makeHost(random: Random): Host {
    const [detector, gate] = this.randomDetector(random);
    const [usageLimitPolicy, ceilings] = this.randomUsageLimit(random);
    const options: Options = {
      saturationDetector: detector,
      constraints: this.randomConstraints(random),
      usageLimitPolicy,
      gate: this.randomGate(random),
      limits: this.randomLimits(random, 3),
      bands: this.randomBands(random),
      ...this.randomTemplates(random),
      ...this.randomTtls(random),
      ...this.randomIdleTimes(random),
      ...this.randomExtras(random),
      ...this.randomPlacement(random),
      maxBands: 6 + random.int(4),
      ...(random.chance(0.5) ? { maxFlows: 1 + random.int(6) } : {}),
      ...(this.pool === undefined ? {} : { pool: this.pool, endpointPicker: this.randomPicker(random) }),
    };
    const admission = random.chance(0.4) ? this.randomAdmission(random) : undefined;
    const host = new Host({ ...options, admission: admission?.policy }, { ...gate, ceilings }, this.clock, this.faults);
    if (!this.hasNonsense) host.admitted = admission?.admitted;
    host.isMeddledWith = this.hasNonsense;
    if (this.hasNonsense) this.addNonsenseListeners(host, random);
    return host;
  }

  private addNonsenseListeners(host: Host, random: Random): void {
    for (let i = 0; i < 4; i++) {
      host.flow.on(random.pick(events) as keyof FlowEvents, () => this.mischief.meddle());
      host.flow.on(random.pick(events) as keyof FlowEvents, async () => {
        await Promise.resolve();
        if (this.random.chance(0.2)) throw new Error('asynchronous listener');
      });
    }
  }

  private get mischief(): Mischief {
    return {
      random: this.random,
      meddle: () => {
        if (this.meddling > 0 && this.random.chance(0.1)) {
          this.meddling--;
          steps[this.random.pick(inside)].call(this, new Random(this.random.int(2 ** 31)));
        }
        if (this.meddling > 0 && this.random.chance(0.05)) throw new Error('meddled');
      },
    };
  }

  private randomDetector(random: Random): [SaturationDetector, GateRules] {
    const rules = (saturation: GateRules['saturation'], isSilent: boolean): GateRules => ({
      saturation,
      ceilings: undefined,
      isSilent,
    });
    const kind = random.int(this.hasNonsense ? 7 : 5);
    if (this.isTangled && kind < 5) {
      const detector = this.anotherDetector(random) ?? tangledDetector(random, this.tangle);
      return [detector, rules(undefined, isSilent(detector))];
    }
    if (kind >= 5) return [nonsenseDetector(this.mischief), rules(undefined, true)];
    if (kind === 4 && this.pool !== undefined) return this.randomUtilization(random);
    if (kind >= 3) {
      const isSilent = random.chance(0.5);
      const detector = dial(random.pick([0, 0.3, 0.8, 1, 2]), !isSilent);
      this.dials.push(detector);
      return [detector, rules(() => detector.value, isSilent)];
    }
    const concurrencyMode = random.pick(['requests', 'tokens', 'hybrid'] as const);
    const maxConcurrency = 1 + random.int(5);
    const maxTokenConcurrency = 1 + random.int(40);
    const headroom = random.pick([0, 0.5]);
    const capacityOf = (limit: number, endpoint: EndpointView | undefined): number =>
      Math.max(1, Math.floor(limit * (endpoint?.weight ?? 1)));
    const requests = (endpoint: EndpointView | undefined): number =>
      this.seats(endpoint).length / capacityOf(maxConcurrency, endpoint);
    const tokens = (endpoint: EndpointView | undefined): number =>
      tokensOf(this.seats(endpoint)) / capacityOf(maxTokenConcurrency, endpoint);
    const members = (): readonly (EndpointView | undefined)[] => this.available ?? [undefined];
    const ratio = (used: number, of: number): number =>
      sumOf(members(), (each) => capacityOf(of, each)) && used / sumOf(members(), (each) => capacityOf(of, each));
    const weightOf = (endpoint: EndpointView | undefined): number => endpoint?.weight ?? 1;
    const saturationIn = {
      requests: () =>
        ratio(
          sumOf(members(), (each) => this.seats(each).length),
          maxConcurrency,
        ),
      tokens: () =>
        ratio(
          sumOf(members(), (each) => tokensOf(this.seats(each))),
          maxTokenConcurrency,
        ),
      hybrid: () =>
        sumOf(members(), (each) => weightOf(each) * Math.max(requests(each), tokens(each))) /
        sumOf(members(), weightOf),
    }[concurrencyMode];
    return [
      concurrencyDetector({ concurrencyMode, maxConcurrency, maxTokenConcurrency, headroom }),
      rules(() => saturationIn() + 1e-12, false),
    ];
  }

  /** That of another host: two controllers may share one. */
  private anotherDetector(random: Random): SaturationDetector | undefined {
    if (this.hosts.length === 0 || !random.chance(0.2)) return undefined;
    return optionsOf(random.pick(this.hosts).flow).saturationDetector;
  }

  /** New ones, or those of another host. */
  private randomConstraints(random: Random): readonly Constraint[] {
    if (!this.isTangled || !random.chance(0.4)) return [];
    if (this.hosts.length > 0 && random.chance(0.3)) return optionsOf(random.pick(this.hosts).flow).constraints;
    return Array.from({ length: 1 + random.int(2) }, () => tangledConstraint(random, this.tangle));
  }

  private get tangle(): Tangle {
    return {
      hasPool: this.pool !== undefined,
      limitsSessions: this.limitsSessions,
      nowMs: () => this.clock.now(),
      dial: (isAnnouncing) => {
        const detector = dial(this.random.pick([0, 0.3, 0.8, 1, 2]), isAnnouncing);
        this.dials.push(detector);
        return detector;
      },
      adapts: (detector) => {
        this.adaptive.push(detector);
        return detector;
      },
    };
  }

  private randomUtilization(random: Random): [SaturationDetector, GateRules] {
    const queueDepthThreshold = 1 + random.int(4);
    const kvCacheUtilThreshold = random.pick([0.5, 0.8, 1]);
    const metricsStalenessThreshold = random.pick([20, 200, 2000]);
    const isStale = ({ metrics }: EndpointView): boolean =>
      metrics === undefined || this.clock.now() - metrics.sampledAtMs > metricsStalenessThreshold;
    const score = (endpoint: EndpointView): number => {
      const { waitingQueueSize = 0, kvCacheUsage = 0 } = endpoint.metrics ?? {};
      const unsampled = sumOf(this.hosts, (host) => host.unsampledAt(endpoint));
      const queue = (waitingQueueSize + unsampled) / (queueDepthThreshold * endpoint.weight);
      return endpoint.weight * Math.max(queue, kvCacheUsage / kvCacheUtilThreshold);
    };
    const saturation = (): number => {
      const seen = (this.available ?? []).filter((endpoint) => !isStale(endpoint));
      return seen.length === 0 ? 1 : sumOf(seen, score) / sumOf(seen, ({ weight }) => weight) + 1e-12;
    };
    return [
      utilizationDetector({ queueDepthThreshold, kvCacheUtilThreshold, metricsStalenessThreshold }),
      { saturation, ceilings: undefined, isSilent: true, opensByTime: true },
    ];
  }

  /** Servers that may get requests. */
  private get available(): readonly EndpointView[] | undefined {
    return this.pool?.endpoints.filter(
      ({ state, overloadedUntilMs }) => state === 'ready' && overloadedUntilMs <= this.clock.now(),
    );
  }

  private seats(endpoint: EndpointView | undefined): Lease[] {
    return this.hosts.flatMap((host) => host.seatsAt(endpoint));
  }

  private randomUsageLimit(random: Random): [UsageLimitPolicy | undefined, GateRules['ceilings']] {
    const kind = random.int(this.hasNonsense ? 5 : 4);
    if (kind === 0) return [undefined, (_, ranked) => ranked.map(() => 1)];
    if (this.isTangled && kind < 4) return [staticUsageLimit({ threshold: random.pick([0.5, 1, 1.5]) }), undefined];
    if (kind === 1) {
      const threshold = random.pick([0.5, 0.9, 1.5]);
      return [staticUsageLimit({ threshold }), (_, ranked) => ranked.map(() => threshold)];
    }
    if (kind === 4) return [nonsenseUsageLimit(this.mischief), undefined];
    // By rank: constant; by rank and reading, rising in places: not.
    const isConstant = kind === 2;
    const compute = (saturation: number, ranked: readonly number[]): number[] =>
      ranked.map((_, i) => (isConstant ? 1 - i * 0.15 : [1, 1.2, 0.7, 0.9][i % 4]! - (saturation > 0.5 ? 0.1 : 0)));
    const policy: UsageLimitPolicy = {
      type: isConstant ? 'by-rank' : 'by-rank-and-reading',
      computeLimits(saturation, ranked, ceilings) {
        compute(saturation, ranked).forEach((ceiling, i) => {
          ceilings[i] = ceiling;
        });
      },
      ...(isConstant ? { constant: true as const } : {}),
    };
    return [policy, compute];
  }

  /** Eviction, displacement, the order of bands, and settings of single fairness IDs. */
  private randomExtras(
    random: Random,
  ): Pick<Options, 'eviction' | 'overflow' | 'bandOrder' | 'bandPromotion' | 'flows' | 'onDispatch'> {
    const isOdd = this.hasNonsense && random.chance(0.5);
    const eviction = {
      maxPerDecision: 1 + random.int(3),
      graceMs: random.pick([0, 50]),
      timeoutMs: random.pick([100, 2000]),
      reserveMs: random.pick([0, 200, 1000]),
      ...(this.isTangled ? { ordering: tangledVictims(random) } : {}),
      ...(isOdd ? nonsenseEviction(this.mischief) : {}),
    };
    return {
      eviction: random.chance(this.isTangled ? 0.5 : 0.4) ? inFlightEviction(eviction) : undefined,
      overflow: random.pick(['reject', 'displace', 'fair', 'fair']),
      bandOrder: this.isTangled
        ? tangledBandOrder(random)
        : random.pick(['strict', 'strict', 'strict', 'fifo', 'aging']),
      bandPromotion: random.pick([0, 100, 5000]),
      onDispatch: random.chance(0.3) ? () => (this.random.chance(0.1) ? 'the key was revoked' : undefined) : undefined,
      flows: random.chance(this.isTangled ? 0.8 : 0.3) ? this.randomFlows(random) : undefined,
    };
  }

  /** Caps are left to the worlds whose order nobody predicts. */
  private randomFlows(random: Random): Options['flows'] {
    const named = { a: { weight: this.weightOfA }, b: { limits: this.randomLimits(random, 1) } };
    if (!(this.hasNonsense || this.isTangled) || random.chance(0.3)) return named;
    const capped = {
      ...named,
      a: { weight: this.weightOfA, maxInFlight: 1 + random.int(2) },
      b: { maxInFlight: { tokens: 1 + random.int(20) } },
    };
    if (random.chance(0.5)) return capped;
    return (fairnessId) => {
      this.mischief.meddle();
      return fairnessId === 'a' ? { ...capped.a, weight: this.weightOfA } : fairnessId === 'b' ? capped.b : undefined;
    };
  }

  private randomAdmission(random: Random): { policy: AdmissionPolicy; admitted: () => number } {
    if (this.hasNonsense && random.chance(0.5))
      return { policy: nonsenseAdmission(this.mischief), admitted: () => Number.NaN };
    let admitted = 0;
    const policy: AdmissionPolicy = {
      type: 'counting',
      admit: () => {
        if (this.random.chance(0.1)) return { reason: 'not today', cause: this.random.pick(causes) };
        admitted++;
        return 'admit';
      },
      released: () => admitted--,
    };
    return { policy, admitted: () => admitted };
  }

  private randomGate(random: Random): Options['gate'] {
    const closeAt = random.pick([0.8, 1, 1, 1, 2]);
    return {
      closeAt,
      openAt: random.chance(0.3) ? closeAt / 2 : closeAt,
      failValue: random.pick([0, 0.5, 1, 1]),
      recheckIntervalMs,
    };
  }

  /** Which endpoints a request may go to, what waits behind it, and how many go at a time. */
  private randomPlacement(
    random: Random,
  ): Pick<Options, 'endpointFilters' | 'headroom' | 'holBlocking' | 'maxDispatchesPerTurn' | LeaseOptions> {
    const isOdd = this.hasNonsense && random.chance(0.3);
    const filters = [isOdd ? nonsenseFilter(this.mischief) : byModel];
    return {
      endpointFilters: this.pool !== undefined && random.chance(0.6) ? filters : undefined,
      headroom: random.pick([undefined, 'required', this.usesGroups ? undefined : 'preferred']),
      holBlocking: this.limitsSessions ? 'none' : random.pick(['band', 'flow', 'none']),
      maxDispatchesPerTurn: random.pick([1, 2, 5, 1000, 1000, 1000]),
      maxLeaseMs: random.chance(0.3) ? random.pick([5, 60, 2_000]) : undefined,
      overdueLeases: random.pick(['warn', 'warn', 'release']),
      traceLeases: random.chance(0.3),
    };
  }

  /** A detector of a band's own. */
  private randomOwnDetector(random: Random): SaturationDetector | undefined {
    if (!random.chance(0.15)) return undefined;
    if (this.hasNonsense && random.chance(0.3)) return nonsenseDetector(this.mischief);
    if (this.isTangled && random.chance(0.5)) return tangledDetector(random, this.tangle);
    const detector = dial(random.pick([0, 0.3, 0.8, 1, 2]), random.chance(0.5));
    this.dials.push(detector);
    return detector;
  }

  private randomPicker(random: Random): Options['endpointPicker'] {
    if (this.hasNonsense && random.chance(0.4)) return nonsensePicker(this.mischief, this.pool as EndpointPool);
    return this.isTangled ? tangledPicker(random) : undefined;
  }

  private randomLimits(random: Random, scale: number): Options['limits'] {
    if (random.chance(0.5)) return undefined;
    return {
      ...(random.chance(0.6) ? { maxRequests: random.chance(0.05) ? 0 : random.pick([2, 8, 25, 60]) * scale } : {}),
      ...(random.chance(0.6) ? { maxBytes: random.chance(0.05) ? 0 : random.pick([40, 200, 800, 2000]) * scale } : {}),
    };
  }

  /** `shares`: what `minShare` may be, where there is one. */
  private randomTemplate(
    random: Random,
    shares: readonly number[] = [0.001, 0.005],
  ): NonNullable<Options['defaultBand']> {
    const fairness = random.pick<() => FairnessPolicy>([globalStrict, roundRobin, roundRobin]);
    const ordering = random.pick<() => OrderingPolicy>([fcfs, edf, sloDeadline]);
    const isOdd = this.hasNonsense && random.chance(0.4);
    return {
      limits: this.randomLimits(random, 2),
      flowLimits: random.chance(0.5) ? this.randomLimits(random, 1) : undefined,
      ...(random.chance(0.4) ? { requestTtl: random.pick([0, 30, 700, '2s', Number.POSITIVE_INFINITY]) } : {}),
      ...(random.chance(0.2) ? { minShare: random.pick(shares) } : {}),
      ...(this.usesGroups && random.chance(0.5) ? { endpoints: random.pick(groups) } : {}),
      saturationDetector: this.randomOwnDetector(random),
      ...(this.isTangled ? this.tangledTemplate(random) : { fairness: fairness(), ordering: ordering() }),
      ...(isOdd ? { fairness: nonsenseFairness(this.mischief) } : {}),
      ...(this.hasNonsense && random.chance(0.2) ? { ordering: nonsenseOrdering(this.mischief) } : {}),
    };
  }

  private tangledTemplate(random: Random): NonNullable<Options['defaultBand']> {
    const cap = random.pick([1 + random.int(3), { requests: 2, tokens: 1 + random.int(20) }]);
    return {
      fairness: tangledFairness(random),
      ordering: tangledOrdering(random),
      ...(random.chance(0.5) ? { maxInFlightPerFlow: cap } : {}),
    };
  }

  private randomBands(random: Random): NonNullable<Options['bands']> {
    const some = priorities.filter(() => random.chance(0.5));
    // As much as the sum allows, beside what bands of the templates get.
    return some.map((priority) => ({
      priority,
      ...this.randomTemplate(random, [0.05, 0.9 / Math.max(some.length, 1)]),
    }));
  }

  private randomTemplates(random: Random): Pick<Options, 'defaultBand' | 'defaultNegativeBand'> {
    return {
      defaultBand: random.chance(0.7) ? this.randomTemplate(random) : undefined,
      defaultNegativeBand: random.chance(0.3) ? this.randomTemplate(random) : undefined,
    };
  }

  private randomTtls(random: Random): Pick<Options, 'defaultRequestTtl' | 'noEndpointRequestTtl'> {
    return {
      ...(random.chance(0.7) ? { defaultRequestTtl: random.pick([0, 40, 500, '5s']) } : {}),
      ...(random.chance(0.5) ? { noEndpointRequestTtl: random.pick([0, 25, 1000]) } : {}),
    };
  }

  private randomIdleTimes(random: Random): Pick<Options, 'flowIdleTimeout' | 'bandIdleTimeout'> {
    const flowIdleTimeout = random.pick([50, 1000, 300_000]);
    return { flowIdleTimeout, bandIdleTimeout: flowIdleTimeout * random.pick([1, 4]) };
  }

  private addEndpoint(random: Random): void {
    const id = `e${random.int(4)}`;
    if (this.pool === undefined || this.pool.get(id) !== undefined) return;
    this.endpoints.push(this.pool.add(id, { labels: this.randomLabels(random) }));
  }

  private randomLabels(random: Random): Record<string, string> {
    const group = random.pick([undefined, 'own', 'own', 'paid']);
    return { ...(random.chance(0.3) ? {} : { model: random.pick(models) }), ...(group && { group }) };
  }

  private randomSignal(random: Random): CountedSignal | undefined {
    if (random.chance(0.4)) return undefined;
    const shared = this.signals.slice(-6).filter(({ signal }) => !signal.aborted);
    if (random.chance(0.5) && shared.length > 0) return random.pick(shared);
    const source = new CountedSignal();
    this.signals.push(source);
    if (random.chance(0.1)) source.abort();
    return source;
  }

  private randomRequest(random: Random): TestRequest {
    const source = this.randomSignal(random);
    return {
      id: this.requests++,
      byteSize: random.pick([0, 1, 7, 30]),
      tokens: random.int(10),
      ...(random.chance(0.3) ? {} : { model: random.pick(models) }),
      ...(source === undefined ? {} : { signal: source.signal, source }),
      ...(random.chance(0.3)
        ? { ttlMs: random.pick([0, 5, 60, 800, 3000, Number.POSITIVE_INFINITY, 1 + random.int(400)]) }
        : {}),
      ...(random.chance(0.4) ? { sloTtftMs: random.int(300) } : {}),
      ...(this.isTangled
        ? {
            ...(random.chance(0.7) ? { sessionId: `s${random.int(6)}` } : {}),
            ...(random.chance(0.5) ? { affinityKey: `k${random.int(4)}` } : {}),
            inputTokens: random.int(10),
            maxOutputTokens: random.int(12),
          }
        : {}),
      ...(random.chance(0.2) ? { receivedAtMs: this.clock.now() - random.int(200) } : {}),
    };
  }

  private randomKey(random: Random): { fairnessId: string; priority: number } {
    const priority = random.chance(0.85) ? random.pick(priorities) : random.int(12) - 6;
    const rare = `rare-${random.int(40)}`;
    return {
      fairnessId: random.chance(0.15) ? rare : random.pick(['a', 'b', 'c', 'd', 'e', 'f', 'x'.repeat(300)]),
      priority,
    };
  }

  /** A lease that is held, now and then one that was given back. */
  private randomLease(random: Random): [Host, Lease] | undefined {
    const host = random.pick(this.hosts);
    const held = random.chance(0.9) ? host.leases.filter((lease) => !lease.isReleased) : host.leases;
    return held.length === 0 ? undefined : [host, random.pick(held)];
  }

  // The steps.

  enqueue(random: Random): void {
    random.pick(this.hosts).enqueue(this.randomRequest(random), this.randomKey(random));
  }

  enqueueMany(random: Random): void {
    const host = random.pick(this.hosts);
    const key = this.randomKey(random);
    for (let i = 5 + random.int(50); i > 0; i--) {
      host.enqueue(this.randomRequest(random), random.chance(0.7) ? key : this.randomKey(random));
    }
  }

  /** A flow that may be at its cap waits; then gates close, most without a word, and another flow comes. */
  enqueueAtCap(random: Random): void {
    const host = random.pick(this.hosts);
    const priority = random.pick(priorities);
    for (const { turnTo } of this.dials) turnTo(0);
    for (let i = 2 + random.int(3); i > 0; i--)
      host.enqueue(this.randomRequest(random), { fairnessId: random.pick(['a', 'b']), priority });
    for (const { turnTo } of this.dials) turnTo(2);
    host.enqueue(this.randomRequest(random), { fairnessId: 'c', priority });
  }

  tryEnqueue(random: Random): void {
    random.pick(this.hosts).tryEnqueue(this.randomRequest(random), this.randomKey(random));
  }

  run(random: Random): void {
    const kind = random.int(4);
    const work = (): Promise<string> | string => {
      if (kind === 0) return 'done';
      if (kind === 1) throw new Error('work');
      return new Promise((resolve, reject) => {
        this.works.push(() => (kind === 2 ? resolve('done') : reject(new Error('work'))));
      });
    };
    random.pick(this.hosts).run(this.randomRequest(random), this.randomKey(random), work);
  }

  finishWork(random: Random): void {
    if (this.works.length > 0) for (const finish of this.works.splice(random.int(this.works.length), 1)) finish();
  }

  release(random: Random): void {
    const [host, lease] = this.randomLease(random) ?? [];
    if (lease === undefined) return;
    host?.release(lease);
    if (random.chance(0.2)) lease[Symbol.dispose]();
  }

  releaseMany(random: Random): void {
    for (const lease of random.pick(this.hosts).leases) if (random.chance(0.7)) lease.release();
  }

  bind(random: Random): void {
    const [host, lease] = this.randomLease(random) ?? [];
    if (host === undefined || lease === undefined || this.endpoints.length === 0) return;
    const endpoint = random.pick(this.endpoints);
    const isRight = !lease.isReleased && this.pool?.get(endpoint.id) === endpoint;
    try {
      host.bind(lease, endpoint);
      host.expect(isRight, 'bind took what it must refuse');
    } catch (error) {
      host.expect(error instanceof FlowConfigError && !isRight, `bind refused: ${String(error)}`);
    }
  }

  requeue(random: Random): void {
    const host = random.pick(this.hosts);
    const evicted = host.leases.filter((lease) => (lease.isEvicted || lease.isPutOff) && !lease.isReleased);
    const lease =
      evicted.length > 0 && random.chance(0.9) ? random.pick(evicted) : host.leases[random.int(host.leases.length)];
    if (lease !== undefined) host.requeue(lease);
  }

  useLease(random: Random): void {
    const [, lease] = this.randomLease(random) ?? [];
    if (random.chance(0.5)) lease?.report({ promptTokens: random.int(100), completionTokens: random.int(100) });
    else lease?.abort(new Error('evicted in flight'));
  }

  /** What the host tells of an answer, or of the want of one. */
  answer(random: Random): void {
    const [host, lease] = this.randomLease(random) ?? [];
    const kind = random.int(6);
    if (kind === 0) lease?.unsent();
    else if (kind === 1) lease?.endSession();
    else if (kind === 2) lease?.report({ promptTokens: random.int(8) });
    else lease?.answered(tangledAnswer(random));
    if (lease?.isPutOff === true && !lease.isReleased && random.chance(0.5)) host?.requeue(lease);
  }

  abort(random: Random): void {
    if (this.signals.length > 0) random.pick(this.signals.slice(-12)).abort();
  }

  abortMany(random: Random): void {
    for (const source of this.signals) if (random.chance(0.8)) source.abort();
  }

  advance(random: Random): void {
    this.clock.advance(random.pick([0, 1, 5, 25, 60, 300]));
  }

  advanceLong(random: Random): void {
    this.clock.advance(random.pick([recheckIntervalMs, 1500, 6000]));
  }

  /** Every silent detector is asked again, and then nothing waits that may go. */
  lookAgain(): void {
    this.clock.advance(recheckIntervalMs);
  }

  setBack(random: Random): void {
    if (this.clock.runsBackwards && this.hosts.some(({ waiting }) => waiting.size > 0))
      reached.saw('the clock is set back while requests wait');
    this.clock.setBack(random.pick([1, 30, 2000]));
  }

  addServer(random: Random): void {
    this.addEndpoint(random);
  }

  removeServer(random: Random): void {
    this.pool?.remove(`e${random.int(4)}`);
  }

  /** A label, the state or the weight changes, or a mark of overload is set or taken off. */
  touchServer(random: Random): void {
    const id = `e${random.int(4)}`;
    const kind = random.int(4);
    if (random.chance(0.3))
      this.pool?.update(id, {
        state: random.pick(['ready', 'ready', 'ill', 'draining']),
        weight: random.pick([0.5, 1, 3]),
      });
    else if (kind === 0) this.pool?.update(id, { labels: this.randomLabels(random) });
    else if (kind === 1) this.pool?.clearOverloaded(id);
    else this.pool?.markOverloaded(id, random.pick([1, 20, 200, 3000]));
  }

  reportLoad(random: Random): void {
    const endpoint = this.pool?.get(`e${random.int(4)}`);
    if (endpoint === undefined) return;
    const sampledAtMs = this.clock.now() - (random.chance(0.3) ? random.int(30) : 0);
    const isNews = endpoint.metrics === undefined || sampledAtMs >= endpoint.metrics.sampledAtMs;
    if (isNews) for (const host of this.hosts) host.sampled(endpoint, sampledAtMs);
    const load = {
      waitingQueueSize: random.int(5),
      runningRequests: random.int(5),
      kvCacheUsage: random.next(),
      sampledAtMs,
    };
    this.pool?.report(endpoint.id, load);
  }

  turnDial(random: Random): void {
    if (this.dials.length > 0) random.pick(this.dials).turnTo(random.pick([0, 0.3, 0.8, 1, 2]));
    if (this.adaptive.length > 0) random.pick(this.adaptive).observe({ ttftMs: random.pick([10, 10, 200]) });
  }

  reconfigure(random: Random): void {
    const host = random.pick(this.hosts);
    const [detector, gate] = this.randomDetector(random);
    const [usageLimitPolicy, ceilings] = this.randomUsageLimit(random);
    const apply = (changes: Partial<Options>, rules: Partial<GateRules> = {}): void => {
      // Before the call, which may call back.
      host.gate = { ...host.gate, ...rules };
      host.reconfiguredAtMs = this.clock.now();
      host.turns.forget();
      host.noteReload(changes);
      host.flow.reconfigure(changes);
    };
    // A reload that brings or takes detectors touches most.
    switch (this.isTangled && random.chance(0.4) ? 3 : random.int(10)) {
      case 0:
        return apply({ limits: this.randomLimits(random, 3) });
      case 1:
        return apply({ bands: this.randomBands(random) });
      case 2:
        return apply(this.randomTemplates(random));
      case 3:
        return apply({ saturationDetector: detector, constraints: this.randomConstraints(random) }, gate);
      case 4:
        return apply({ usageLimitPolicy }, { ceilings });
      case 5:
        return apply(this.randomTtls(random));
      case 6:
        return apply({ gate: this.randomGate(random), ...this.randomIdleTimes(random), maxFlows: 1 + random.int(6) });
      case 7:
        return apply(this.randomExtras(random));
      case 8:
        return apply(this.randomPlacement(random));
      default:
        return apply({
          maxBands: 6 + random.int(4),
          endpointPicker: this.pool === undefined ? undefined : this.randomPicker(random),
        });
    }
  }

  refreshFlow(random: Random): void {
    const host = random.pick(this.hosts);
    this.weightOfA = random.pick([1, 3, 8]);
    host.turns.forget();
    const name = random.pick(['a', 'b', 'c']);
    const weightsOf = (): number[] => host.weightsOf(name);
    const before = weightsOf();
    host.flow.refreshFlow(name);
    if (before.some((weight, i) => weight !== weightsOf()[i]))
      reached.saw('the weight of a flow changes while it waits');
  }

  look(random: Random): void {
    const { flow } = random.pick(this.hosts);
    if (random.chance(0.5)) flow.stats();
    else overviewOf(flow, { flows: 'all' });
  }

  close(random: Random): void {
    if (random.chance(0.08)) random.pick(this.hosts).close(random.pick([0, 1, 100, 3000]));
  }
}

/** The steps by name; those of time come from outside only. */
const inside = [
  'enqueue',
  'tryEnqueue',
  'run',
  'release',
  'bind',
  'requeue',
  'useLease',
  'abort',
  'addServer',
  'removeServer',
  'touchServer',
  'reportLoad',
  'turnDial',
  'reconfigure',
  'refreshFlow',
  'answer',
  'look',
  'close',
] as const;
const outside = [
  ...inside,
  'enqueue',
  'enqueue',
  'enqueueMany',
  'enqueueAtCap',
  'finishWork',
  'releaseMany',
  'abortMany',
  'advance',
  'advance',
  'advanceLong',
  'lookAgain',
  'lookAgain',
  'setBack',
] as const;

export type StepKind = (typeof outside)[number];
export const stepKinds: readonly StepKind[] = outside;

const steps: Readonly<Record<StepKind, (this: World, random: Random) => void>> = {
  enqueue: World.prototype.enqueue,
  enqueueMany: World.prototype.enqueueMany,
  enqueueAtCap: World.prototype.enqueueAtCap,
  tryEnqueue: World.prototype.tryEnqueue,
  run: World.prototype.run,
  finishWork: World.prototype.finishWork,
  release: World.prototype.release,
  releaseMany: World.prototype.releaseMany,
  bind: World.prototype.bind,
  requeue: World.prototype.requeue,
  useLease: World.prototype.useLease,
  abort: World.prototype.abort,
  abortMany: World.prototype.abortMany,
  advance: World.prototype.advance,
  advanceLong: World.prototype.advanceLong,
  lookAgain: World.prototype.lookAgain,
  setBack: World.prototype.setBack,
  addServer: World.prototype.addServer,
  removeServer: World.prototype.removeServer,
  touchServer: World.prototype.touchServer,
  reportLoad: World.prototype.reportLoad,
  turnDial: World.prototype.turnDial,
  reconfigure: World.prototype.reconfigure,
  refreshFlow: World.prototype.refreshFlow,
  answer: World.prototype.answer,
  look: World.prototype.look,
  close: World.prototype.close,
};

function tokensOf(leases: readonly Lease[]): number {
  return sumOf(leases, (lease) => lease.tokens);
}

function sumOf<T>(all: readonly T[], figure: (one: T) => number): number {
  return all.reduce((sum, one) => sum + figure(one), 0);
}
