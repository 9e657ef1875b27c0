/** The question of single requests, the contract: may this very request go now, and if not, when? */
import type { PluginShape } from '../base/plugin-shape.js';
import type { EndpointView } from '../endpoints/endpoint.js';
import type { ItemView } from '../tiers/views.js';
import type { CapacityFigure, QuotaFigures, SessionFigures } from './reported-figures.js';
import { type SeatListener, seatHooks } from './seat-listener.js';

/** How long a request has to wait for room, as far as can be told. */
export interface RequestWait {
  /** When there is room, if nothing else happens; ms of the controller's clock. Infinity: unknown. */
  readonly atMs: number;
  /** Not before this instant, whatever happens; Infinity: never. Who cannot wait until then is dropped at once. */
  readonly notBeforeMs: number;
  /** The room that is missing, to complete "waits for …". */
  readonly missing: string;
  /** True for a budget of the sender itself, which no other server helps. */
  readonly isBudget?: boolean | undefined;
}

/** True when the request cannot have room by its deadline. */
export function isTooLate({ notBeforeMs }: RequestWait, deadlineAtMs: number): boolean {
  return notBeforeMs === Infinity || notBeforeMs > deadlineAtMs;
}

/**
 * Judges each request by itself, such as a quota does. A request goes when all constraints have room for it.
 * Contract: `withRoomFor` changes nothing; what a request takes is taken at `dispatched`, in the same step. Room that
 * comes back otherwise than by a dispatch, a release, an answer, or at the instant that `waitOf` told is announced by
 * `subscribe`. A constraint that fails has no say. Cost: asked for every request that may go, and for those that are
 * held back at each walk. State: its own; `SeatListener` tells what became of the requests.
 */
export interface Constraint extends SeatListener {
  readonly type: string;
  /** The members of `endpoints`, a part of the pool, that have room for this request now. Without any it waits. */
  withRoomFor(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): readonly EndpointView[];
  /** None of `endpoints` has room for the request: says when one will. Without it a timer asks again. */
  waitOf?(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): RequestWait;
  /**
   * The session of a request, for constraints that tell sessions apart; undefined for none. Sessions then queue apart,
   * as with `holBlocking: 'none'`. Asked once: the answer must not change while it waits.
   */
  sessionOf?(item: ItemView): string | undefined;
  /** How much is used where most is left, [0, 1). Ceilings are compared with it. May fall by time alone. */
  fullness?(endpoints: readonly EndpointView[], nowMs: number): number;
  /** Calls `listener` when there may be room for a reason that the controller cannot see; returns what stops this. */
  subscribe?(listener: () => void): () => void;
  /** What is used of each endpoint, for pages and exporters. */
  capacity?(endpoints: readonly EndpointView[], nowMs: number): readonly CapacityFigure[];
  /** Quotas, for pages and exporters. */
  quotas?(nowMs: number): QuotaFigures;
  /** Sessions, for pages and exporters. `held`: the first of each queue that is held back. Asked when one looks. */
  sessions?(held: readonly ItemView[], nowMs: number): SessionFigures;
}

export const constraintShape: PluginShape<Constraint> = {
  noun: 'a constraint',
  example: 'sessionLimit({ maxSessions: 200 })',
  required: ['withRoomFor'],
  optional: ['waitOf', 'sessionOf', 'fullness', 'subscribe', 'capacity', 'quotas', 'sessions', ...seatHooks],
};

/** Finds the constraints that the parameters of other plugins name. */
export interface ConstraintReferences {
  /** @throws FlowConfigError as `DetectorReferences` says. */
  resolve(kind: 'constraint', name: string): Constraint;
}
