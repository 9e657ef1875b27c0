/** All that hear of seats of endpoints they judge. Invariant: who hears of a dispatch hears of its end. */
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { PluginGuard } from '../base/faults/plugin-guard.js';
import type { EndpointView } from '../endpoints/endpoint.js';
import { guardOf, type ScopedPart } from './parts.js';
import { type SeatHook, type SeatListener, seatHooks } from './seat-listener.js';
import type { SeatView, ServerAnswer } from './server-answer.js';

/** A host's listener in plugin errors. */
const host = { type: 'seat-listener' };

type ByHook<T> = Record<SeatHook, T>;

function forEachHook<T>(make: (hook: SeatHook) => T): ByHook<T> {
  return Object.fromEntries(seatHooks.map((hook) => [hook, make(hook)])) as ByHook<T>;
}

/** One listener, contained. */
class Hearer {
  readonly listener: SeatListener;
  /** The seats that it still hears of; undefined while it hears of all. */
  private remaining: Set<SeatView> | undefined = undefined;
  private readonly judges: ScopedPart['judges'];
  private readonly guard: PluginGuard;

  constructor(listener: SeatListener, judges: ScopedPart['judges'], guard: PluginGuard) {
    this.listener = listener;
    this.judges = judges;
    this.guard = guard;
  }

  hears(hook: SeatHook): boolean {
    return this.guard.has(this.listener, hook);
  }

  tell(hook: SeatHook, endpoint: EndpointView, nowMs: number, seat: SeatView, answer?: ServerAnswer): void {
    if (this.remaining?.has(seat) === false || this.judges?.(endpoint) === false) return;
    this.guard.tell(this.listener, hook, endpoint, nowMs, seat, answer);
  }

  /** From now on it hears of these seats alone. */
  leave(seats: Iterable<SeatView>): void {
    this.remaining = new Set(seats);
  }

  /** The seat is gone. True when nothing is left for a listener that was replaced. */
  forget(seat: SeatView): boolean {
    this.remaining?.delete(seat);
    return this.remaining?.size === 0;
  }
}

export class SeatListeners {
  /** Whether anybody has the hook. */
  hears: Readonly<ByHook<boolean>> = forEachHook(() => false);
  private heard: ByHook<readonly Hearer[]> = forEachHook(() => []);
  private current: readonly Hearer[] = [];
  /** Those that were replaced, while seats run that they know. */
  private replaced: readonly Hearer[] = [];
  private readonly errors: PluginErrorSink;

  constructor(errors: PluginErrorSink) {
    this.errors = errors;
  }

  /** From now on these listen, and the others to the `running` seats alone. */
  configure(parts: readonly ScopedPart[], ofHost: SeatListener | undefined, running: Iterable<SeatView>): void {
    const { current, errors } = this;
    const all = parts.map(({ plugin, judges }) => new Hearer(plugin, judges, guardOf(plugin, errors)));
    if (ofHost !== undefined) all.push(new Hearer(ofHost, undefined, new PluginGuard('seatListener', host, errors)));
    this.current = all.filter((hearer) => seatHooks.some((hook) => hearer.hears(hook)));
    const stays = ({ listener }: Hearer): boolean => this.current.some((hearer) => hearer.listener === listener);
    const leaving = current.filter((hearer) => !stays(hearer));
    for (const hearer of leaving) hearer.leave(running);
    this.replaced = [...this.replaced, ...leaving].filter((hearer) => !stays(hearer));
    this.renew();
  }

  tell(hook: SeatHook, endpoint: EndpointView, nowMs: number, seat: SeatView, answer?: ServerAnswer): void {
    for (const hearer of this.heard[hook]) hearer.tell(hook, endpoint, nowMs, seat, answer);
  }

  /** The request goes to `to` instead of `from`. */
  moved(from: EndpointView, to: EndpointView, nowMs: number, seat: SeatView): void {
    this.tell('dispatched', to, nowMs, seat);
    this.tell('released', from, nowMs, seat);
  }

  /** The seat is given back for good. */
  released(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    this.tell('released', endpoint, nowMs, seat);
    if (this.replaced.length === 0) return;
    const left = this.replaced.filter((hearer) => !hearer.forget(seat));
    if (left.length === this.replaced.length) return;
    this.replaced = left;
    this.renew();
  }

  private renew(): void {
    const all = [...this.current, ...this.replaced];
    this.heard = forEachHook((hook) => all.filter((hearer) => hearer.hears(hook)));
    this.hears = forEachHook((hook) => this.heard[hook].length > 0);
  }
}
