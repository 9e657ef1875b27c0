/** Reports a selector's faults. Invariant: a policy that fails to make one is asked again, once a second at most. */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard, question, wrong } from '../../base/faults/plugin-guard.js';
import { misspelledHooks } from '../../base/plugin-shape.js';
import type { BandView, FlowView, ItemView, Usage } from '../views.js';
import { type Ending, type FlowFairnessPolicy, type FlowSelector, selectorMethods } from './fairness-policy.js';
import { readServiceFigures, type ServiceFigures } from './service-figures.js';

/** A band as the guard asks it. */
export interface PickedBand extends BandView {
  /** True for one of its flows that may be picked now. It may throw for foreign values. */
  isActiveFlow(candidate: unknown): candidate is FlowView;
  /** Called when the policy has made its selector late: tells the selector what waits. */
  tellOfWaiting(): void;
}

const retryAfterMs = 1000;

const lead = question('lead', 'a number, or undefined', (answer) => (isNumberOrNone(answer) ? answer : wrong));
const service = question('service', 'figures whose flows have a fairnessId, and numbers', (answer) => {
  return readServiceFigures(answer) ?? wrong;
});

function isNumberOrNone(answer: unknown): answer is number | undefined {
  return answer === undefined || (typeof answer === 'number' && !Number.isNaN(answer));
}

export class GuardedSelector implements Omit<FlowSelector, 'forHeld'> {
  /** True when dispatches that never waited must be told as well. */
  hearsDispatches = false;
  /** True when every request that begins to wait must be told. */
  hearsItems = false;
  /** True when leases must remember their flow. */
  hearsSettlements = false;
  private selector: FlowSelector;
  private retryAtMs = -Infinity;
  private readonly policy: FlowFairnessPolicy;
  private readonly band: PickedBand;
  private readonly errors: PluginErrorSink;
  private readonly guard: PluginGuard;

  constructor(policy: FlowFairnessPolicy, band: PickedBand, errors: PluginErrorSink) {
    this.policy = policy;
    this.band = band;
    this.errors = errors;
    this.guard = new PluginGuard('fairness', policy, errors);
    this.selector = this.create() ?? { pick: (nowMs) => this.retry(nowMs) };
    this.noteHooks();
  }

  /** Undefined when the policy failed to pick an active flow of its band. */
  pick(nowMs: number): FlowView | undefined {
    try {
      const choice: unknown = this.selector.pick(nowMs);
      if (this.band.isActiveFlow(choice)) return choice;
      this.guard.violated('pick must return an active flow of this band', choice);
    } catch (error) {
      this.guard.failed(error);
    }
    return undefined;
  }

  flowActivated(flow: FlowView): void {
    this.guard.tell(this.selector, 'flowActivated', flow);
  }

  flowDeactivated(flow: FlowView, isParked = false): void {
    this.guard.tell(this.selector, 'flowDeactivated', flow, isParked);
  }

  itemAdded(flow: FlowView, item: ItemView): void {
    this.guard.tell(this.selector, 'itemAdded', flow, item);
  }

  itemRemoved(flow: FlowView, item: ItemView): void {
    this.guard.tell(this.selector, 'itemRemoved', flow, item);
  }

  dispatched(flow: FlowView, item: ItemView, nowMs: number): void {
    this.guard.tell(this.selector, 'dispatched', flow, item, nowMs);
  }

  consumed(flow: FlowView, usage: Usage, nowMs: number, item: ItemView, total: Usage): void {
    this.guard.tell(this.selector, 'consumed', flow, usage, nowMs, item, total);
  }

  settled(flow: FlowView, usage: Usage, nowMs: number, tokens: number, item: ItemView, ending: Ending): void {
    this.guard.tell(this.selector, 'settled', flow, usage, nowMs, tokens, item, ending);
  }

  /** Undefined where the policy keeps no account of it. */
  lead(flow: FlowView): number | undefined {
    return this.guard.ask(this.selector, lead, flow);
  }

  get fairnessIndex(): number | undefined {
    const index: unknown = this.guard.read(this.policy, 'fairnessIndex');
    if (isNumberOrNone(index)) return index;
    this.guard.violated('fairnessIndex must be a number, or undefined', index);
    return undefined;
  }

  get keepsAccount(): boolean {
    return this.guard.has(this.selector, 'service');
  }

  service(nowMs: number): ServiceFigures | undefined {
    return this.guard.ask(this.selector, service, nowMs);
  }

  get ignoredReports(): number {
    const count: unknown = this.guard.read(this.selector, 'ignoredReports');
    if (count === undefined) return 0;
    if (typeof count === 'number' && Number.isFinite(count)) return count;
    this.guard.violated('ignoredReports must be a number', count);
    return 0;
  }

  /** A selector of flows that are held back; undefined where the policy has no order of its own for them. */
  forHeld(flows: PickedBand): GuardedSelector | undefined {
    const { selector, policy, errors } = this;
    const forHeld = this.guard.read(selector, 'forHeld');
    if (forHeld === undefined) return undefined;
    const held: FlowFairnessPolicy = { type: policy.type, createSelector: (band) => forHeld.call(selector, band) };
    return new GuardedSelector(held, flows, errors);
  }

  flowRemoved(flow: FlowView): void {
    this.guard.tell(this.selector, 'flowRemoved', flow);
  }

  private noteHooks(): void {
    this.hearsItems = this.guard.has(this.selector, 'itemAdded');
    this.hearsDispatches = this.guard.has(this.selector, 'dispatched');
    this.hearsSettlements = this.guard.has(this.selector, 'settled') || this.guard.has(this.selector, 'consumed');
  }

  /** Picks in place of a selector that could not be made. @throws while it cannot */
  private retry(nowMs: number): FlowView | undefined {
    let made: FlowSelector | undefined;
    if (nowMs >= this.retryAtMs) {
      this.retryAtMs = nowMs + retryAfterMs;
      made = this.create();
    }
    if (made === undefined) throw new Error('createSelector failed: flows take turns until it makes a selector');
    this.selector = made;
    this.noteHooks();
    this.band.tellOfWaiting();
    return made.pick(nowMs);
  }

  private create(): FlowSelector | undefined {
    try {
      const selector = this.policy.createSelector(this.band);
      if (typeof selector?.pick === 'function') {
        for (const { given, meant } of misspelledHooks(selector, selectorMethods)) {
          const what = `the selector has a method "${given}" that is never called: the name is "${meant}"`;
          this.guard.failed(new TypeError(what));
        }
        return selector;
      }
      this.guard.violated('createSelector must return an object with a pick method', selector);
    } catch (error) {
      this.guard.failed(error);
    }
    return undefined;
  }
}
