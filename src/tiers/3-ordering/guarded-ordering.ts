/**
 * An ordering policy behind a guard: what throws or answers nonsense is reported, and counts as no answer. What the
 * policy must be asked is found out once.
 */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard } from '../../base/faults/plugin-guard.js';
import { FifoQueue } from '../../base/queues/fifo-queue.js';
import { HeapQueue } from '../../base/queues/heap-queue.js';
import type { ItemQueue, Queued } from '../../base/queues/item-queue.js';
import { ScoredQueue, type Scores } from '../../base/queues/scored-queue.js';
import type { ItemView } from '../views.js';
import { guardedScores } from './guarded-scores.js';
import type { OrderingPolicy } from './ordering-policy.js';

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
    try {
      const answer: unknown = this.policy.isInfeasible?.(item, nowMs);
      if (typeof answer === 'boolean') return answer;
      this.guard.violated('isInfeasible must return true or false', answer);
    } catch (error) {
      this.guard.failed(error);
    }
    return false;
  }

  /** A dispatched request had its first token, or ended without a report. Told where `hearsFirstTokens`. */
  firstToken(item: ItemView, afterMs: number): void {
    try {
      const answer: unknown = this.policy.firstToken?.(item, afterMs);
      if (answer !== undefined) this.guard.ignored(answer);
    } catch (error) {
      this.guard.failed(error);
    }
  }
}
