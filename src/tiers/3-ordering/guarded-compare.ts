/** A comparator that never throws, never answers NaN, and breaks ties by arrival. */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import type { ItemView } from '../views.js';
import type { OrderingPolicy } from './ordering-policy.js';

export function guardedCompare(policy: OrderingPolicy, errors: PluginErrorSink): (a: ItemView, b: ItemView) => number {
  return (a, b) => {
    let order: number;
    try {
      order = policy.compare(a, b);
      if (typeof order !== 'number' || Number.isNaN(order)) {
        errors.pluginFailed('ordering', policy.type, new TypeError(`compare must return a number; got ${String(order)}`));
        order = 0;
      }
    } catch (error) {
      errors.pluginFailed('ordering', policy.type, error);
      order = 0;
    }
    return order || a.sequence - b.sequence;
  };
}
