/** An order of bands that a plugin makes. Contains the plugin: where it fails, the highest band goes. */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard } from '../../base/faults/plugin-guard.js';
import type { PriorityBand } from '../priority-band.js';
import type { BandOrder } from './band-order.js';
import type { BandOrderPolicy } from './band-order-policy.js';

export class RankedOrder implements BandOrder {
  readonly needsOldest = false;
  hearsDispatches = true;
  private readonly policy: BandOrderPolicy;
  private guard: PluginGuard;

  /** Faults go nowhere until `reportTo` says where. */
  constructor(policy: BandOrderPolicy) {
    this.policy = policy;
    this.guard = new PluginGuard('bandOrder', policy, { pluginFailed() {} });
  }

  reportTo(errors: PluginErrorSink): void {
    this.guard = new PluginGuard('bandOrder', this.policy, errors);
    this.hearsDispatches = this.guard.has(this.policy, 'recordDispatch');
  }

  choose(open: readonly PriorityBand[], _all: readonly PriorityBand[], saturation: number): PriorityBand {
    const highest = open[0] as PriorityBand;
    if (open.length === 1) return highest;
    const priorities = open.map(({ priority }) => priority);
    const ceilings = open.map(({ ceiling }) => ceiling);
    const order = [...priorities.keys()];
    try {
      const answer: unknown = this.policy.rank(saturation, priorities, ceilings, order);
      this.guard.ignored(answer);
      const first = this.firstOf(order, open);
      if (first !== undefined) return first;
    } catch (error) {
      this.guard.failed(error);
    }
    return highest;
  }

  /** Undefined where the order is no permutation: it names what is not open, or one twice, or has another length. */
  private firstOf(order: readonly unknown[], open: readonly PriorityBand[]): PriorityBand | undefined {
    const isNamed = (place: unknown): place is number => typeof place === 'number' && open[place] !== undefined;
    const strangers = order.filter((place) => !isNamed(place));
    for (const stranger of strangers)
      this.guard.violated('rank must leave a permutation in the order that it was given', stranger);
    if (strangers.length > 0) return undefined;
    if (order.length === open.length && new Set(order).size === open.length) return open[order[0] as number];
    this.guard.violated('rank must leave each place in the order once', order.join(', '));
    return undefined;
  }

  dispatched(priority: number): void {
    this.guard.tell(this.policy, 'recordDispatch', priority);
  }
}
