/**
 * May a band dispatch now? The gate compares the saturation with the band's ceiling, and contains every fault of
 * foreign code.
 *
 * Invariant: an empty pool dispatches nothing; ceilings never rise as priority falls.
 *
 * Longer than most files, because everything that asks the detectors goes through here.
 */

import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { PluginGuard } from '../base/faults/plugin-guard.js';
import { AvailablePool } from '../endpoints/available-pool.js';
import type { EndpointView, PoolView } from '../endpoints/endpoint.js';
import type { Endpoint } from '../endpoints/endpoint-pool.js';
import type { BandRegistry } from '../tiers/band-registry.js';
import type { PriorityBand } from '../tiers/priority-band.js';
import type { WaitingItem } from '../tiers/waiting-item.js';
import type { UsageLimitPolicy } from './ceilings/usage-limit-policy.js';
import { GuardedDetector, type GuardedDetectorSettings } from './guarded-detector.js';
import type { QuotaFigures } from './quota-figure.js';
import { sumOfQuotas, sumOfSessions } from './reported-figures.js';
import type { RequestWait, SaturationDetector } from './saturation-detector.js';
import { SeatReserve } from './seat-reserve.js';
import type { SeatView, ServerAnswer } from './server-answer.js';
import type { SessionFigures } from './session-figures.js';

interface GateSettings extends GuardedDetectorSettings {
  readonly recheckIntervalMs: number;
}

/** The options that the gate reads. */
export interface GateOptions {
  readonly gate: GateSettings;
  /** Judges the bands that have no detector of their own. */
  readonly saturationDetector: SaturationDetector;
  readonly usageLimitPolicy: UsageLimitPolicy;
  readonly bands: readonly (DetectedBand & { readonly priority: number })[];
  readonly defaultBand: DetectedBand;
  readonly defaultNegativeBand: DetectedBand;
}

interface DetectedBand {
  readonly saturationDetector: SaturationDetector | undefined;
}

/** Detectors of single bands; a band without one of its own is judged by the shared detector. */
interface OwnDetectors {
  /** Every band's own detector; the shared detector is not in it. */
  readonly all: readonly GuardedDetector[];
  readonly byPriority: ReadonlyMap<number, GuardedDetector>;
  readonly ofTemplate: GuardedDetector;
  readonly ofNegativeTemplate: GuardedDetector;
}

export class Gate {
  /** True when a detector or the usage-limit policy hears of dispatches. */
  hearsDispatches = false;
  /** True when a detector hears when a seat is given back. */
  hearsReleases = false;
  /** True when a detector hears what servers answer. */
  hearsAnswers = false;
  /** True when a detector hears what running requests consume. */
  hearsReports = false;
  /** True when a detector judges each request by itself. */
  judgesRequests = false;
  /** The earliest instant at which a request will have room that had none since `forgetRoom` was called. */
  roomAtMs: number = Number.POSITIVE_INFINITY;
  /** The seats that bands leave free for those above; undefined unless running requests may be evicted. */
  reserve: SeatReserve | undefined = undefined;
  private ceilingsVersion = -1;
  /** True when the ceilings depend on the priorities alone. */
  private isConstant = false;
  /** True when the usage-limit policy may open a band though the saturation stays where it is. */
  private mayReopen = false;
  private readonly pool: PoolView;
  /**
   * The pool, if it tells which endpoints are available; undefined without a pool, because the single endpoint always
   * is.
   */
  private readonly members: AvailablePool | undefined;
  private readonly bands: BandRegistry;
  private readonly errors: PluginErrorSink;
  private readonly onAnnounced: () => void;
  private options: GateOptions;
  private usageLimit: PluginGuard;
  private shared: GuardedDetector;
  /** Detectors that judge single bands; undefined while no band has its own. */
  private own: OwnDetectors | undefined = undefined;

  constructor(
    pool: PoolView,
    bands: BandRegistry,
    errors: PluginErrorSink,
    options: GateOptions,
    onAnnounced: () => void,
  ) {
    this.pool = pool;
    this.members = pool instanceof AvailablePool ? pool : undefined;
    this.bands = bands;
    this.errors = errors;
    this.options = options;
    this.usageLimit = new PluginGuard('usageLimit', options.usageLimitPolicy, errors);
    this.onAnnounced = onAnnounced;
    this.shared = this.guarded(options.saturationDetector, []);
    this.install([]);
  }

  configure(options: GateOptions): void {
    this.options = options;
    this.usageLimit = new PluginGuard('usageLimit', options.usageLimitPolicy, this.errors);
    this.ceilingsVersion = -1;
    const before = this.detectors();
    this.shared = this.guarded(options.saturationDetector, before);
    this.install(before);
    const now = new Set(this.detectors());
    for (const detector of before) if (!now.has(detector)) detector.stop();
    for (const detector of now) detector.configure(options.gate);
  }

  /** The last reading of the shared detector, scaled so that 1 is full; 0 before the first. */
  get saturation(): number {
    return this.shared.saturation;
  }

  /** The last reading that a band is judged by. */
  saturationFor(band: PriorityBand): number {
    return this.detectorOf(band).saturation;
  }

  /** The last reading that a band is judged by; undefined when its detector failed. */
  measured(band: PriorityBand): number | undefined {
    const detector = this.detectorOf(band);
    return detector.isFailing ? undefined : detector.saturation;
  }

  /**
   * The reading and the ceiling that a band was last judged by; the ceiling is without the part that the band leaves
   * free.
   */
  readingFor(band: PriorityBand): { saturation: number; ceiling: number } {
    return { saturation: this.saturationFor(band), ceiling: this.limitOf(band) };
  }

  /** How long room that was evicted for a band stays free for it, ms; 0: not at all. */
  keepFree(forMs: number): void {
    if (forMs === 0) this.reserve = undefined;
    else if (this.reserve === undefined) this.reserve = new SeatReserve(forMs);
    else this.reserve.windowMs = forMs;
  }

  /** Ends the detectors' announcements. */
  stop(): void {
    for (const detector of this.detectors()) detector.stop();
  }

  /** Reads the detectors and judges one band. */
  admits(band: PriorityBand, nowMs: number): boolean {
    if (this.members !== undefined && this.isPoolEmpty(nowMs)) return false;
    this.reserve?.refresh(nowMs);
    this.shared.read(this.pool, nowMs);
    if (this.own !== undefined) for (const detector of this.own.all) detector.read(this.pool, nowMs);
    const areConstant = this.isConstant && (band.isConfigured || band.waiting > 0);
    if (!areConstant || this.ceilingsVersion !== this.bands.version) this.setCeilings(band);
    if (this.own !== undefined || this.reserve !== undefined) return this.isOpenFor(band);
    return this.shared.saturation < band.ceiling && !(this.shared.isFailing && this.shared.holdsBackAll);
  }

  /** Judges one more band by the last reading; its ceiling is set when it has requests waiting. */
  isOpenFor(band: PriorityBand): boolean {
    const detector = this.own === undefined ? this.shared : this.detectorOf(band);
    return detector.saturation < this.limitOf(band) && !(detector.isFailing && detector.holdsBackAll);
  }

  /** How full the pool is; 1 when it is empty. */
  measure(nowMs: number): number {
    this.members?.refresh(nowMs);
    return this.shared.read(this.pool, nowMs);
  }

  /**
   * True when no endpoint is available: there is none, each is ill, draining or marked, or the shared detector knows
   * nothing of any. Mostly O(1).
   */
  isPoolEmpty(nowMs: number): boolean {
    if (this.members === undefined) return false;
    this.members.refresh(nowMs);
    const { endpoints } = this.members;
    return endpoints.length === 0 || this.shared.isBlindToAll(endpoints, nowMs);
  }

  /** The available endpoints of which the shared detector knows something. */
  available(nowMs: number): readonly Endpoint[] {
    if (this.members === undefined) return [];
    this.members.refresh(nowMs);
    return this.shared.visible(this.members.endpoints, nowMs);
  }

  /** When the next mark of overload ends; Infinity while there is none. */
  returnsAtMs(nowMs: number): number {
    this.members?.refresh(nowMs);
    return this.members?.returnsAtMs ?? Number.POSITIVE_INFINITY;
  }

  /** The reason why none of the endpoints is available; undefined when one is, or when there are no endpoints. */
  whyUnavailable(nowMs: number): string | undefined {
    if (!this.isPoolEmpty(nowMs)) return undefined;
    if (this.pool.endpoints.length > 0) return 'no server reports its load';
    return this.members?.isWhole ? undefined : 'every server is ill, draining or marked as overloaded';
  }

  /** Ms until a closed gate should be read again; Infinity when every change is announced. */
  get recheckMs(): number {
    const isPoolEmpty = this.pool.endpoints.length === 0;
    const reopens = this.mayReopen && this.saturation < 1;
    if ((this.announces && !reopens) || isPoolEmpty) return Number.POSITIVE_INFINITY;
    return this.options.gate.recheckIntervalMs;
  }

  /** Called before requests are looked at anew. */
  forgetRoom(): void {
    this.roomAtMs = Number.POSITIVE_INFINITY;
  }

  /** The part of `endpoints` that the band's detector would send one more request to. */
  withRoom(endpoints: readonly EndpointView[], band: PriorityBand | undefined, nowMs: number): readonly EndpointView[] {
    return (band === undefined ? this.shared : this.detectorOf(band)).withRoom(endpoints, nowMs);
  }

  /** Requests that fit at an endpoint; undefined where the shared detector does not tell. */
  seatsOf(endpoint: EndpointView, nowMs: number): number | undefined {
    return this.shared.seatsOf(endpoint, nowMs);
  }

  /**
   * The part of `endpoints` that has room for this very request. When there is none, `roomAtMs` says when to look
   * again.
   */
  withRoomFor(
    endpoints: readonly EndpointView[],
    item: WaitingItem,
    band: PriorityBand | undefined,
    nowMs: number,
  ): readonly EndpointView[] {
    const detector = band === undefined ? this.shared : this.detectorOf(band);
    const roomy = detector.withRoomFor(endpoints, item, nowMs);
    if (roomy.length > 0 || endpoints.length === 0) return roomy;
    const wait = detector.waitOf(endpoints, item, nowMs);
    // If a detector does not say when, or names a past instant, a timer asks it again.
    const atMs = wait !== undefined && wait.atMs > nowMs ? wait.atMs : nowMs + this.options.gate.recheckIntervalMs;
    this.roomAtMs = Math.min(this.roomAtMs, atMs);
    return roomy;
  }

  /**
   * The room that the request waits for; undefined when its detector does not judge single requests, or does not say.
   */
  waitOf(
    endpoints: readonly EndpointView[],
    item: WaitingItem,
    band: PriorityBand | undefined,
    nowMs: number,
  ): RequestWait | undefined {
    if (endpoints.length === 0) return undefined;
    return (band === undefined ? this.shared : this.detectorOf(band)).waitOf(endpoints, item, nowMs);
  }

  /** The quotas of all detectors; undefined when none has any. */
  quotas(nowMs: number): QuotaFigures | undefined {
    const all = this.detectors().flatMap((detector) => detector.quotas(nowMs) ?? []);
    return all.length === 0 ? undefined : sumOfQuotas(all);
  }

  /**
   * The sessions of all detectors that limit some; undefined when none does. O(queues that are held back) where one
   * does.
   */
  sessions(nowMs: number): SessionFigures | undefined {
    const tellers = this.detectors().filter((detector) => detector.has('sessions'));
    if (tellers.length === 0) return undefined;
    const held = this.bands.all().flatMap((band) => [...band.held.flows()].flatMap(({ head }) => head ?? []));
    const all = tellers.flatMap((detector) => detector.sessions(held, nowMs) ?? []);
    return all.length === 0 ? undefined : sumOfSessions(all);
  }

  /**
   * Tells the detectors and the usage-limit policy of a dispatch. Every detector hears of every seat: all of them judge
   * the same pool.
   */
  dispatched(endpoint: EndpointView, seat: SeatView, nowMs: number): void {
    this.seatTaken(endpoint, seat, nowMs);
    try {
      const answer: unknown = this.options.usageLimitPolicy.dispatched?.(seat.item.priority);
      if (answer !== undefined) this.usageLimit.ignored(answer);
    } catch (error) {
      this.usageLimit.failed(error);
    }
  }

  /** Tells the detectors that a seat was taken at an endpoint. */
  seatTaken(endpoint: EndpointView, seat: SeatView, nowMs: number): void {
    for (const detector of this.detectors()) detector.tell('dispatched', endpoint, nowMs, seat);
  }

  /** Tells the detectors what the server of a running request answered. */
  answered(endpoint: EndpointView, seat: SeatView, answer: ServerAnswer, nowMs: number): void {
    for (const detector of this.detectors()) detector.answered(endpoint, nowMs, seat, answer);
    // It may close a circuit, long before the request ends.
    this.onAnnounced();
  }

  /** Tells the detectors what a running request consumed so far. */
  reported(endpoint: EndpointView, seat: SeatView, nowMs: number): void {
    for (const detector of this.detectors()) detector.tell('reported', endpoint, nowMs, seat);
  }

  /** Tells the detectors that the session of a request ended. */
  sessionEnded(endpoint: EndpointView, seat: SeatView, nowMs: number): void {
    for (const detector of this.detectors()) detector.tell('sessionEnded', endpoint, nowMs, seat);
  }

  /** Tells the detectors that a seat was given back. */
  released(endpoint: EndpointView, seat: SeatView, nowMs: number): void {
    for (const detector of this.detectors()) detector.tell('released', endpoint, nowMs, seat);
  }

  /** True when the gate may be closed for a band and open for one below it. False while the pool is empty. */
  get judgesApart(): boolean {
    return this.own !== undefined && this.pool.endpoints.length > 0;
  }

  private get announces(): boolean {
    const { shared } = this;
    if (this.own === undefined) return shared.announces && !(shared.fades && holdsAnyBack(this, this.bands));
    const all = this.detectors();
    return (
      all.every(({ announces }) => announces) && !(all.some(({ fades }) => fades) && holdsAnyBack(this, this.bands))
    );
  }

  private limitOf({ ceiling, priority }: PriorityBand): number {
    return this.reserve === undefined ? ceiling : this.reserve.limit(priority, ceiling);
  }

  private detectorOf(band: PriorityBand): GuardedDetector {
    if (this.own === undefined) return this.shared;
    const { byPriority, ofTemplate, ofNegativeTemplate } = this.own;
    return byPriority.get(band.priority) ?? (band.priority < 0 ? ofNegativeTemplate : ofTemplate);
  }

  private detectors(): readonly GuardedDetector[] {
    return this.own === undefined ? [this.shared] : [this.shared, ...this.own.all];
  }

  /** Sets up the detectors of single bands, where there are any; `reusable` ones keep their state. */
  private install(reusable: readonly GuardedDetector[]): void {
    const { bands, defaultBand, defaultNegativeBand, usageLimitPolicy } = this.options;
    const known = [this.shared, ...reusable];
    const detectorFor = ({ saturationDetector }: DetectedBand): GuardedDetector => {
      if (saturationDetector === undefined) return this.shared;
      const detector = this.guarded(saturationDetector, known);
      known.push(detector);
      return detector;
    };
    const byPriority = new Map(bands.map((band) => [band.priority, detectorFor(band)]));
    const ofTemplate = detectorFor(defaultBand);
    const ofNegativeTemplate = detectorFor(defaultNegativeBand);
    const all = new Set([...byPriority.values(), ofTemplate, ofNegativeTemplate]);
    all.delete(this.shared);
    this.own = all.size === 0 ? undefined : { all: [...all], byPriority, ofTemplate, ofNegativeTemplate };
    const hear = (hook: 'dispatched' | 'answered' | 'reported' | 'released' | 'withRoomFor'): boolean =>
      this.detectors().some((detector) => detector.has(hook));
    this.isConstant = this.usageLimit.read(usageLimitPolicy, 'constant') === true;
    this.mayReopen = this.usageLimit.read(usageLimitPolicy, 'reopens') === true;
    this.hearsDispatches = this.usageLimit.has(usageLimitPolicy, 'dispatched') || hear('dispatched');
    this.hearsReleases = hear('released');
    this.hearsAnswers = hear('answered');
    this.hearsReports = hear('reported');
    this.judgesRequests = hear('withRoomFor');
    this.forgetRoom();
  }

  private guarded(detector: SaturationDetector, known: readonly GuardedDetector[]): GuardedDetector {
    return (
      known.find((each) => each.detector === detector) ??
      new GuardedDetector(detector, this.options.gate, this.errors, this.onAnnounced)
    );
  }

  /** Ranks the configured bands, those with requests waiting, and the one that is judged. */
  private setCeilings(judged: PriorityBand): void {
    const { usageLimitPolicy } = this.options;
    this.ceilingsVersion = isRanked(judged) ? this.bands.version : -1;
    const bands = this.bands.all().filter((band) => isRanked(band) || band === judged);
    const ceilings = new Array<number>(bands.length).fill(1);
    const priorities = bands.map((band) => band.priority);
    try {
      const answer: unknown = usageLimitPolicy.computeLimits(this.saturation, priorities, ceilings);
      if (answer !== undefined) this.usageLimit.ignored(answer);
    } catch (error) {
      this.usageLimit.failed(error);
      ceilings.fill(1);
    }
    let previous = Number.POSITIVE_INFINITY;
    for (let i = 0; i < bands.length; i++) {
      const ceiling = this.checkedCeiling(ceilings[i]);
      previous = Math.min(previous, ceiling);
      (bands[i] as PriorityBand).ceiling = previous;
    }
  }

  private checkedCeiling(ceiling: unknown): number {
    if (typeof ceiling === 'number' && !Number.isNaN(ceiling)) return ceiling;
    this.usageLimit.violated('a ceiling must be a number', ceiling);
    return 1;
  }
}

/** True when the band has a ceiling while it is not judged. */
function isRanked(band: PriorityBand): boolean {
  return band.isConfigured || band.waiting > 0;
}

/** True when requests wait in a band that the last reading holds back. O(bands). */
function holdsAnyBack(gate: Gate, bands: BandRegistry): boolean {
  return bands.all().some((band) => band.waiting > 0 && !gate.isOpenFor(band));
}
