/** The fairness and the ordering policy of one band, behind their guards, and what they want to hear. */
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import type { ItemQueue, Queued } from '../base/queues/item-queue.js';
import { earliestHead } from './2-fairness/earliest-head.js';
import type { FairnessPolicy } from './2-fairness/fairness-policy.js';
import { GuardedSelector, type PickedBand } from './2-fairness/guarded-selector.js';
import { isRoundRobin, UnguardedRounds } from './2-fairness/round-robin.js';
import { GuardedOrdering } from './3-ordering/guarded-ordering.js';
import type { OrderingPolicy } from './3-ordering/ordering-policy.js';
import type { ItemView } from './views.js';

/** The part of a band's settings that decides how its requests line up. */
export interface PolicySettings {
  readonly fairness: FairnessPolicy;
  readonly ordering: OrderingPolicy;
  /** True when single flows may be held back, so that each needs a queue of its own. */
  readonly holdsFlows: boolean;
  /** True when single flows may be parked, so that each needs a queue of its own. */
  readonly parksFlows: boolean;
}

export class BandPolicies {
  /** The fairness policy; undefined where one queue serves all flows. */
  readonly selector: GuardedSelector | UnguardedRounds | undefined;
  readonly ordering: GuardedOrdering;
  /** True when a policy hears of dispatches, also of requests that never waited. */
  hearsDispatches = false;
  /** True when a policy hears of the end of requests, so that leases remember their flow. */
  hearsSettlements = false;
  /** Reports that the fairness policies before this one ignored. */
  private readonly ignoredBefore: number = 0;
  private readonly settings: PolicySettings;
  private readonly errors: PluginErrorSink;

  /** `before`: those in use until now, whose selector stays in use where the fairness policy is the same. */
  constructor(band: PickedBand, settings: PolicySettings, errors: PluginErrorSink, before?: BandPolicies) {
    this.settings = settings;
    this.errors = errors;
    this.ordering = new GuardedOrdering(settings.ordering, errors);
    if (settings.fairness === before?.settings.fairness && !('sharedQueue' in settings.fairness)) {
      this.selector = before.selector;
      this.ignoredBefore = before.ignoredBefore;
    } else {
      this.ignoredBefore = before?.ignoredReports ?? 0;
      this.selector = this.makeSelector(band);
    }
    this.noteHooks();
  }

  /** The policies of other settings: these, where the others make no difference to them. */
  following(band: PickedBand, settings: PolicySettings): BandPolicies {
    const { fairness, ordering } = this.settings;
    const isSame = settings.fairness === fairness && settings.ordering === ordering;
    if (isSame && queuesApart(settings) === queuesApart(this.settings)) return this;
    return new BandPolicies(band, settings, this.errors, this);
  }

  /** Finds out what leases must remember; a selector that was made late may hear more. */
  noteHooks(): void {
    this.hearsSettlements = this.ordering.hearsFirstTokens || this.selector?.hearsSettlements === true;
    this.hearsDispatches = this.hearsSettlements || this.selector?.hearsDispatches === true;
  }

  /** The queue of a new flow; undefined where one queue serves all. */
  queueForFlow<T extends ItemView & Queued>(): ItemQueue<T> | undefined {
    return this.selector === undefined ? undefined : this.ordering.makeQueue();
  }

  /** The queue of all flows; undefined where each has its own. */
  queueForAll<T extends ItemView & Queued>(): ItemQueue<T> | undefined {
    return this.selector === undefined ? this.ordering.makeQueue() : undefined;
  }

  /** The order of flows of which some are held: that of the policy, or turns. `byAge`: after it, the oldest request. */
  ordersOf(contenders: PickedBand, byAge: boolean): readonly (GuardedSelector | UnguardedRounds)[] {
    const order = this.selector?.forHeld(contenders) ?? new UnguardedRounds();
    return byAge ? [order, new GuardedSelector(oldestHead, contenders, this.errors)] : [order];
  }

  /** Reports of usage that the fairness policy, and those before it, ignored. */
  get ignoredReports(): number {
    return this.ignoredBefore + (this.selector?.ignoredReports ?? 0);
  }

  private makeSelector(band: PickedBand): GuardedSelector | UnguardedRounds | undefined {
    const { fairness } = this.settings;
    if (isRoundRobin(fairness)) return new UnguardedRounds();
    if (!('sharedQueue' in fairness)) return new GuardedSelector(fairness, band, this.errors);
    if (!queuesApart(this.settings)) return undefined;
    return new GuardedSelector(earliestHead(fairness.type, this.ordering.compare), band, this.errors);
  }
}

const oldestHead = /* @__PURE__ */ earliestHead(
  'oldest-head',
  (a, b) => a.enqueuedAtMs - b.enqueuedAtMs || a.sequence - b.sequence,
);

function queuesApart({ holdsFlows, parksFlows }: PolicySettings): boolean {
  return holdsFlows || parksFlows;
}
