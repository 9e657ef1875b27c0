/** Gives each flow with waiting requests one turn in each round. */
import { type Linked, LinkedList } from '../../base/queues/linked-list.js';
import type { FlowView } from '../views.js';
import type { FairnessPolicy, FlowFairnessPolicy, FlowSelector } from './fairness-policy.js';
import type { GuardedSelector } from './guarded-selector.js';

/** A flow's place in the rounds; it is in a list while the flow is active. */
class Turn implements Linked<Turn> {
  previous: Turn | undefined = undefined;
  next: Turn | undefined = undefined;
  list: LinkedList<Turn> | undefined = undefined;
  servedInRound = 0;
  /** The round that took it in as a newcomer. */
  joinedRound = 0;
  /** Requests it may still send in this turn. */
  left = 0;
  readonly flow: FlowView;

  constructor(flow: FlowView) {
    this.flow = flow;
  }
}

/** Invariant: a turn is in `current` when its flow was not served in this round, else in `upcoming`. */
class RoundRobinSelector implements FlowSelector {
  private readonly turns = new Map<FlowView, Turn>();
  private current = new LinkedList<Turn>();
  private upcoming = new LinkedList<Turn>();
  private round = 0;
  private newcomersLeft = 0;
  /** Fairness IDs that were served in this round and collected since: no more than the round has turns. */
  private readonly servedAndGone = new Set<string>();
  /** The turn that was looked up last, because each request makes several calls for one flow (bench: keyed). */
  private latest: Turn | undefined = undefined;

  pick(): FlowView | undefined {
    if (this.current.size === 0) {
      const emptied = this.current;
      this.current = this.upcoming;
      this.upcoming = emptied;
      this.round++;
      // An empty set makes a new table when it is cleared; with one flow, every request begins a round (bench: keyed).
      if (this.servedAndGone.size > 0) this.servedAndGone.clear();
      this.newcomersLeft = this.current.size;
    }
    this.latest = this.current.first;
    return this.latest?.flow;
  }

  flowActivated(flow: FlowView): void {
    let turn = this.latest?.flow === flow ? this.latest : this.find(flow);
    if (turn === undefined) {
      turn = new Turn(flow);
      if (this.servedAndGone.delete(flow.fairnessId)) turn.servedInRound = this.round;
      this.turns.set(flow, turn);
    }
    const joinsThisRound = turn.servedInRound !== this.round && this.newcomersLeft > 0;
    if (joinsThisRound) {
      this.newcomersLeft--;
      turn.joinedRound = this.round;
    }
    turn.list?.remove(turn);
    turn.list = joinsThisRound ? this.current : this.upcoming;
    turn.list.push(turn);
  }

  flowDeactivated(flow: FlowView): void {
    const turn = this.latest?.flow === flow ? this.latest : this.find(flow);
    if (turn === undefined) return;
    turn.list?.remove(turn);
    turn.list = undefined;
    if (flow.waiting === 0 || turn.joinedRound !== this.round) return;
    // If a newcomer is held back or parked before its turn, its place in the round is free again.
    turn.joinedRound = 0;
    if (turn.servedInRound !== this.round) this.newcomersLeft++;
  }

  dispatched(flow: FlowView): void {
    const turn = this.latest?.flow === flow ? this.latest : this.find(flow);
    if (turn === undefined) return;
    if (turn.servedInRound !== this.round) turn.left = flow.weight;
    turn.servedInRound = this.round;
    turn.left--;
    if (turn.list === undefined || turn.left > 0) return;
    turn.list.remove(turn);
    turn.list = this.upcoming;
    turn.list.push(turn);
  }

  flowRemoved(flow: FlowView): void {
    if (this.turns.get(flow)?.servedInRound === this.round) this.servedAndGone.add(flow.fairnessId);
    this.turns.delete(flow);
    if (this.latest?.flow === flow) this.latest = undefined;
  }

  private find(flow: FlowView): Turn | undefined {
    this.latest = this.turns.get(flow);
    return this.latest;
  }
}

/** The same for a band that asks without a guard, because it is ours and does not fail. */
export class UnguardedRounds extends RoundRobinSelector implements Pick<GuardedSelector, keyof GuardedSelector> {
  readonly hearsDispatches = true;
  readonly hearsItems = false;
  readonly hearsSettlements = false;
  readonly keepsAccount = false;
  readonly fairnessIndex = undefined;
  readonly ignoredReports = 0;
  itemAdded(): void {}
  itemRemoved(): void {}
  consumed(): void {}
  settled(): void {}
  lead(): undefined {}
  service(): undefined {}
  forHeld(): undefined {}
}

/** Those that `roundRobin` made: what a host wraps or changes is none of them. */
const made = new WeakSet<FairnessPolicy>();

export function isRoundRobin(policy: FairnessPolicy): boolean {
  return made.has(policy);
}

/**
 * One request from each active flow in turn (as many as its `weight`), in the order in which they became active. A flow
 * that becomes active joins the round that is on, unless it had its turn in it; a round takes in no more newcomers than
 * it began with flows, so that an endless stream of new fairness IDs cannot keep the others waiting. O(1). A flow that
 * keeps requests waiting is served once in each round; between two of its turns every other flow is served at most
 * once. Differs from llm-d-router: active flows only, in the order of their activation, and no restart when the last
 * served flow goes; sorting all registered flows at each pick costs O(n log n) and favours names that sort first.
 * Source: llm-d-router, round-robin-fairness-policy.
 */
export function roundRobin(): FlowFairnessPolicy {
  const policy = Object.freeze({ type: 'round-robin-fairness-policy', createSelector: () => new RoundRobinSelector() });
  made.add(policy);
  return policy;
}
