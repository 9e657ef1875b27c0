/**
 * Deficit round robin in its surplus form. In each round a share may use one quantum of cost per weight. A share that
 * has used more sits out rounds until that is paid for. Costs need not be known beforehand.
 *
 *     level ── this round's ┐  a share has its turn while its counter is below the level; the level rises by one quantum a round
 *     floor ────────────────┘  those that come begin here: what they owe is kept, what they did not use is not
 *
 *     current: rest of this round ◄─ those that come below the level, behind all others
 *     upcoming: had their turn    ◄─ those that come above it, before all others       ─► current of the next round
 *     sitting out: by the round in which they are paid up, then by their place in the rounds
 *
 * A share that owes k quanta enters `sittingOut` once, whatever k is, and a round in which everybody sits out is not
 * walked through. Where the level is too large for a double to hold a quantum more, a round raises it by the least step
 * of a double. Invariant: an active share is in exactly one of the three; `current` and `upcoming` are in the order of
 * `turn`, the shares' places in the rounds. No two shares have one place, and a share keeps its own while it is active,
 * so that between two turns of one share any other has its turn once. Source: Shreedhar and Varghese, "Efficient Fair
 * Queuing using Deficit Round Robin" (1995); Adiseshu et al., surplus round robin (1996).
 */
import { LinkedList } from '../../../base/queues/linked-list.js';
import { rebaseAbove, type Share, type ShareOrder } from './share.js';
import { ShareHeap } from './share-heap.js';

/** Dispatches between two looks at the largest cost, at least. */
const fewestBetweenReviews = 1024;

/** Counters stay below so many quanta where costs allow: a quantum is then 2^8 steps of a double, or more. */
const mostQuanta = 2 ** 44;

/** Doubles count up to it one by one. */
const mostRounds = 2 ** 52;

export class DeficitRounds implements ShareOrder {
  /** The counter at which a share begins that comes in this round. */
  floor = 0;
  private level: number;
  private quantum: number;
  /** Of this round; `sittingOut` is ordered by it. */
  private round = 0;
  /** Times that the level rose: tells rounds apart, where `round` begins anew when it has grown large. */
  private rises = 0;
  /** Where the next share stands that comes for this round, and where the next that comes for a later one. */
  private behindAll = 0;
  private beforeAll = -1;
  /** The place of the share whose turn it was last. A round begins with a turn, so that it is one of this round. */
  private cursor = 0;
  private current = new LinkedList<Share>();
  private upcoming = new LinkedList<Share>();
  private readonly sittingOut = new ShareHeap<Share>();
  private readonly isAdaptive: boolean;
  private largest = 1;
  private chargesUntilReview = fewestBetweenReviews;

  /**
   * Without a quantum it follows the largest cost per weight: a pick is O(1). Weights count from 1 up: lighter shares
   * sit out rounds, in O(log shares).
   */
  constructor(quantum?: number) {
    this.isAdaptive = quantum === undefined;
    this.quantum = quantum ?? 1;
    this.level = this.quantum;
  }

  get size(): number {
    return this.current.size + this.upcoming.size + this.sittingOut.size;
  }

  get mark(): number {
    return this.floor;
  }

  get excess(): number {
    return this.floor > Math.min(rebaseAbove, this.quantum * mostQuanta) ? this.floor : 0;
  }

  activate(share: Share, isNew: boolean): void {
    // What it did not use of its turn in this round is lost.
    const least = share.visitedIn === this.rises ? this.level : this.floor;
    if (isNew && share.counter < least) share.counter = least;
    if (share.counter < this.level) {
      share.turn = this.behindAll++;
      this.current.push(share);
      share.list = this.current;
      return;
    }
    // Its next turn comes before a second one of those that have theirs yet in this round.
    share.turn = this.beforeAll--;
    this.lineUp(share);
  }

  deactivate(share: Share): void {
    const { list } = share;
    if (list === undefined) return void this.sittingOut.remove(share);
    list.remove(share);
    share.list = undefined;
  }

  next(): Share | undefined {
    for (;;) {
      const share = this.candidate();
      if (share === undefined) {
        if (!this.startRound()) return undefined;
        continue;
      }
      this.cursor = share.turn;
      share.visitedIn = this.rises;
      if (share.counter < this.level) return share;
      this.deactivate(share);
      this.lineUp(share);
    }
  }

  pass(share: Share): void {
    if (share.counter < this.floor) share.counter = this.floor;
    if (this.size === 0 && share.counter >= this.level) this.riseBy(this.roundsUntil(share.counter));
  }

  charge(share: Share, amount: number, cost: number = amount): void {
    if (this.isAdaptive) {
      this.largest = Math.max(this.largest, Math.min(amount, cost));
      this.chargesUntilReview--;
    }
    share.counter += amount;
  }

  correct(share: Share, amount: number): void {
    share.counter += amount;
    // Shares in the lists are looked at when their turn comes.
    if (!share.isActive || share.list !== undefined) return;
    this.sittingOut.remove(share);
    const soonest = share.turn >= this.cursor ? 0 : 1;
    this.sittingOut.push(share, this.round + Math.max(this.roundsUntil(share.counter), soonest), share.turn);
  }

  lower(amount: number): void {
    this.floor -= amount;
    this.level -= amount;
  }

  /** The next share of this round: the first of `current`, or one with an earlier place that sat out long enough. */
  private candidate(): Share | undefined {
    const { first } = this.current;
    const paid = this.sittingOut.firstKey <= this.round ? this.sittingOut.first : undefined;
    return paid !== undefined && (first === undefined || paid.turn < first.turn) ? paid : first;
  }

  /** False when no share is left. */
  private startRound(): boolean {
    if (this.isAdaptive) this.reviewQuantum();
    if (this.upcoming.size > 0) this.riseBy(1);
    else if (this.sittingOut.size > 0) this.riseBy(this.sittingOut.firstKey - this.round);
    else return false;
    const emptied = this.current;
    this.current = this.upcoming;
    this.upcoming = emptied;
    return true;
  }

  /** The level always rises: otherwise shares at it would never have their turn, and `next` would not end. */
  private riseBy(rounds: number): void {
    const { level } = this;
    this.rises++;
    this.round += rounds;
    this.level = Math.max(level + rounds * this.quantum, level * (1 + Number.EPSILON));
    this.floor = Math.max(this.floor, this.level - this.quantum);
    if (this.round <= mostRounds) return;
    // Counts rounds from this one on: the next has another number. O(shares that sit out), once in 2^52 rounds.
    this.sittingOut.lower(this.round);
    this.round = 0;
  }

  /** Rounds until the level is above `counter`; 0 and less where it is already. */
  private roundsUntil(counter: number): number {
    return Math.floor((counter - this.level) / this.quantum) + 1;
  }

  /** The share's turn is over. */
  private lineUp(share: Share): void {
    const rounds = this.roundsUntil(share.counter);
    if (rounds > 1) return void this.sittingOut.push(share, this.round + rounds, share.turn);
    const { first } = this.upcoming;
    if (first !== undefined && share.turn < first.turn) this.upcoming.unshift(share);
    else this.upcoming.push(share);
    share.list = this.upcoming;
  }

  /** Larger costs count at once; smaller ones when none larger came for a while. O(active shares) at a rare change. */
  private reviewQuantum(): void {
    let wanted = this.quantum;
    if (this.largest > this.quantum) wanted = this.largest;
    if (this.chargesUntilReview <= 0) {
      wanted = Math.max(this.largest, 1, this.quantum / 2);
      this.largest = 1;
      this.chargesUntilReview = Math.max(fewestBetweenReviews, this.size);
    }
    if (wanted === this.quantum) return;
    this.quantum = wanted;
    for (const share of this.sittingOut.clear())
      this.sittingOut.push(share, this.round + Math.max(this.roundsUntil(share.counter), 1), share.turn);
  }
}
