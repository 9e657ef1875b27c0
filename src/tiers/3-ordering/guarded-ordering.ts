/** An ordering policy behind a guard: what throws or answers nonsense is reported, and counts as no answer. */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard, question, wrong, yesOrNo } from '../../base/faults/plugin-guard.js';
import { FifoQueue } from '../../base/queues/fifo-queue.js';
import { HeapQueue } from '../../base/queues/heap-queue.js';
import type { ItemQueue, Queued } from '../../base/queues/item-queue.js';
import { ScoredQueue, type Scores } from '../../base/queues/scored-queue.js';
import type { ItemView } from '../views.js';
import type { OrderingPolicy } from './ordering-policy.js';

const isInfeasible = yesOrNo('isInfeasible');
const score = question('score', 'a number', (answer) =>
  typeof answer === 'number' && !Number.isNaN(answer) ? answer : wrong,
);

export class GuardedOrdering {
  /** True when the order of arrival is all that the policy compares. */
  readonly isInArrivalOrder: boolean;
  /** True when the policy drops requests that come too late. */
  readonly dropsInfeasible: boolean;
  /** True when the policy hears of first tokens. */
  readonly hearsFirstTokens: boolean;
  private readonly scores: Scores<ItemView> | undefined;
  private readonly policy: OrderingPolicy;
  private readonly guard: PluginGuard;

  constructor(policy: OrderingPolicy, errors: PluginErrorSink) {
    this.policy = policy;
    this.guard = new PluginGuard('ordering', policy, errors);
    this.scores = guardedScores(policy, errors);
    this.isInArrivalOrder = this.guard.read(policy, 'arrivalOrder') === true;
    this.dropsInfeasible = this.guard.has(policy, 'isInfeasible');
    this.hearsFirstTokens = this.guard.has(policy, 'firstToken');
  }

  makeQueue<T extends ItemView & Queued>(): ItemQueue<T> {
    if (this.scores !== undefined) return new ScoredQueue<T>(this.scores);
    return this.isInArrivalOrder ? new FifoQueue<T>() : new HeapQueue<T>(this.compare);
  }

  /** Breaks ties by arrival. */
  readonly compare = (a: ItemView, b: ItemView): number => {
    try {
      const order: unknown = this.policy.compare(a, b);
      if (typeof order === 'number' && !Number.isNaN(order)) return order || a.sequence - b.sequence;
      this.guard.violated('compare must return a number', order);
    } catch (error) {
      this.guard.failed(error);
    }
    return a.sequence - b.sequence;
  };

  /** True when the policy has given the request up. Asked where `dropsInfeasible`. */
  isInfeasible(item: ItemView, nowMs: number): boolean {
    return this.guard.ask(this.policy, isInfeasible, item, nowMs) === true;
  }

  /** A dispatched request had its first token, or ended without a report. Told where `hearsFirstTokens`. */
  firstToken(item: ItemView, afterMs: number): void {
    this.guard.tell(this.policy, 'firstToken', item, afterMs);
  }
}

/** Undefined for policies without scores. A score that fails counts as 0. */
export function guardedScores(policy: OrderingPolicy, errors: PluginErrorSink): Scores<ItemView> | undefined {
  const guard = new PluginGuard('ordering', policy, errors);
  const scores = guard.read(policy, 'scores');
  if (scores === undefined) return undefined;
  const count = (name: 'lookahead' | 'overtakings', least: number): number => {
    const given: unknown = guard.read(scores, name);
    if (Number.isInteger(given) && (given as number) >= least) return given as number;
    guard.violated(`scores.${name} must be an integer from ${least} up`, given);
    return least;
  };
  return {
    lookahead: count('lookahead', 1),
    overtakings: count('overtakings', 0),
    score: (item) => guard.ask(scores, score, item) ?? 0,
    dispatched: (item) => guard.tell(scores, 'dispatched', item),
  };
}
