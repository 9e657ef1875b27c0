/** A selector behind a guard: exceptions are reported, and methods that it does not have cost nothing. */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { nearMisses } from '../../base/near-misses.js';
import type { BandView, FlowView, ItemView, Usage } from '../views.js';
import { type Ending, type FlowFairnessPolicy, type FlowSelector, selectorMethods } from './fairness-policy.js';
import type { ServiceFigures } from './service-figures.js';

export class GuardedSelector implements FlowSelector {
  /** True when dispatches that never waited must be told as well. */
  readonly hearsDispatches: boolean;
  /** True when leases must remember their flow. */
  readonly hearsSettlements: boolean;
  private readonly selector: FlowSelector;
  private readonly policy: FlowFairnessPolicy;
  private readonly errors: PluginErrorSink;

  constructor(policy: FlowFairnessPolicy, band: BandView, errors: PluginErrorSink) {
    this.policy = policy;
    this.errors = errors;
    this.selector = this.create(band);
    this.hearsDispatches = this.selector.dispatched !== undefined;
    this.hearsSettlements = this.selector.settled !== undefined || this.selector.consumed !== undefined;
  }

  pick(nowMs: number): FlowView | undefined {
    try {
      return this.selector.pick(nowMs);
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  flowActivated(flow: FlowView): void {
    if (this.selector.flowActivated === undefined) return;
    try {
      this.selector.flowActivated(flow);
    } catch (error) {
      this.failed(error);
    }
  }

  flowDeactivated(flow: FlowView): void {
    if (this.selector.flowDeactivated === undefined) return;
    try {
      this.selector.flowDeactivated(flow);
    } catch (error) {
      this.failed(error);
    }
  }

  itemAdded(flow: FlowView, item: ItemView): void {
    if (this.selector.itemAdded === undefined) return;
    try {
      this.selector.itemAdded(flow, item);
    } catch (error) {
      this.failed(error);
    }
  }

  itemRemoved(flow: FlowView, item: ItemView): void {
    if (this.selector.itemRemoved === undefined) return;
    try {
      this.selector.itemRemoved(flow, item);
    } catch (error) {
      this.failed(error);
    }
  }

  dispatched(flow: FlowView, item: ItemView, nowMs: number): void {
    if (this.selector.dispatched === undefined) return;
    try {
      this.selector.dispatched(flow, item, nowMs);
    } catch (error) {
      this.failed(error);
    }
  }

  consumed(flow: FlowView, usage: Usage, nowMs: number, item: ItemView, total: Usage): void {
    if (this.selector.consumed === undefined) return;
    try {
      this.selector.consumed(flow, usage, nowMs, item, total);
    } catch (error) {
      this.failed(error);
    }
  }

  settled(flow: FlowView, usage: Usage, nowMs: number, tokens: number, item: ItemView, ending: Ending): void {
    if (this.selector.settled === undefined) return;
    try {
      this.selector.settled(flow, usage, nowMs, tokens, item, ending);
    } catch (error) {
      this.failed(error);
    }
  }

  /** Undefined where the policy keeps no account of it. */
  lead(flow: FlowView): number | undefined {
    if (this.selector.lead === undefined) return undefined;
    try {
      return this.selector.lead(flow);
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  /** Undefined where the policy keeps no account of it. */
  service(nowMs: number): ServiceFigures | undefined {
    if (this.selector.service === undefined) return undefined;
    try {
      return this.selector.service(nowMs);
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  get ignoredReports(): number {
    return this.selector.ignoredReports ?? 0;
  }

  flowRemoved(flow: FlowView): void {
    if (this.selector.flowRemoved === undefined) return;
    try {
      this.selector.flowRemoved(flow);
    } catch (error) {
      this.failed(error);
    }
  }

  failed(error: unknown): void {
    this.errors.pluginFailed('fairness', this.policy.type, error);
  }

  private create(band: BandView): FlowSelector {
    try {
      const selector = this.policy.createSelector(band);
      if (typeof selector?.pick === 'function') {
        this.tellNearMisses(selector);
        return selector;
      }
      this.failed(new TypeError('createSelector must return an object with a pick method'));
    } catch (error) {
      this.failed(error);
    }
    return { pick: () => undefined };
  }

  private tellNearMisses(selector: FlowSelector): void {
    for (const { given, meant } of nearMisses(selector, selectorMethods)) {
      this.failed(new TypeError(`the selector has a method "${given}" that is never called: the name is "${meant}"`));
    }
  }
}
