/** What became of a seat: the contract of everything that learns from running requests. */
import { memberOf } from '../base/faults/foreign-values.js';
import { misspelledHooks } from '../base/plugin-shape.js';
import type { Report } from '../base/schema/element.js';
import type { EndpointView } from '../endpoints/endpoint.js';
import type { SeatView, ServerAnswer } from './server-answer.js';

/**
 * Hears of the seats of running requests. A saturation detector, a constraint, or a host's own object may be one.
 * Contract: nothing is answered; an exception is reported as a plugin error and goes no further. A listener that joins
 * late hears of the end of seats whose dispatch it never saw; one that is replaced hears to the end of those that it
 * knows. Cost: O(1), once for each event. State: its own.
 */
export interface SeatListener {
  /** A request took a seat at `endpoint`. */
  dispatched?(endpoint: EndpointView, nowMs: number, seat: SeatView): void;
  /** The server of a running request answered, as far as the host tells with `lease.answered`. */
  answered?(endpoint: EndpointView, nowMs: number, seat: SeatView, answer: ServerAnswer): void;
  /** The host reported what a running request consumed so far: see `seat.usage`. */
  reported?(endpoint: EndpointView, nowMs: number, seat: SeatView): void;
  /** A request gave its seat at `endpoint` back. If it moved, it has taken its new seat before. */
  released?(endpoint: EndpointView, nowMs: number, seat: SeatView): void;
  /** The host ended the session of a request that runs, or ran, in this seat: see `lease.endSession`. */
  sessionEnded?(endpoint: EndpointView, nowMs: number, seat: SeatView): void;
}

export type SeatHook = keyof SeatListener;

/** Every hook; guards, flags and checks are made of this list. */
export const seatHooks: readonly SeatHook[] = ['dispatched', 'answered', 'reported', 'released', 'sessionEnded'];

/** The listener that `candidate` is; otherwise reports what is wrong with it and returns undefined. */
export function readSeatListener(candidate: unknown, report: Report): SeatListener | undefined {
  const hooks = seatHooks.join(', ');
  if (typeof candidate !== 'object' || candidate === null) return report(`an object with some of ${hooks}`);
  const given = seatHooks.filter((hook) => memberOf(candidate, hook) !== undefined);
  const wrong = given.filter((hook) => typeof memberOf(candidate, hook) !== 'function');
  for (const hook of wrong) report('a method, or nothing', [hook]);
  const misses = misspelledHooks(candidate, seatHooks);
  for (const miss of misses) report(`the name "${miss.meant}"`, [miss.given], 'a method that is never called');
  if (given.length === 0 && misses.length === 0) report(`an object with some of ${hooks}`, [], 'one with none of them');
  return given.length > 0 && wrong.length + misses.length === 0 ? candidate : undefined;
}
