/** A comparator that never throws, never answers NaN, and breaks ties by arrival. */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard } from '../../base/faults/plugin-guard.js';
import type { ItemView } from '../views.js';
import type { OrderingPolicy } from './ordering-policy.js';

export function guardedCompare(policy: OrderingPolicy, errors: PluginErrorSink): (a: ItemView, b: ItemView) => number {
  const guard = new PluginGuard('ordering', policy, errors);
  return (a, b) => {
    let order: number;
    try {
      order = policy.compare(a, b);
      if (typeof order !== 'number' || Number.isNaN(order)) {
        guard.violated('compare must return a number', order);
        order = 0;
      }
    } catch (error) {
      guard.failed(error);
      order = 0;
    }
    return order || a.sequence - b.sequence;
  };
}
