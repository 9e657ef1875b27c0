/**
 * May a band dispatch now? Compares saturation and ceiling, and contains every fault of foreign code. Invariant: an
 * empty pool dispatches nothing; every detector, constraint and listener is found here, and nowhere else.
 */
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import type { AvailablePool } from '../endpoints/available-pool.js';
import type { EndpointView, PoolView } from '../endpoints/endpoint.js';
import type { Endpoint } from '../endpoints/seat-pool.js';
import type { BandRegistry } from '../tiers/band-registry.js';
import type { PriorityBand } from '../tiers/priority-band.js';
import { Ceilings } from './ceilings/ceilings.js';
import type { UsageLimitPolicy } from './ceilings/usage-limit-policy.js';
import type { Constraint } from './constraint.js';
import { ConstraintList, type ConstraintTerms } from './constraint-list.js';
import { GuardedDetector, type GuardedDetectorSettings } from './guarded-detector.js';
import { isConstraint, partsOf } from './parts.js';
import type { SaturationDetector } from './saturation-detector.js';
import type { SeatListener } from './seat-listener.js';
import { SeatListeners } from './seat-listeners.js';
import type { SeatReserve } from './seat-reserve.js';
import type { SeatView, ServerAnswer } from './server-answer.js';

export interface GateOptions {
  readonly gate: GuardedDetectorSettings & { readonly recheckIntervalMs: number };
  /** Judges the bands that have no detector of their own. */
  readonly saturationDetector: SaturationDetector;
  readonly constraints: readonly Constraint[];
  readonly seatListener?: SeatListener | undefined;
  readonly usageLimitPolicy: UsageLimitPolicy;
  readonly bands: readonly (DetectedBand & { readonly priority: number })[];
  readonly defaultBand: DetectedBand;
  readonly defaultNegativeBand: DetectedBand;
}

interface DetectedBand {
  readonly saturationDetector: SaturationDetector | undefined;
  readonly endpoints?: readonly unknown[] | undefined;
}

export class Gate {
  readonly constraints: ConstraintList;
  readonly seats: SeatListeners;
  /** True when somebody hears of dispatches. */
  hearsDispatches = false;
  /** The seats that bands leave free for those above; undefined unless running requests may be evicted. */
  reserve: SeatReserve | undefined = undefined;
  private readonly pool: PoolView;
  /** The pool, if it tells which endpoints are available; undefined without a pool: its endpoint always is. */
  private readonly members: AvailablePool | undefined;
  private readonly bands: BandRegistry;
  private readonly errors: PluginErrorSink;
  private readonly onAnnounced: () => void;
  private ceilings: Ceilings;
  private options: GateOptions;
  private shared: GuardedDetector;
  /** Detectors that judge single bands, the shared one not among them. */
  private own: readonly GuardedDetector[] = [];
  /** The detector that judges the bands of a priority; undefined while no band has its own. */
  private judgeOf: ((priority: number) => GuardedDetector) | undefined = undefined;

  constructor(
    pool: PoolView | AvailablePool,
    bands: BandRegistry,
    errors: PluginErrorSink,
    options: GateOptions,
    onAnnounced: () => void,
  ) {
    this.pool = pool;
    this.members = 'refresh' in pool ? pool : undefined;
    this.bands = bands;
    this.errors = errors;
    this.options = options;
    this.onAnnounced = onAnnounced;
    this.ceilings = new Ceilings(bands, errors, options.usageLimitPolicy);
    this.constraints = new ConstraintList(bands, errors, onAnnounced);
    this.seats = new SeatListeners(errors);
    this.shared = this.guarded(options.saturationDetector, []);
    this.install([], []);
  }

  /** `running`: the seats that are taken. */
  configure(options: GateOptions, running: Iterable<SeatView>): void {
    this.options = options;
    this.ceilings = new Ceilings(this.bands, this.errors, options.usageLimitPolicy);
    const before = this.detectors();
    this.shared = this.guarded(options.saturationDetector, before);
    this.install(before, running);
    const now = new Set(this.detectors());
    for (const detector of before) if (!now.has(detector)) detector.stop();
    for (const detector of now) detector.configure(options.gate);
  }

  /** The last reading of the shared detector, scaled so that 1 is full; 0 before the first. */
  get saturation(): number {
    return this.shared.saturation;
  }

  /** What a band was last judged by; the ceiling is without the part that it leaves free for those above. */
  readingFor(band: PriorityBand): { saturation: number; ceiling: number; isFailing: boolean } {
    const { saturation, isFailing } = this.detectorOf(band);
    return { saturation, ceiling: this.limitOf(band), isFailing };
  }

  /** Room that was evicted for a band stays free for it, as long as this says; undefined: not at all. */
  keepFree(reserve: SeatReserve | undefined): void {
    this.reserve = reserve;
  }

  stop(): void {
    for (const detector of this.detectors()) detector.stop();
    this.constraints.stop();
  }

  /** Reads the detectors and judges one band. */
  admits(band: PriorityBand, nowMs: number): boolean {
    return this.read(nowMs) && this.judge(band);
  }

  /** Reads the detectors. False when the pool is empty, and then they are not asked. */
  read(nowMs: number): boolean {
    if (this.members !== undefined && this.isPoolEmpty(nowMs)) return false;
    this.reserve?.refresh(nowMs);
    const floor = this.constraints.fades ? this.constraints.fullness(this.pool.endpoints, nowMs) : 0;
    this.shared.read(this.pool, nowMs, floor);
    if (this.judgeOf !== undefined) for (const detector of this.own) detector.read(this.pool, nowMs, floor);
    return true;
  }

  /** Ranks the bands and judges one of them by the last reading. */
  judge(band: PriorityBand): boolean {
    // Asked here, because ceilings mostly stay as they are (test/structural/request-path).
    const isRanked = this.ceilings.isConstant && (band.isConfigured || band.waiting > 0);
    if (!isRanked || this.ceilings.version !== this.bands.version) this.ceilings.rank(band, this.shared.saturation);
    if (this.judgeOf !== undefined || this.reserve !== undefined) return this.isOpenFor(band);
    return this.shared.saturation < band.ceiling && !(this.shared.isFailing && this.shared.holdsBackAll);
  }

  /** Judges one more band by the last reading; its ceiling is set when it has requests waiting. */
  isOpenFor(band: PriorityBand): boolean {
    const detector = this.detectorOf(band);
    return detector.saturation < this.limitOf(band) && !(detector.isFailing && detector.holdsBackAll);
  }

  /** How full the pool is; 1 when it is empty. */
  measure(nowMs: number): number {
    this.members?.refresh(nowMs);
    return this.shared.read(this.pool, nowMs, this.constraints.fullness(this.pool.endpoints, nowMs));
  }

  /** True when each endpoint is ill, draining, marked, or unknown to the shared detector. Mostly O(1). */
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
    return this.members?.returnsAtMs ?? Infinity;
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
    const announces = this.shared.announces && this.own.every((each) => each.announces);
    const reopens = this.ceilings.reopens && this.saturation < 1;
    const fades = this.constraints.fades && this.bands.all().some((band) => band.waiting > 0 && !this.isOpenFor(band));
    if ((announces && !reopens && !fades) || isPoolEmpty) return Infinity;
    return this.options.gate.recheckIntervalMs;
  }

  /** The part of `endpoints` that the band's detector would send one more request to. */
  withRoom(endpoints: readonly EndpointView[], band: PriorityBand | undefined, nowMs: number): readonly EndpointView[] {
    return this.detectorOf(band).withRoom(endpoints, nowMs);
  }

  /** Requests that fit at an endpoint; undefined where the shared detector does not tell. */
  seatsOf(endpoint: EndpointView, nowMs: number): number | undefined {
    return this.shared.seatsOf(endpoint, nowMs);
  }

  /** Tells of a dispatch. Every detector hears of every seat: all of them judge the same pool. */
  dispatched(endpoint: EndpointView, seat: SeatView, nowMs: number): void {
    this.seats.tell('dispatched', endpoint, nowMs, seat);
    if (this.ceilings.hearsDispatches) this.ceilings.dispatched(seat.item.priority);
  }

  /** Tells what the server of a running request answered. */
  answered(endpoint: EndpointView, seat: SeatView, answer: ServerAnswer, nowMs: number): void {
    this.seats.tell('answered', endpoint, nowMs, seat, answer);
    // It may close a circuit, long before the request ends.
    this.onAnnounced();
  }

  /** True when the gate may be closed for a band and open for one below it. False while the pool is empty. */
  get judgesApart(): boolean {
    return this.judgeOf !== undefined && this.pool.endpoints.length > 0;
  }

  private limitOf({ ceiling, priority }: PriorityBand): number {
    return this.reserve === undefined ? ceiling : this.reserve.limit(priority, ceiling);
  }

  /** The shared one for no band in particular. */
  private detectorOf(band: PriorityBand | undefined): GuardedDetector {
    return this.judgeOf === undefined || band === undefined ? this.shared : this.judgeOf(band.priority);
  }

  /** Of the pool, and of single bands. */
  detectors(): readonly GuardedDetector[] {
    return [this.shared, ...this.own];
  }

  /** Sets up the detectors of single bands, constraints and listeners; `reusable` detectors keep their state. */
  private install(reusable: readonly GuardedDetector[], running: Iterable<SeatView>): void {
    const { bands, defaultBand, defaultNegativeBand, constraints, seatListener, gate } = this.options;
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
    this.own = [...all];
    const ofBand = (priority: number): GuardedDetector =>
      byPriority.get(priority) ?? (priority < 0 ? ofNegativeTemplate : ofTemplate);
    this.judgeOf = all.size === 0 ? undefined : ofBand;
    const listed = constraints.map((plugin) => ({ plugin, judges: undefined, isFor: undefined, isRead: true }));
    // The constraints that a detector has as parts judge the requests that it judges.
    const inDetectors = this.detectors().flatMap((detector): ConstraintTerms[] => {
      const isFor = this.judgeOf && ((band?: PriorityBand): boolean => this.detectorOf(band) === detector);
      return detector.parts.flatMap(({ plugin, judges }) =>
        isConstraint(plugin) ? { plugin, judges, isFor, isRead: false } : [],
      );
    });
    const terms = [...listed, ...inDetectors];
    const usesGroups = [...bands, defaultBand, defaultNegativeBand].some(({ endpoints }) => endpoints !== undefined);
    this.constraints.configure(terms, gate.recheckIntervalMs, usesGroups);
    const parts = partsOf(...constraints, ...this.detectors().map(({ detector }) => detector));
    this.seats.configure(parts, seatListener, running);
    this.hearsDispatches = this.seats.hears.dispatched || this.ceilings.hearsDispatches;
  }

  private guarded(detector: SaturationDetector, known: readonly GuardedDetector[]): GuardedDetector {
    const same = known.find((each) => each.detector === detector);
    return same ?? new GuardedDetector(detector, this.options.gate, this.errors, this.onAnnounced);
  }
}
