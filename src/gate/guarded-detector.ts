/** A detector as the gate reads it: faults are reported and read as the fail value; hysteresis comes after that. */
import { memberOf, textOf } from '../base/faults/foreign-values.js';
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { PluginGuard, type Question, question, wrong, yesOrNo } from '../base/faults/plugin-guard.js';
import type { EndpointView, PoolView } from '../endpoints/endpoint.js';
import { guardOf, isDetector, partsOf, type ScopedPart } from './parts.js';
import type { SaturationDetector } from './saturation-detector.js';
import { type Subscription, subscribed } from './subscription.js';
import { hasSameMembers, isPartOf, VisiblePart } from './visible-part.js';

export interface GuardedDetectorSettings {
  readonly closeAt: number;
  readonly openAt: number;
  readonly failValue: number;
}

/** The answer of a method that keeps some of the endpoints that it was given. */
export const keepsSome: Pick<Question<string, readonly EndpointView[]>, 'rule' | 'read'> = {
  rule: 'an array of the endpoints that it was given',
  read: (kept, given) => (isPartOf(kept, given as readonly EndpointView[]) ? kept : wrong),
};

const filter = { hook: 'filter', ...keepsSome } as const;

const seatsOf = question('seatsOf', 'a number from 0 up, or undefined', (seats) =>
  seats === undefined || (typeof seats === 'number' && seats >= 0) ? seats : wrong,
);
const isBlindTo = yesOrNo('isBlindTo');

export class GuardedDetector {
  /** The last reading, scaled so that 1 is full; 0 before the first. */
  saturation = 0;
  readonly detector: SaturationDetector;
  /** The detector and all that it is made of. */
  readonly parts: readonly ScopedPart[];
  /** True when the detector announces every change of the last reading. */
  announces = false;
  /** True when the last reading failed. */
  isFailing = false;
  private isReading = false;
  private isLatched = false;
  private readonly mayBeBlind: boolean;
  /** The endpoints that it judged last, if it knew nothing of others. */
  private part: VisiblePart | undefined = undefined;
  /** Of the parts that are not made of others. */
  private readonly subscriptions: readonly Subscription[];
  /** True when each of them announces its changes. */
  private isSubscribed: boolean;
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
    this.mayBeBlind = this.guard.has(detector, 'isBlindTo');
    this.parts = partsOf(detector);
    // An announcement during a reading is part of the answer.
    const listener = (): void => {
      if (!this.isReading) onAnnounced();
    };
    this.subscriptions = this.parts.flatMap(({ plugin }) =>
      isDetector(plugin) && memberOf(plugin, 'parts') === undefined
        ? subscribed(guardOf(plugin, errors), plugin, listener)
        : [],
    );
    this.isSubscribed = this.subscriptions.every(({ isOpen }) => isOpen);
  }

  configure(settings: GuardedDetectorSettings): void {
    const { closeAt, openAt } = this.settings;
    if (settings.closeAt !== closeAt || settings.openAt !== openAt) this.isLatched = false;
    this.settings = settings;
  }

  /** Asks the detector. The reading is at least `floor`, and an empty pool is full. */
  read(pool: PoolView, nowMs: number, floor = 0): number {
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
      if (typeof reading === 'number' && reading >= 0 && reading < Infinity) {
        isFailing = false;
        announces = this.isSubscribed && this.detector.isGuessing !== true;
        saturation = Math.max(reading, floor) / settings.closeAt;
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
    return this.guard.ask(this.detector, filter, endpoints, nowMs) ?? endpoints;
  }

  /** Requests that fit at the endpoint; undefined where the detector does not tell. */
  seatsOf(endpoint: EndpointView, nowMs: number): number | undefined {
    return this.guard.ask(this.detector, seatsOf, endpoint, nowMs);
  }

  /** Ends the announcements. */
  stop(): void {
    for (const subscription of this.subscriptions) subscription.stop();
    this.isSubscribed = this.subscriptions.length === 0;
  }

  /** The pool as far as the detector can judge it. The same part is the same object: detectors may cache by it. */
  private visiblePart(pool: PoolView, nowMs: number): PoolView {
    const endpoints = this.visible(pool.endpoints, nowMs);
    if (endpoints === pool.endpoints) return pool;
    const isSame =
      this.part !== undefined && this.part.version === pool.version && hasSameMembers(this.part.endpoints, endpoints);
    if (!isSame) this.part = new VisiblePart(endpoints, pool.version);
    return this.part as VisiblePart;
  }

  private isBlindTo(endpoint: EndpointView, nowMs: number): boolean {
    return this.guard.ask(this.detector, isBlindTo, endpoint, nowMs) === true;
  }

  /** Hysteresis: once full, full until the reading has fallen to `openAt`. */
  private latch(saturation: number): number {
    const { closeAt, openAt } = this.settings;
    if (saturation >= 1) this.isLatched = true;
    else if (saturation <= openAt / closeAt) this.isLatched = false;
    return this.isLatched ? Math.max(saturation, 1) : saturation;
  }
}
