/** Calls inside a request that has a seat of the controller which they ask: waiting, they might wait for themselves. */
import type { RequestContext } from '../adapters/http/index.js';
import type { Dispatched, Lease } from '../index.js';

/** What the option `context` tells of a call's cause. */
export type Cause = Pick<RequestContext, 'lease' | 'gate'>;

/** The seat of the same controller that the cause of a call still holds; undefined where the call may wait. */
export function seatOfCause(flow: object, { gate, lease }: Cause): Lease | undefined {
  const isSame = typeof gate === 'object' && controllerOf(gate) === controllerOf(flow);
  return isSame && lease?.isReleased === false ? lease : undefined;
}

const controllerOf = (gate: object): unknown => ('controller' in gate ? gate.controller : undefined) ?? gate;

/** The seat, for a call within: it is given back, charged and put back by its cause alone. */
export function inSeatOf(held: Lease): Dispatched {
  const { signal } = held;
  const own = { signal, isEvicted: false, isPutOff: false, release() {}, report() {}, answered() {}, unsent() {} };
  return { type: 'Dispatched', lease: Object.create(held, Object.getOwnPropertyDescriptors(own)), queuedMs: 0 };
}

/** In place of a wait. */
export const noSeat = 'it is part of a request that holds a seat already, and might wait for that (see "reentrant")';
