/**
 * May a band dispatch now? Saturation against the band's ceiling, with everything that foreign code can get wrong contained.
 *
 * Invariant: an empty pool dispatches nothing; ceilings never rise as priority falls.
 */
import type { EndpointView, PoolView } from '../endpoints/endpoint.js';
import type { PluginErrorSink } from '../plugins/plugin-errors.js';
import type { BandTable } from '../tiers/1-priority/band-table.js';
import type { PriorityBand } from '../tiers/1-priority/priority-band.js';
import type { SaturationDetector } from './saturation-detector.js';
import type { UsageLimitPolicy } from './usage-limit-policy.js';

export interface GateSettings {
  readonly closeAt: number;
  readonly openAt: number;
  readonly failValue: number;
  readonly recheckIntervalMs: number;
}

export class Gate {
  /** The last reading, scaled so that 1 is full; 0 before the first. */
  saturation = 0;
  private isReading = false;
  private lastReadFailed = false;
  /** Stops the detector's announcements; undefined while it makes none. */
  private unsubscribe: (() => void) | undefined = undefined;
  private isLatched = false;
  private ceilingsVersion = -1;
  private readonly pool: PoolView;
  private readonly bands: BandTable;
  private readonly errors: PluginErrorSink;
  private settings: GateSettings;
  private detector: SaturationDetector;
  private usageLimit: UsageLimitPolicy;
  private readonly onAnnounced: () => void;

  constructor(
    pool: PoolView,
    bands: BandTable,
    errors: PluginErrorSink,
    settings: GateSettings,
    detector: SaturationDetector,
    usageLimit: UsageLimitPolicy,
    onAnnounced: () => void,
  ) {
    this.pool = pool;
    this.bands = bands;
    this.errors = errors;
    this.settings = settings;
    this.detector = detector;
    this.usageLimit = usageLimit;
    this.onAnnounced = onAnnounced;
    this.subscribe();
  }

  configure(settings: GateSettings, detector: SaturationDetector, usageLimit: UsageLimitPolicy): void {
    const { closeAt, openAt } = this.settings;
    if (settings.closeAt !== closeAt || settings.openAt !== openAt || detector !== this.detector) this.isLatched = false;
    this.settings = settings;
    this.usageLimit = usageLimit;
    this.ceilingsVersion = -1;
    if (detector === this.detector) return;
    this.stop();
    this.detector = detector;
    this.subscribe();
  }

  /** Ends the detector's announcements. */
  stop(): void {
    try {
      this.unsubscribe?.();
    } catch (error) {
      this.failed(error);
    }
    this.unsubscribe = undefined;
  }

  /** Reads the detector and judges one band by it. */
  admits(band: PriorityBand, nowMs: number): boolean {
    if (this.pool.endpoints.length === 0) return false;
    this.saturation = this.latch(this.read(nowMs));
    this.setCeilings(band);
    return this.isOpenFor(band);
  }

  /** Judges one more band by the last reading; its ceiling is set when it has requests waiting. */
  isOpenFor(band: PriorityBand): boolean {
    return this.saturation < band.ceiling;
  }

  /** How full the pool is; 1 when it is empty. */
  measure(nowMs: number): number {
    return this.pool.endpoints.length === 0 ? 1 : this.latch(this.read(nowMs));
  }

  /** Ms until a closed gate should be read again; undefined when every change announces itself. */
  get recheckMs(): number | undefined {
    if (this.pool.endpoints.length === 0) return undefined;
    const announces = this.unsubscribe !== undefined && !this.lastReadFailed && this.detector.isGuessing !== true;
    const reopens = this.usageLimit.reopens === true && this.saturation < 1;
    return announces && !reopens ? undefined : this.settings.recheckIntervalMs;
  }

  /** The endpoints that the detector would send one more request to; all of them when it has no preference. */
  eligible(nowMs: number): readonly EndpointView[] {
    const all = this.pool.endpoints;
    if (this.detector.filter === undefined || all.length === 1) return all;
    try {
      const kept = this.detector.filter(all, nowMs);
      return kept.length > 0 ? kept : all;
    } catch (error) {
      this.failed(error);
      return all;
    }
  }

  /** Tells the usage-limit policy of a dispatch. */
  passed(priority: number): void {
    if (this.usageLimit.dispatched === undefined) return;
    try {
      this.usageLimit.dispatched(priority);
    } catch (error) {
      this.errors.pluginFailed('usageLimit', this.usageLimit.type, error);
    }
  }

  dispatched(endpoint: EndpointView, nowMs: number): void {
    if (this.detector.dispatched === undefined) return;
    try {
      this.detector.dispatched(endpoint, nowMs);
    } catch (error) {
      this.failed(error);
    }
  }

  released(endpoint: EndpointView, nowMs: number): void {
    if (this.detector.released === undefined) return;
    try {
      this.detector.released(endpoint, nowMs);
    } catch (error) {
      this.failed(error);
    }
  }

  private subscribe(): void {
    if (this.detector.subscribe === undefined) return;
    try {
      // What it announces while it is being read, it answers anyway.
      this.unsubscribe = this.detector.subscribe(() => {
        if (!this.isReading) this.onAnnounced();
      });
    } catch (error) {
      this.failed(error);
    }
  }

  private read(nowMs: number): number {
    const { closeAt, failValue } = this.settings;
    this.isReading = true;
    try {
      const reading = this.detector.saturation(this.pool, nowMs);
      if (typeof reading === 'number' && reading >= 0 && reading < Number.POSITIVE_INFINITY) {
        this.lastReadFailed = false;
        return closeAt === 1 ? reading : reading / closeAt;
      }
      this.failed(new RangeError(`saturation must be a finite number from 0 up; got ${String(reading)}`));
    } catch (error) {
      this.failed(error);
    } finally {
      this.isReading = false;
    }
    this.lastReadFailed = true;
    return failValue;
  }

  /** Hysteresis: once full, full until the reading has fallen to `openAt`. */
  private latch(saturation: number): number {
    const { closeAt, openAt } = this.settings;
    if (openAt === closeAt) return saturation;
    if (saturation >= 1) this.isLatched = true;
    else if (saturation <= openAt / closeAt) this.isLatched = false;
    return this.isLatched ? Math.max(saturation, 1) : saturation;
  }

  /** Ranks the configured bands, those with requests waiting, and the one that is judged. */
  private setCeilings(judged: PriorityBand): void {
    const isRanked = judged.isConfigured || judged.waiting > 0;
    if (isRanked && this.usageLimit.constant === true && this.ceilingsVersion === this.bands.version) return;
    this.ceilingsVersion = isRanked ? this.bands.version : -1;
    const bands = this.bands.all().filter((band) => band.isConfigured || band.waiting > 0 || band === judged);
    const ceilings = new Array<number>(bands.length).fill(1);
    try {
      this.usageLimit.computeLimits(
        this.saturation,
        bands.map((band) => band.priority),
        ceilings,
      );
    } catch (error) {
      this.errors.pluginFailed('usageLimit', this.usageLimit.type, error);
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
    this.errors.pluginFailed('usageLimit', this.usageLimit.type, new TypeError(`a ceiling must be a number; got ${String(ceiling)}`));
    return 1;
  }

  private failed(error: unknown): void {
    this.errors.pluginFailed('saturationDetector', this.detector.type, error);
  }
}
