/**
 * One detector as the gate reads it: an exception, or an answer out of range, is reported and read as the fail value; hysteresis is
 * applied to the rest.
 */

import { abandon, isPromise } from '../base/async-function.js';
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
  /** True when every change of the last reading announces itself. */
  announces = false;
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

  /** Asks the detector. An empty pool is full. */
  read(pool: PoolView, nowMs: number): number {
    if (pool.endpoints.length === 0) {
      this.saturation = 1;
      return 1;
    }
    const { settings } = this;
    let saturation = settings.failValue;
    this.isReading = true;
    try {
      const reading = this.detector.saturation(pool, nowMs);
      this.isFailing = !(typeof reading === 'number' && reading >= 0 && reading < Number.POSITIVE_INFINITY);
      if (this.isFailing) this.failed(notSaturation(reading));
      else saturation = reading / settings.closeAt;
    } catch (error) {
      this.isFailing = true;
      this.failed(error);
    } finally {
      this.isReading = false;
    }
    this.announces = this.unsubscribe !== undefined && !this.isFailing && this.detector.isGuessing !== true;
    this.saturation = settings.openAt === settings.closeAt ? saturation : this.latch(saturation);
    return this.saturation;
  }

  /** True while the detector fails and its fail value says full, which holds back every band, whatever its ceiling. */
  get holdsBackAll(): boolean {
    return this.isFailing && this.settings.failValue >= 1;
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
      // An announcement during a reading is part of the answer.
      this.unsubscribe = this.detector.subscribe(() => {
        if (!this.isReading) onAnnounced();
      });
    } catch (error) {
      this.failed(error);
    }
  }

  /** Hysteresis: once full, full until the reading has fallen to `openAt`. */
  private latch(saturation: number): number {
    const { closeAt, openAt } = this.settings;
    if (saturation >= 1) this.isLatched = true;
    else if (saturation <= openAt / closeAt) this.isLatched = false;
    return this.isLatched ? Math.max(saturation, 1) : saturation;
  }

  private failed(error: unknown): void {
    this.errors.pluginFailed('saturationDetector', this.detector.type, error);
  }
}

function notSaturation(reading: unknown): RangeError {
  if (isPromise(reading)) abandon(reading);
  return new RangeError(`saturation must be a finite number from 0 up; got ${isPromise(reading) ? 'a promise' : String(reading)}`);
}
