/** What random histories must come to. */
import type { DropReason } from '../../src/index.js';
import { Sometimes } from '../support/sometimes.js';

const reasons: Readonly<Record<DropReason, true>> = {
  'global-max-requests': true,
  'global-max-bytes': true,
  'band-max-requests': true,
  'band-max-bytes': true,
  'flow-max-requests': true,
  'flow-max-bytes': true,
  refused: true,
  overloaded: true,
  displaced: true,
  evicted: true,
  infeasible: true,
  'over-quota': true,
  'over-budget': true,
  revoked: true,
  'max-bands': true,
  'ttl-expired': true,
  'no-endpoints': true,
  cancelled: true,
  'shutting-down': true,
};

const states = [
  'a running request is evicted',
  'a running request is evicted in the turn of a reload',
  'an evicted request is put back, waits and runs again',
  'a request that its server put off is put back, waits and runs again',
  'a request that was put back is dropped',
  'a request is dispatched during a drain',
  'a request is dispatched in the turn of a reload',
  'a drain ends while requests wait',
  'a reload while requests wait',
  'a reload takes a constraint while requests wait',
  'a reload while an evicted request holds its seat',
  'a reload while a request that was put back waits',
  'the pool empties while requests wait',
  'the pool has a server again while requests wait',
  'a flow waits at its cap',
  'the weight of a flow changes while it waits',
  'a lease is overdue',
  'an overdue lease is taken back',
  'a flow is removed',
  'a band is removed',
  'two controllers have requests on one server',
  'the clock is set back while requests wait',
  'a request goes to a server that another one could not go to',
  'a request goes to the second group of its band',
] as const;

/** Tens of thousands of steps may pass without. */
export const rare = ['a running request is evicted during a drain'] as const;

type State = (typeof states | typeof rare)[number] | `dropped: ${DropReason}`;

export const reached: Omit<Sometimes, 'saw'> & { saw(state: State): void } = new Sometimes([
  ...states,
  ...rare,
  ...Object.keys(reasons).map((reason) => `dropped: ${reason}`),
]);
