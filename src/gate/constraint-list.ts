/** A request goes where all judges have room. Invariant: one with room never delays; one that fails has no say. */
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { type PluginGuard, question, wrong } from '../base/faults/plugin-guard.js';
import type { EndpointView } from '../endpoints/endpoint.js';
import type { BandRegistry } from '../tiers/band-registry.js';
import type { PriorityBand } from '../tiers/priority-band.js';
import type { ItemView } from '../tiers/views.js';
import type { Constraint, RequestWait } from './constraint.js';
import { keepsSome } from './guarded-detector.js';
import { guardOf, type ScopedPart } from './parts.js';
import type { CapacityFigure, QuotaFigures, SessionFigures } from './reported-figures.js';
import { readCapacity, readQuotas, readSessions, sumOfQuotas, sumOfSessions } from './reported-figures.js';
import { type Subscription, subscribed } from './subscription.js';

/** A constraint, the endpoints at which it judges, and the bands whose requests it judges. */
export interface ConstraintTerms extends ScopedPart<Constraint> {
  /** Undefined: all bands. */
  readonly isFor: ((band: PriorityBand | undefined) => boolean) | undefined;
  /** True when its fullness counts beside the reading of the detector. */
  readonly isRead: boolean;
}

const withRoomFor = { hook: 'withRoomFor', ...keepsSome } as const;

const waitOf = question('waitOf', '{ atMs, notBeforeMs, missing }: instants in ms, and a text', readWait);
const fullness = question('fullness', 'a finite number from 0 up', (answer) =>
  typeof answer === 'number' && answer >= 0 && answer < Infinity ? answer : wrong,
);
const capacity = question('capacity', 'an array of figures', (answer) => readCapacity(answer) ?? wrong);
const quotas = question('quotas', 'figures, with an array named quotas', (answer) => readQuotas(answer) ?? wrong);
const sessions = question('sessions', 'figures of sessions', (answer) => readSessions(answer) ?? wrong);

class GuardedConstraint {
  readonly terms: ConstraintTerms;
  readonly guard: PluginGuard;
  readonly subscription: Subscription;

  constructor(terms: ConstraintTerms, errors: PluginErrorSink, onAnnounced: () => void) {
    this.terms = terms;
    this.guard = guardOf(terms.plugin, errors);
    this.subscription = subscribed(this.guard, terms.plugin, onAnnounced);
  }

  judges(band: PriorityBand | undefined): boolean {
    return this.terms.isFor === undefined || this.terms.isFor(band);
  }

  has(method: keyof Constraint): boolean {
    return this.guard.has(this.terms.plugin, method);
  }

  /** The members of `endpoints` that have room, or that it does not judge. */
  roomy(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): readonly EndpointView[] {
    const judged = this.judged(endpoints);
    if (judged.length === 0) return endpoints;
    const roomy = this.guard.ask(this.terms.plugin, withRoomFor, judged, item, nowMs) ?? judged;
    if (judged.length === endpoints.length) return roomy;
    return endpoints.filter((endpoint) => roomy.includes(endpoint) || !judged.includes(endpoint));
  }

  /** What the request waits for at the endpoints; undefined where the constraint does not hold it. */
  waitAt(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): RequestWait | undefined {
    const judged = this.judged(endpoints);
    if (judged.length === 0 || this.roomy(judged, item, nowMs).length > 0) return undefined;
    return this.guard.ask(this.terms.plugin, waitOf, judged, item, nowMs) ?? untold(nowMs);
  }

  private judged(endpoints: readonly EndpointView[]): readonly EndpointView[] {
    const { judges } = this.terms;
    return judges === undefined ? endpoints : endpoints.filter(judges);
  }
}

export class ConstraintList {
  /** False where no request is judged by itself. */
  areAny = false;
  /** True when the reading of the gate also falls by time alone. */
  fades = false;
  /** The earliest instant at which a request will have room that had none since `forgetRoom` was called. */
  roomAtMs: number = Infinity;
  private all: readonly GuardedConstraint[] = [];
  private recheckIntervalMs = 0;
  private readonly bands: BandRegistry;
  private readonly errors: PluginErrorSink;
  private readonly onAnnounced: () => void;

  constructor(bands: BandRegistry, errors: PluginErrorSink, onAnnounced: () => void) {
    this.bands = bands;
    this.errors = errors;
    this.onAnnounced = onAnnounced;
  }

  /** `recheckIntervalMs`: when to look again where a constraint does not say. `judgesMore`: groups of endpoints do. */
  configure(terms: readonly ConstraintTerms[], recheckIntervalMs: number, judgesMore: boolean): void {
    const before = this.all;
    this.all = terms.map((each) => new GuardedConstraint(each, this.errors, this.onAnnounced));
    for (const { subscription } of before) subscription.stop();
    this.areAny = judgesMore || this.all.length > 0;
    this.fades = this.all.some((each) => each.has('fullness'));
    this.recheckIntervalMs = recheckIntervalMs;
    this.forgetRoom();
  }

  stop(): void {
    for (const { subscription } of this.all) subscription.stop();
  }

  /** Called before requests are looked at anew. */
  forgetRoom(): void {
    this.roomAtMs = Infinity;
  }

  /** A request that has no room now may have some then. */
  lookAt(atMs: number): void {
    this.roomAtMs = Math.min(this.roomAtMs, atMs);
  }

  /** The members with room for this very request. When there are none, `roomAtMs` says when to look again. */
  withRoomFor(
    endpoints: readonly EndpointView[],
    item: ItemView,
    band: PriorityBand | undefined,
    nowMs: number,
  ): readonly EndpointView[] {
    if (endpoints.length === 0) return endpoints;
    let left = endpoints;
    for (const each of this.all) {
      if (!each.judges(band)) continue;
      left = each.roomy(left, item, nowMs);
      if (left.length === 0) break;
    }
    if (left.length > 0) return left;
    const atMs = this.waitOf(endpoints, item, band, nowMs)?.atMs ?? nowMs;
    this.lookAt(atMs > nowMs ? atMs : nowMs + this.recheckIntervalMs);
    return left;
  }

  /** The room that the request waits for; undefined when no constraint judges it. */
  waitOf(
    endpoints: readonly EndpointView[],
    item: ItemView,
    band: PriorityBand | undefined,
    nowMs: number,
  ): RequestWait | undefined {
    const judges = this.all.filter((each) => each.judges(band));
    if (endpoints.length === 0 || judges.length === 0) return undefined;
    const waitAt = (part: readonly EndpointView[]): RequestWait | undefined => {
      const waits = judges.flatMap((each) => each.waitAt(part, item, nowMs) ?? []);
      return waits.length === 0 ? undefined : combined(waits, Math.max);
    };
    // Where each has room somewhere, and nowhere all of them, the first endpoint that all have room at is awaited.
    return (
      waitAt(endpoints) ??
      combined(
        endpoints.map((one) => waitAt([one]) ?? untold(nowMs)),
        Math.min,
      )
    );
  }

  /** How much is used of the fullest constraint that is read beside the detector. */
  fullness(endpoints: readonly EndpointView[], nowMs: number): number {
    let most = 0;
    for (const { guard, terms } of this.all)
      if (terms.isRead) most = Math.max(most, guard.ask(terms.plugin, fullness, endpoints, nowMs) ?? 0);
    return most;
  }

  /** Empty when no constraint counts capacity. */
  capacity(endpoints: readonly EndpointView[], nowMs: number): readonly CapacityFigure[] {
    return this.distinct().flatMap(({ guard, terms }) => guard.ask(terms.plugin, capacity, endpoints, nowMs) ?? []);
  }

  /** Undefined when no constraint has quotas. */
  quotas(nowMs: number): QuotaFigures | undefined {
    const all = this.distinct().flatMap(({ guard, terms }) => guard.ask(terms.plugin, quotas, nowMs) ?? []);
    return all.length === 0 ? undefined : sumOfQuotas(all);
  }

  /** Undefined when no constraint limits sessions. O(queues that are held back) where one does. */
  sessions(nowMs: number): SessionFigures | undefined {
    const tellers = this.distinct().filter((each) => each.has('sessions'));
    if (tellers.length === 0) return undefined;
    const held = this.bands.all().flatMap((band) => band.aside.of('held').flatMap(({ head }) => head ?? []));
    const all = tellers.flatMap(({ guard, terms }) => guard.ask(terms.plugin, sessions, held, nowMs) ?? []);
    return all.length === 0 ? undefined : sumOfSessions(all);
  }

  /** Each constraint once, however many bands it judges by itself. */
  private distinct(): readonly GuardedConstraint[] {
    return [...new Map(this.all.map((each) => [each.terms.plugin, each])).values()];
  }
}

function untold(nowMs: number): RequestWait {
  return { atMs: nowMs, notBeforeMs: nowMs, missing: '' };
}

/** `Math.min`: there is room when one of the endpoints has some; `Math.max`: when the last of the constraints has. */
function combined(waits: readonly RequestWait[], pick: (...instants: number[]) => number): RequestWait {
  const atMs = pick(...waits.map((wait) => wait.atMs));
  const { missing = '', isBudget } = waits.find((wait) => wait.atMs === atMs) ?? {};
  return { atMs, notBeforeMs: pick(...waits.map(({ notBeforeMs }) => notBeforeMs)), missing, isBudget };
}

/** A copy. Throws for values that cannot be read. */
function readWait(answer: unknown): RequestWait | typeof wrong {
  if (typeof answer !== 'object' || answer === null) return wrong;
  const { atMs, notBeforeMs, missing, isBudget } = answer as Partial<Record<keyof RequestWait, unknown>>;
  if (typeof atMs !== 'number' || typeof notBeforeMs !== 'number' || typeof missing !== 'string') return wrong;
  const isRight = !Number.isNaN(atMs) && !Number.isNaN(notBeforeMs);
  return isRight ? { atMs, notBeforeMs, missing, isBudget: isBudget === true || undefined } : wrong;
}
