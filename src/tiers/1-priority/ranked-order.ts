/** An order of bands that a plugin makes. Contains the plugin: where it fails, the highest band goes. */
import { PluginGuard } from '../../base/faults/plugin-guard.js';
import type { PriorityBand } from '../priority-band.js';
import type { BandOrder } from './band-order.js';
import type { BandOrderPolicy } from './band-order-policy.js';

/** Faults go nowhere until `reportTo` says where. */
export function rankedOrder(policy: BandOrderPolicy): BandOrder {
  let guard = new PluginGuard('bandOrder', policy, { pluginFailed() {} });

  /** Undefined where the order is no permutation: it names what is not open, or one twice, or has another length. */
  function firstOf(order: readonly unknown[], open: readonly PriorityBand[]): PriorityBand | undefined {
    const isNamed = (place: unknown): place is number => typeof place === 'number' && open[place] !== undefined;
    const strangers = order.filter((place) => !isNamed(place));
    for (const stranger of strangers)
      guard.violated('rank must leave a permutation in the order that it was given', stranger);
    if (strangers.length > 0) return undefined;
    if (order.length === open.length && new Set(order).size === open.length) return open[order[0] as number];
    guard.violated('rank must leave each place in the order once', order.join(', '));
    return undefined;
  }

  return {
    needsOldest: false,
    hearsDispatches: true,
    reportTo(errors) {
      guard = new PluginGuard('bandOrder', policy, errors);
      this.hearsDispatches = guard.has(policy, 'recordDispatch');
    },
    choose(open, _all, saturation) {
      const highest = open[0] as PriorityBand;
      if (open.length === 1) return highest;
      const priorities = open.map(({ priority }) => priority);
      const ceilings = open.map(({ ceiling }) => ceiling);
      const order = [...priorities.keys()];
      try {
        guard.ignored(policy.rank(saturation, priorities, ceilings, order));
        return firstOf(order, open) ?? highest;
      } catch (error) {
        guard.failed(error);
        return highest;
      }
    },
    dispatched: (priority) => guard.tell(policy, 'recordDispatch', priority),
  };
}
