/** One detector as the gate reads it: what it throws, or answers out of range, is reported and contained, and hysteresis is applied. */

import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import type { EndpointView, PoolView } from '../endpoints/endpoint.js';
import type { SaturationDetector } from './saturation-detector.js';

export interface GuardedDetectorSettings {
  readonly closeAt: number;
  readonly openAt: number;
  readonly failValue: number;
}

export class GuardedDetector {
  /** The last reading, scaled so that 1 is full; 0 before the first. */
  saturation = 0;
  readonly detector: SaturationDetector;
  private isReading = false;
  /** True when the last reading could not be had. */
  isFailing = false;
  private isLatched = false;
  /** Stops the detector's announcements; undefined while it makes none. */
  private unsubscribe: (() => void) | undefined = undefined;
  private settings: GuardedDetectorSettings;
  private readonly errors: PluginErrorSink;

  constructor(detector: SaturationDetector, settings: GuardedDetectorSettings, errors: PluginErrorSink, onAnnounced: () => void) {
    this.detector = detector;
    this.settings = settings;
    this.errors = errors;
    this.subscribe(onAnnounced);
  }

  configure(settings: GuardedDetectorSettings): void {
    const { closeAt, openAt } = this.settings;
    if (settings.closeAt !== closeAt || settings.openAt !== openAt) this.isLatched = false;
    this.settings = settings;
  }

  /** True when every change of the reading announces itself. */
  get announces(): boolean {
    return this.unsubscribe !== undefined && !this.isFailing && this.detector.isGuessing !== true;
  }

  /** Asks the detector. An empty pool is full. */
  read(pool: PoolView, nowMs: number): number {
    this.saturation = pool.endpoints.length === 0 ? 1 : this.latch(this.ask(pool, nowMs));
    return this.saturation;
  }

  /** May a band with this ceiling dispatch? A fail value from 1 up means full, also to a ceiling above it. */
  isBelow(ceiling: number): boolean {
    return this.saturation < ceiling && !(this.isFailing && this.settings.failValue >= 1);
  }

  /** Those of `endpoints` that the detector would send one more request to. */
  withRoom(endpoints: readonly EndpointView[], nowMs: number): readonly EndpointView[] {
    if (this.detector.filter === undefined) return endpoints;
    try {
      const kept: unknown = this.detector.filter(endpoints, nowMs);
      if (Array.isArray(kept)) return kept;
      this.failed(new TypeError('filter must return an array of endpoints'));
    } catch (error) {
      this.failed(error);
    }
    return endpoints;
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

  /** Ends the announcements. */
  stop(): void {
    try {
      this.unsubscribe?.();
    } catch (error) {
      this.failed(error);
    }
    this.unsubscribe = undefined;
  }

  private subscribe(onAnnounced: () => void): void {
    if (this.detector.subscribe === undefined) return;
    try {
      // What it announces while it is being read, it answers anyway.
      this.unsubscribe = this.detector.subscribe(() => {
        if (!this.isReading) onAnnounced();
      });
    } catch (error) {
      this.failed(error);
    }
  }

  private ask(pool: PoolView, nowMs: number): number {
    const { closeAt, failValue } = this.settings;
    this.isReading = true;
    try {
      const reading = this.detector.saturation(pool, nowMs);
      if (typeof reading === 'number' && reading >= 0 && reading < Number.POSITIVE_INFINITY) {
        this.isFailing = false;
        return closeAt === 1 ? reading : reading / closeAt;
      }
      this.failed(new RangeError(`saturation must be a finite number from 0 up; got ${String(reading)}`));
    } catch (error) {
      this.failed(error);
    } finally {
      this.isReading = false;
    }
    this.isFailing = true;
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

  private failed(error: unknown): void {
    this.errors.pluginFailed('saturationDetector', this.detector.type, error);
  }
}
