/** Max-min fair shares: nobody gets more than it asks for; the rest is shared evenly among those that ask for more. */
import * as s from '../../base/schema/schema.js';
import { checkArguments } from '../schemas.js';

/** Shares of `capacity` by `demands`. Source: Bertsekas, Gallager, "Data networks". @throws FlowConfigError */
export function maxMinShares(demands: readonly number[], capacity: number): number[] {
  checkArguments(
    'maxMinShares',
    { demands, capacity },
    { demands: s.list(s.atLeastZero()), capacity: s.atLeastZero() },
  );
  const order = demands.map((_, index) => index).sort((a, b) => (demands[a] as number) - (demands[b] as number));
  const shares = demands.map(() => 0);
  let left = capacity;
  for (const [place, index] of order.entries()) {
    const share = Math.min(demands[index] as number, left / (order.length - place));
    shares[index] = share;
    left -= share;
  }
  return shares;
}
