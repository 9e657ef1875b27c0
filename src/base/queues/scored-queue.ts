/**
 * Arrival order in which a high score may pass: of the first few members, the one with the highest score now goes next.
 *
 *     first │ second │ … │ last of the lookahead │ …        `first` is passed by a bounded number, then it goes
 *
 * Scores are asked for anew at each choice, so they may change while members wait. Who is ahead of a member is told by
 * arrival, because the scores of later choices are not known yet.
 */
import { FifoQueue } from './fifo-queue.js';
import type { Queued } from './item-queue.js';

export interface Scores<T> {
  /** Members that are compared at each choice. */
  readonly lookahead: number;
  /** How many may pass the first. */
  readonly overtakings: number;
  /** Must not throw. */
  score(member: T): number;
  dispatched(member: T): void;
}

/** push O(1) amortized; the next choice after a push or a shift O(lookahead). */
export class ScoredQueue<T extends Queued> extends FifoQueue<T> {
  /** The choice, until something comes or goes. */
  private chosen: T | undefined = undefined;
  private first: T | undefined = undefined;
  private passedFirst = 0;
  private readonly scores: Scores<T>;

  constructor(scores: Scores<T>) {
    super();
    this.scores = scores;
  }

  override push(member: T): void {
    super.push(member);
    this.chosen = undefined;
  }

  override peek(): T | undefined {
    if (this.chosen?.isWaiting === true) return this.chosen;
    const first = super.peek();
    if (first !== this.first) {
      this.first = first;
      this.passedFirst = 0;
    }
    this.chosen = first === undefined || this.passedFirst >= this.scores.overtakings ? first : this.best(first);
    return this.chosen;
  }

  override shift(): void {
    const { chosen } = this;
    if (chosen === undefined) return;
    this.chosen = undefined;
    if (chosen !== this.first) this.passedFirst++;
    this.remove(chosen);
    this.scores.dispatched(chosen);
  }

  private best(first: T): T {
    let best = first;
    let highest = this.scores.score(first);
    for (const member of this.leading(this.scores.lookahead)) {
      const score = member === first ? highest : this.scores.score(member);
      if (score <= highest) continue;
      best = member;
      highest = score;
    }
    return best;
  }
}
