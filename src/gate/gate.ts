/**
 * May a band dispatch now? Saturation against the band's ceiling, with everything that foreign code can get wrong contained.
 *
 * Invariant: an empty pool dispatches nothing; ceilings never rise as priority falls.
 */

import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import type { EndpointView, PoolView } from '../endpoints/endpoint.js';
import type { BandTable } from '../tiers/band-table.js';
import type { PriorityBand } from '../tiers/priority-band.js';
import type { UsageLimitPolicy } from './ceilings/usage-limit-policy.js';
import { GuardedDetector, type GuardedDetectorSettings } from './guarded-detector.js';
import type { SaturationDetector } from './saturation-detector.js';

interface GateSettings extends GuardedDetectorSettings {
  readonly recheckIntervalMs: number;
}

/** What the gate is configured by. */
export interface GateOptions {
  readonly gate: GateSettings;
  /** Judges the bands that have no detector of their own. */
  readonly saturationDetector: SaturationDetector;
  readonly usageLimitPolicy: UsageLimitPolicy;
  readonly bands: readonly DetectedBand[];
  readonly defaultBand: DetectedBand;
  readonly defaultNegativeBand: DetectedBand;
}

interface DetectedBand {
  readonly saturationDetector: SaturationDetector | undefined;
}

export class Gate {
  private ceilingsVersion = -1;
  private readonly pool: PoolView;
  private readonly bands: BandTable;
  private readonly errors: PluginErrorSink;
  private readonly onAnnounced: () => void;
  private options: GateOptions;
  private shared: GuardedDetector;
  /** Those of the bands that have a detector of their own; undefined while none has. */
  private own: Map<SaturationDetector, GuardedDetector> | undefined = undefined;

  constructor(pool: PoolView, bands: BandTable, errors: PluginErrorSink, options: GateOptions, onAnnounced: () => void) {
    this.pool = pool;
    this.bands = bands;
    this.errors = errors;
    this.options = options;
    this.onAnnounced = onAnnounced;
    this.shared = this.makeSensor(options.saturationDetector);
    this.own = this.ownSensors();
  }

  configure(options: GateOptions): void {
    this.options = options;
    this.ceilingsVersion = -1;
    const before = this.sensors();
    const kept = before.find(({ detector }) => detector === options.saturationDetector);
    this.shared = kept ?? this.makeSensor(options.saturationDetector);
    this.own = this.ownSensors(before);
    const now = new Set(this.sensors());
    for (const sensor of before) if (!now.has(sensor)) sensor.stop();
    for (const sensor of now) sensor.configure(options.gate);
  }

  /** The last reading of the shared detector, scaled so that 1 is full; 0 before the first. */
  get saturation(): number {
    return this.shared.saturation;
  }

  /** The last reading that a band is judged by. */
  saturationFor(band: PriorityBand): number {
    return this.sensorOf(band).saturation;
  }

  /** The same, undefined when the detector failed. */
  measured(band: PriorityBand): number | undefined {
    const sensor = this.sensorOf(band);
    return sensor.isFailing ? undefined : sensor.saturation;
  }

  /** What a band was judged by last. */
  readingFor(band: PriorityBand): { saturation: number; ceiling: number } {
    return { saturation: this.saturationFor(band), ceiling: band.ceiling };
  }

  /** Ends the detectors' announcements. */
  stop(): void {
    for (const sensor of this.sensors()) sensor.stop();
  }

  /** Reads the detectors and judges one band. */
  admits(band: PriorityBand, nowMs: number): boolean {
    if (this.pool.endpoints.length === 0) return false;
    this.shared.read(this.pool, nowMs);
    if (this.own !== undefined) for (const sensor of this.own.values()) sensor.read(this.pool, nowMs);
    const areConstant = this.options.usageLimitPolicy.constant === true;
    if (!areConstant || this.ceilingsVersion !== this.bands.version || !isRanked(band)) this.setCeilings(band);
    return this.isOpenFor(band);
  }

  /** Judges one more band by the last reading; its ceiling is set when it has requests waiting. */
  isOpenFor(band: PriorityBand): boolean {
    return this.sensorOf(band).isBelow(band.ceiling);
  }

  /** How full the pool is; 1 when it is empty. */
  measure(nowMs: number): number {
    return this.shared.read(this.pool, nowMs);
  }

  /** Ms until a closed gate should be read again; Infinity when every change announces itself. */
  get recheckMs(): number {
    const reopens = this.options.usageLimitPolicy.reopens === true && this.saturation < 1;
    if ((this.announces && !reopens) || this.pool.endpoints.length === 0) return Number.POSITIVE_INFINITY;
    return this.options.gate.recheckIntervalMs;
  }

  /** Those of `endpoints` that the band's detector would send one more request to. */
  withRoom(endpoints: readonly EndpointView[], band: PriorityBand | undefined, nowMs: number): readonly EndpointView[] {
    return (band === undefined ? this.shared : this.sensorOf(band)).withRoom(endpoints, nowMs);
  }

  /** Tells the usage-limit policy of a dispatch. */
  passed(priority: number): void {
    const { usageLimitPolicy } = this.options;
    if (usageLimitPolicy.dispatched === undefined) return;
    try {
      usageLimitPolicy.dispatched(priority);
    } catch (error) {
      this.errors.pluginFailed('usageLimit', usageLimitPolicy.type, error);
    }
  }

  /** Every detector hears of every seat: all of them judge the same pool. */
  dispatched(endpoint: EndpointView, nowMs: number): void {
    this.shared.dispatched(endpoint, nowMs);
    if (this.own !== undefined) for (const sensor of this.own.values()) sensor.dispatched(endpoint, nowMs);
  }

  released(endpoint: EndpointView, nowMs: number): void {
    this.shared.released(endpoint, nowMs);
    if (this.own !== undefined) for (const sensor of this.own.values()) sensor.released(endpoint, nowMs);
  }

  /** True when a detector wants to know when a seat was given back. */
  get hearsReleases(): boolean {
    return this.own !== undefined || this.shared.detector.released !== undefined;
  }

  /** True when the gate may be closed for a band and open for one below it. False while the pool is empty. */
  get judgesApart(): boolean {
    return this.own !== undefined && this.pool.endpoints.length > 0;
  }

  private get announces(): boolean {
    return this.own === undefined ? this.shared.announces : this.sensors().every((sensor) => sensor.announces);
  }

  private sensorOf(band: PriorityBand): GuardedDetector {
    const { own } = this;
    const detector = own === undefined ? undefined : band.settings.saturationDetector;
    return detector === undefined ? this.shared : (own?.get(detector) ?? this.shared);
  }

  private sensors(): GuardedDetector[] {
    return [this.shared, ...(this.own?.values() ?? [])];
  }

  private ownSensors(reusable: readonly GuardedDetector[] = []): Map<SaturationDetector, GuardedDetector> | undefined {
    const sensors = new Map<SaturationDetector, GuardedDetector>();
    const { bands, defaultBand, defaultNegativeBand } = this.options;
    for (const { saturationDetector: detector } of [...bands, defaultBand, defaultNegativeBand]) {
      if (detector === undefined || detector === this.shared.detector || sensors.has(detector)) continue;
      sensors.set(detector, reusable.find((sensor) => sensor.detector === detector) ?? this.makeSensor(detector));
    }
    return sensors.size > 0 ? sensors : undefined;
  }

  private makeSensor(detector: SaturationDetector): GuardedDetector {
    return new GuardedDetector(detector, this.options.gate, this.errors, this.onAnnounced);
  }

  /** Ranks the configured bands, those with requests waiting, and the one that is judged. */
  private setCeilings(judged: PriorityBand): void {
    const { usageLimitPolicy } = this.options;
    this.ceilingsVersion = isRanked(judged) ? this.bands.version : -1;
    const bands = this.bands.all().filter((band) => isRanked(band) || band === judged);
    const ceilings = new Array<number>(bands.length).fill(1);
    try {
      usageLimitPolicy.computeLimits(
        this.saturation,
        bands.map((band) => band.priority),
        ceilings,
      );
    } catch (error) {
      this.errors.pluginFailed('usageLimit', usageLimitPolicy.type, error);
      ceilings.fill(1);
    }
    let previous = Number.POSITIVE_INFINITY;
    for (let i = 0; i < bands.length; i++) {
      const ceiling = this.sound(ceilings[i]);
      previous = Math.min(previous, ceiling);
      (bands[i] as PriorityBand).ceiling = previous;
    }
  }

  private sound(ceiling: unknown): number {
    if (typeof ceiling === 'number' && !Number.isNaN(ceiling)) return ceiling;
    const { type } = this.options.usageLimitPolicy;
    this.errors.pluginFailed('usageLimit', type, new TypeError(`a ceiling must be a number; got ${String(ceiling)}`));
    return 1;
  }
}

/** Whether the band has a ceiling while it is not judged. */
function isRanked(band: PriorityBand): boolean {
  return band.isConfigured || band.waiting > 0;
}
