/**
 * One detector as the gate reads it: an exception, or an answer out of range, is reported and read as the fail value;
 * hysteresis is applied to the rest.
 */

import { textOf } from '../base/faults/foreign-values.js';
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { PluginGuard } from '../base/faults/plugin-guard.js';
import type { EndpointView, PoolView } from '../endpoints/endpoint.js';
import type { ItemView } from '../tiers/views.js';
import type { QuotaFigures } from './quota-figure.js';
import { readQuotas, readSessions } from './reported-figures.js';
import type { RequestWait, SaturationDetector } from './saturation-detector.js';
import type { SeatView, ServerAnswer } from './server-answer.js';
import type { SessionFigures } from './session-figures.js';
import { hasSameMembers, isPartOf, VisiblePart } from './visible-part.js';

export interface GuardedDetectorSettings {
  readonly closeAt: number;
  readonly openAt: number;
  readonly failValue: number;
}

export class GuardedDetector {
  /** The last reading, scaled so that 1 is full; 0 before the first. */
  saturation = 0;
  readonly detector: SaturationDetector;
  /** True when the reading also falls by time alone. */
  readonly fades: boolean;
  private isReading = false;
  private readonly mayBeBlind: boolean;
  /** True when the detector announces every change of the last reading. */
  announces = false;
  /** True when the last reading failed. */
  isFailing = false;
  private isLatched = false;
  /** The endpoints that it judged last, if it knew nothing of others. */
  private part: VisiblePart | undefined = undefined;
  /** Stops the detector's announcements; undefined while it makes none. */
  private unsubscribe: (() => void) | undefined = undefined;
  private settings: GuardedDetectorSettings;
  private readonly guard: PluginGuard;

  constructor(
    detector: SaturationDetector,
    settings: GuardedDetectorSettings,
    errors: PluginErrorSink,
    onAnnounced: () => void,
  ) {
    this.detector = detector;
    this.settings = settings;
    this.guard = new PluginGuard('saturationDetector', detector, errors);
    this.fades = this.guard.read(detector, 'fades') === true;
    this.mayBeBlind = this.guard.has(detector, 'isBlindTo');
    this.subscribe(onAnnounced);
  }

  /** False when the detector has no such method. */
  has(method: keyof SaturationDetector): boolean {
    return this.guard.has(this.detector, method);
  }

  configure(settings: GuardedDetectorSettings): void {
    const { closeAt, openAt } = this.settings;
    if (settings.closeAt !== closeAt || settings.openAt !== openAt) this.isLatched = false;
    this.settings = settings;
  }

  /** Asks the detector. An empty pool is full. */
  read(pool: PoolView, nowMs: number): number {
    const visible = this.mayBeBlind ? this.visiblePart(pool, nowMs) : pool;
    if (visible.endpoints.length === 0) {
      this.saturation = 1;
      return 1;
    }
    const { settings } = this;
    let saturation = settings.failValue;
    let isFailing = true;
    let announces = false;
    this.isReading = true;
    try {
      const reading = this.detector.saturation(visible, nowMs);
      if (typeof reading === 'number' && reading >= 0 && reading < Number.POSITIVE_INFINITY) {
        isFailing = false;
        announces = this.unsubscribe !== undefined && this.detector.isGuessing !== true;
        saturation = reading / settings.closeAt;
      } else {
        this.guard.failed(new RangeError(`saturation must be a finite number from 0 up; got ${textOf(reading)}`));
        this.guard.ignored(reading);
      }
    } catch (error) {
      this.guard.failed(error);
    } finally {
      this.isReading = false;
    }
    this.isFailing = isFailing;
    this.announces = announces;
    this.saturation = settings.openAt === settings.closeAt ? saturation : this.latch(saturation);
    return this.saturation;
  }

  /** True while the detector fails and its fail value says full, which holds back every band, whatever its ceiling. */
  get holdsBackAll(): boolean {
    return this.isFailing && this.settings.failValue >= 1;
  }

  /** `endpoints` without those of which the detector knows nothing; the same array when it knows all. */
  visible<E extends EndpointView>(endpoints: readonly E[], nowMs: number): readonly E[] {
    const isAnyHidden = this.mayBeBlind && endpoints.some((endpoint) => this.isBlindTo(endpoint, nowMs));
    return isAnyHidden ? endpoints.filter((endpoint) => !this.isBlindTo(endpoint, nowMs)) : endpoints;
  }

  /** True when there are `endpoints`, and the detector knows nothing of any. Mostly O(1). */
  isBlindToAll(endpoints: readonly EndpointView[], nowMs: number): boolean {
    if (!this.mayBeBlind || endpoints.length === 0) return false;
    return endpoints.every((endpoint) => this.isBlindTo(endpoint, nowMs));
  }

  /** The members of `endpoints` to which the detector would send one more request. */
  withRoom(endpoints: readonly EndpointView[], nowMs: number): readonly EndpointView[] {
    try {
      if (this.detector.filter === undefined) return endpoints;
      const kept: unknown = this.detector.filter(endpoints, nowMs);
      if (isPartOf(kept, endpoints)) return kept;
      this.guard.violated('filter must return an array of the endpoints that it was given', kept);
    } catch (error) {
      this.guard.failed(error);
    }
    return endpoints;
  }

  /** Requests that fit at the endpoint; undefined where the detector does not tell. */
  seatsOf(endpoint: EndpointView, nowMs: number): number | undefined {
    try {
      if (this.detector.seatsOf === undefined) return undefined;
      const seats: unknown = this.detector.seatsOf(endpoint, nowMs);
      if (seats === undefined || (typeof seats === 'number' && seats >= 0)) return seats;
      this.guard.violated('seatsOf must return a number from 0 up, or undefined', seats);
    } catch (error) {
      this.guard.failed(error);
    }
    return undefined;
  }

  /** The members of `endpoints` that have room for this very request. */
  withRoomFor(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): readonly EndpointView[] {
    try {
      if (this.detector.withRoomFor === undefined) return endpoints;
      const kept: unknown = this.detector.withRoomFor(endpoints, item, nowMs);
      if (isPartOf(kept, endpoints)) return kept;
      this.guard.violated('withRoomFor must return an array of the endpoints that it was given', kept);
    } catch (error) {
      this.guard.failed(error);
    }
    return endpoints;
  }

  /** When the request has room at one of `endpoints`; undefined when the detector does not say. */
  waitOf(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): RequestWait | undefined {
    try {
      if (this.detector.waitOf === undefined) return undefined;
      const answer: unknown = this.detector.waitOf(endpoints, item, nowMs);
      const wait = readWait(answer);
      if (wait !== undefined) return wait;
      this.guard.violated('waitOf must return { atMs, notBeforeMs, missing }: instants in ms, and a text', answer);
    } catch (error) {
      this.guard.failed(error);
    }
    return undefined;
  }

  /** The quotas that the detector tells of; undefined when it has none. */
  quotas(nowMs: number): QuotaFigures | undefined {
    try {
      if (this.detector.quotas === undefined) return undefined;
      const answer: unknown = this.detector.quotas(nowMs);
      const figures = readQuotas(answer);
      if (figures !== undefined) return figures;
      this.guard.violated('quotas must return figures, with an array named quotas', answer);
    } catch (error) {
      this.guard.failed(error);
    }
    return undefined;
  }

  /**
   * The sessions that the detector limits; undefined when it limits none. `held`: the first request of each queue that
   * is held back.
   */
  sessions(held: readonly ItemView[], nowMs: number): SessionFigures | undefined {
    try {
      if (this.detector.sessions === undefined) return undefined;
      const answer: unknown = this.detector.sessions(held, nowMs);
      const figures = readSessions(answer);
      if (figures !== undefined) return figures;
      this.guard.violated('sessions must return figures of sessions', answer);
    } catch (error) {
      this.guard.failed(error);
    }
    return undefined;
  }

  /** Tells the detector of a seat, where it hears of that. */
  tell(
    news: 'dispatched' | 'reported' | 'released' | 'sessionEnded',
    endpoint: EndpointView,
    nowMs: number,
    seat: SeatView,
  ): void {
    try {
      if (this.detector[news] !== undefined) this.guard.ignored(this.detector[news](endpoint, nowMs, seat));
    } catch (error) {
      this.guard.failed(error);
    }
  }

  answered(endpoint: EndpointView, nowMs: number, seat: SeatView, told: ServerAnswer): void {
    try {
      if (this.detector.answered !== undefined) this.guard.ignored(this.detector.answered(endpoint, nowMs, seat, told));
    } catch (error) {
      this.guard.failed(error);
    }
  }

  /** Ends the announcements. */
  stop(): void {
    try {
      this.guard.ignored(this.unsubscribe?.());
    } catch (error) {
      this.guard.failed(error);
    }
    this.unsubscribe = undefined;
  }

  /**
   * The pool as far as the detector can judge it. The same part is the same object, for detectors that remember their
   * results.
   */
  private visiblePart(pool: PoolView, nowMs: number): PoolView {
    const endpoints = this.visible(pool.endpoints, nowMs);
    if (endpoints === pool.endpoints) return pool;
    const isSame =
      this.part !== undefined && this.part.version === pool.version && hasSameMembers(this.part.endpoints, endpoints);
    if (!isSame) this.part = new VisiblePart(endpoints, pool.version);
    return this.part as VisiblePart;
  }

  private isBlindTo(endpoint: EndpointView, nowMs: number): boolean {
    try {
      const answer: unknown = this.detector.isBlindTo?.(endpoint, nowMs);
      if (typeof answer === 'boolean') return answer;
      this.guard.violated('isBlindTo must return true or false', answer);
    } catch (error) {
      this.guard.failed(error);
    }
    return false;
  }

  private subscribe(onAnnounced: () => void): void {
    try {
      if (this.detector.subscribe === undefined) return;
      // An announcement during a reading is part of the answer.
      const unsubscribe: unknown = this.detector.subscribe(() => {
        if (!this.isReading) onAnnounced();
      });
      if (typeof unsubscribe === 'function') this.unsubscribe = unsubscribe as () => void;
      else this.guard.violated('subscribe must return a function', unsubscribe);
    } catch (error) {
      this.guard.failed(error);
    }
  }

  /** Hysteresis: once full, full until the reading has fallen to `openAt`. */
  private latch(saturation: number): number {
    const { closeAt, openAt } = this.settings;
    if (saturation >= 1) this.isLatched = true;
    else if (saturation <= openAt / closeAt) this.isLatched = false;
    return this.isLatched ? Math.max(saturation, 1) : saturation;
  }
}

/** A copy; undefined for what is no wait. Throws for values that cannot be read. */
function readWait(answer: unknown): RequestWait | undefined {
  if (!isObject(answer)) return undefined;
  const { atMs, notBeforeMs, missing } = answer;
  const isRight = typeof atMs === 'number' && typeof notBeforeMs === 'number' && !Number.isNaN(atMs + 0 * notBeforeMs);
  return isRight && typeof missing === 'string' ? { atMs, notBeforeMs, missing } : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
