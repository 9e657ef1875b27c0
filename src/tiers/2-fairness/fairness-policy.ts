/** Tier 2, the contract: which flow of a band goes next. */
import type { PluginShape } from '../../base/plugin-shape.js';
import type { BandView, FlowView, ItemView, Usage } from '../views.js';
import type { ServiceFigures } from './service-figures.js';

/**
 * Shares the turns of one band between its flows. Contract: `pick` returns one of the band's active flows; it is called
 * once for each request to be released, and the head of the returned flow goes. Returning nothing, a foreign flow or an
 * idle one is reported as a plugin error, and the flow that has been active longest goes instead. A selector must never
 * change a view nor call the controller back. Time: `nowMs` is the instant of the decision on the controller's clock;
 * it never runs backwards. Cost: every method is on the request path; O(1) or O(log flows) expected. State: a selector
 * belongs to one band and may keep what it likes; `flowRemoved` says when to forget a flow. A selector that takes over
 * from another is told of the flows and requests that wait. Later it is also told of the end of requests (`consumed`,
 * `settled`) whose dispatch only the other saw.
 */
export interface FlowSelector<R = unknown> {
  pick(nowMs: number): FlowView | undefined;
  /** The flow got its first waiting request, or is no longer held back. */
  flowActivated?(flow: FlowView<R>): void;
  /**
   * The flow's last request went (`dispatched` follows if it was dispatched), or the flow is held back as no endpoint
   * takes its first (`holBlocking`): it cannot be picked until `flowActivated`, while its requests wait on, more or
   * fewer. `isParked`: it is at its cap (`maxInFlightPerFlow`), and owed nothing meanwhile.
   */
  flowDeactivated?(flow: FlowView<R>, isParked?: boolean): void;
  itemAdded?(flow: FlowView<R>, item: ItemView<R>): void;
  /** A waiting request left without being dispatched. */
  itemRemoved?(flow: FlowView<R>, item: ItemView<R>): void;
  /** A request of this flow was dispatched, also when it never had to wait. */
  dispatched?(flow: FlowView<R>, item: ItemView<R>, nowMs: number): void;
  /** A running request has consumed this much more; `total` is all of it. `item` is what `dispatched` was given. */
  consumed?(flow: FlowView<R>, usage: Usage, nowMs: number, item: ItemView<R>, total: Usage): void;
  /**
   * A dispatched request ended; `usage` is all that was reported, `tokens` what was booked. Once for each `dispatched`,
   * on the selector in use by then. `item` is the object of `dispatched`; its `request` may be gone.
   */
  settled?(flow: FlowView<R>, usage: Usage, nowMs: number, tokens: number, item: ItemView<R>, ending: Ending): void;
  /** How much more a waiting flow received than those that go next, in the policy's unit; negative: less. To explain */
  lead?(flow: FlowView<R>): number | undefined;
  /** Cost that the band's fairness IDs received and were owed, from the first call on. Not on the request path. */
  service?(nowMs: number): ServiceFigures | undefined;
  /** The charges of the flow so far, in the policy's unit of cost. Not on the request path. */
  received?(flow: FlowView<R>): number;
  /** The flow received this much in another replica: charges it as if it had been here. Called between decisions. */
  charge?(flow: FlowView<R>, cost: number): void;
  /**
   * A selector of flows of this band that are held back and wait for the same endpoints: says which of them is let out
   * first, by the account of this selector. Of its methods, `pick`, `flowActivated`, `flowDeactivated`, `itemAdded`,
   * `itemRemoved`, `dispatched` and `flowRemoved` are called, for the flows of `band` alone. Requests of a flow wait
   * when `flowActivated` comes; `flowRemoved` says that it left. Without it flows that are held back take turns, as
   * many as they weigh.
   */
  forHeld?(band: BandView<R>): FlowSelector<R>;
  /** Reports of usage that went backwards or exceeded 2^53, and were ignored, so far. */
  readonly ignoredReports?: number;
  /** The flow was idle and has been collected. */
  flowRemoved?(flow: FlowView<R>): void;
}

/**
 * It gave its seat back; after it was called off (`lease.abort`, an eviction); nothing of it had reached a server
 * (`lease.unsent`); or it was evicted or put off, and waits once more.
 */
export type Ending = 'released' | 'aborted' | 'unsent' | 'requeued';

/** A policy that tells flows apart, one selector for each band. */
export interface FlowFairnessPolicy<R = unknown> {
  readonly type: string;
  /** How evenly the policy has served its flows, 1 / n … 1, where it keeps account of it; shown by `stats()`. */
  readonly fairnessIndex?: number;
  createSelector(band: BandView<R>): FlowSelector<R>;
}

/** A policy that does not tell flows apart: the band keeps one queue under the ordering policy, without a selector. */
export interface SharedQueuePolicy {
  readonly type: string;
  readonly sharedQueue: true;
}

export type FairnessPolicy<R = unknown> = FlowFairnessPolicy<R> | SharedQueuePolicy;

const hooks: Readonly<Record<Exclude<keyof FlowSelector, 'pick'>, true>> = {
  flowActivated: true,
  flowDeactivated: true,
  itemAdded: true,
  itemRemoved: true,
  dispatched: true,
  consumed: true,
  settled: true,
  lead: true,
  service: true,
  received: true,
  charge: true,
  forHeld: true,
  ignoredReports: true,
  flowRemoved: true,
};

/** Every method of a selector. */
export const selectorMethods: readonly string[] = /* @__PURE__ */ ['pick', ...Object.keys(hooks)];

export const fairnessPolicyShape: PluginShape<FairnessPolicy> = {
  noun: 'a fairness policy',
  example: 'roundRobin()',
  required: ['createSelector'],
  optional: [],
  unless: 'sharedQueue',
};
