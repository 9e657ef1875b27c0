/** Ends waits when their time is up. Invariant: one timer, for the first deadline, exactly while something waits. */
import TinyQueue from 'tinyqueue';
import type { Clock } from '../../base/clock.js';
import { FifoQueue } from '../../base/queues/fifo-queue.js';
import { HeapQueue } from '../../base/queues/heap-queue.js';
import { toleratedMs } from './operation.js';
import type { QueueItem } from './queue-item.js';

const bucketMs = 256;
/** Buckets that are kept while nothing waits. */
const fewBuckets = 16;

/** Knows the budgets. A method, because a closure is optimized for one controller only (bench: burst). */
export interface Budgets {
  /** How long the request may wait, ms. For requests that were added, the answer changes only with `restart`. */
  budgetOf(item: QueueItem): number;
  /** How long it may wait in all, ms, however often its budget begins anew. */
  mostOf(item: QueueItem): number;
}

export class Expiry {
  private calendar: CalendarQueue = this.makeCalendar();
  private timer: unknown = undefined;
  /** The deadline that the timer is armed for; Infinity while it is not. */
  private armedForMs = Infinity;
  /** No deadline is earlier. */
  private noneBeforeMs = Infinity;
  /** The instant at which the regime began, ms: budgets of requests that waited before it run from there. */
  private regimeBeganAtMs = -Infinity;
  private readonly clock: Clock;
  /** How much later than it says a wait may have begun, ms. */
  private readonly inexactMs: number;
  private readonly budgets: Budgets;
  private readonly onTimer: () => void;

  constructor(clock: Clock, budgets: Budgets, onTimer: () => void) {
    this.clock = clock;
    this.inexactMs = clock.nextTurn === undefined ? 0 : toleratedMs;
    this.budgets = budgets;
    this.onTimer = onTimer;
  }

  /** The instant at which its time is up; Infinity: never. */
  deadlineOf(item: QueueItem): number {
    const budgetMs = this.budgets.budgetOf(item);
    const sinceMs = item.waitingSinceMs + this.inexactMs;
    if (sinceMs >= this.regimeBeganAtMs) return sinceMs + budgetMs;
    return Math.min(this.regimeBeganAtMs + budgetMs, sinceMs + this.budgets.mostOf(item));
  }

  /** Starts the budget of a wait, from its beginning or the regime's. O(1) amortized, at most O(log waiting). */
  add(item: QueueItem): void {
    const deadlineMs = this.deadlineOf(item);
    if (deadlineMs === Infinity) return;
    this.calendar.add(item, deadlineMs);
    if (deadlineMs < this.noneBeforeMs) this.noneBeforeMs = deadlineMs;
  }

  /** Ends the wait; `item.isWaiting` must be false by now. O(1) amortized. */
  remove(item: QueueItem): void {
    item.deadlines?.remove(item);
    item.deadlines = undefined;
  }

  /** It mostly answers without looking at the request (bench: burst). */
  isDue(item: QueueItem, nowMs: number): boolean {
    return nowMs >= this.noneBeforeMs && this.deadlineOf(item) <= nowMs;
  }

  /** False when no request's time is up; true when one may be. */
  mayBeDue(nowMs: number): boolean {
    return nowMs >= this.noneBeforeMs;
  }

  /** True while `disarm` has something to do. */
  get isUsed(): boolean {
    return this.noneBeforeMs !== Infinity || this.timer !== undefined;
  }

  /** The request whose time was up first, if any. */
  due(nowMs: number): QueueItem | undefined {
    if (nowMs < this.noneBeforeMs) return undefined;
    const item = this.calendar.first();
    this.noneBeforeMs = item === undefined ? Infinity : this.deadlineOf(item);
    return nowMs >= this.noneBeforeMs ? item : undefined;
  }

  /** Gives `waiting`, all that waits, fresh budgets, in a regime that began at that time. */
  restart(beganAtMs: number, waiting: readonly QueueItem[]): void {
    this.noneBeforeMs = Infinity;
    this.clearTimer();
    this.calendar = this.makeCalendar();
    this.regimeBeganAtMs = beganAtMs;
    for (const item of waiting) {
      // Its bucket was given up as a whole, with the calendar before.
      item.deadlines = undefined;
      this.add(item);
    }
  }

  /** Sets the timer for the earliest deadline, unless one is set that ends no later. */
  arm(nowMs: number): void {
    if (this.timer !== undefined && this.noneBeforeMs >= this.armedForMs) return;
    // This is asked here, because most requests that wait find no timer to clear (test/structural/request-path).
    if (this.timer !== undefined) this.clearTimer();
    this.armedForMs = this.noneBeforeMs;
    this.timer = this.clock.setTimeout(
      () => {
        this.timer = undefined;
        this.armedForMs = Infinity;
        this.onTimer();
      },
      Math.max(Math.ceil(this.armedForMs - nowMs), 0),
    );
  }

  /** Called when nothing waits. */
  disarm(): void {
    this.noneBeforeMs = Infinity;
    if (this.calendar.hasGrown) this.calendar = this.makeCalendar();
    this.clearTimer();
  }

  private makeCalendar(): CalendarQueue {
    return new CalendarQueue((item) => this.deadlineOf(item));
  }

  private clearTimer(): void {
    if (this.timer === undefined) return;
    this.clock.clearTimeout(this.timer);
    this.timer = undefined;
    this.armedForMs = Infinity;
  }
}

/**
 * A calendar queue of deadlines, made for requests that leave long before theirs: these cost O(1), and are never
 * sorted.
 *
 *     buckets:  256 ms each, in the order of arrival
 *     current:  the bucket that was opened last, sorted then; most of its requests have left by that time
 *     late:     a heap of requests whose bucket was opened before they came
 *
 * A request leaves through its `deadlines`, and the queue need not be asked.
 * Source: R. Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation event set problem",
 * 1988; with a heap of bucket numbers, and one of latecomers.
 */
export class CalendarQueue {
  private current = new FifoQueue<QueueItem>();
  private readonly late: HeapQueue<QueueItem>;
  private readonly buckets = new Map<number, FifoQueue<QueueItem>>();
  private readonly upcoming = new TinyQueue<number>();
  /** The number of the bucket that was opened last, because its time had come. */
  private opened = -Infinity;
  /** The bucket that got the last request, and often gets the next (bench: burst). */
  private latest: FifoQueue<QueueItem> | undefined = undefined;
  private latestNumber = NaN;
  private readonly compare: (a: QueueItem, b: QueueItem) => number;

  /** The answer of `deadlineOf` must not fall while a request waits. */
  constructor(deadlineOf: (item: QueueItem) => number) {
    this.compare = (a, b) => deadlineOf(a) - deadlineOf(b) || a.sequence - b.sequence;
    this.late = new HeapQueue<QueueItem>(this.compare);
  }

  /** O(1) amortized; O(log n) for latecomers. */
  add(item: QueueItem, deadlineMs: number): void {
    const number = Math.floor(deadlineMs / bucketMs);
    const next = number === this.latestNumber ? this.latest : undefined;
    const deadlines = number <= this.opened ? this.late : (next ?? this.bucketOf(number));
    deadlines.push(item);
    item.deadlines = deadlines;
  }

  /** The earliest deadline; ties in arrival order. */
  first(): QueueItem | undefined {
    const late = this.late.peek();
    let first = this.current.peek();
    while (first === undefined && late === undefined && this.upcoming.length > 0) first = this.openBucket();
    if (first === undefined || late === undefined) return first ?? late;
    return this.compare(first, late) < 0 ? first : late;
  }

  /** Requests that the queue still refers to, whether they wait or not. O(buckets). */
  get length(): number {
    let { length } = this.current;
    for (const bucket of this.buckets.values()) length += bucket.length;
    return length + this.late.length;
  }

  /** True when a new queue would take so much less memory that an empty one should be replaced. */
  get hasGrown(): boolean {
    return this.buckets.size > fewBuckets;
  }

  private bucketOf(number: number): FifoQueue<QueueItem> {
    let bucket = this.buckets.get(number);
    if (bucket === undefined) {
      bucket = new FifoQueue<QueueItem>();
      this.buckets.set(number, bucket);
      this.upcoming.push(number);
    }
    this.latest = bucket;
    this.latestNumber = number;
    return bucket;
  }

  private openBucket(): QueueItem | undefined {
    this.opened = this.upcoming.pop() as number;
    const bucket = this.buckets.get(this.opened);
    this.buckets.delete(this.opened);
    this.latest = undefined;
    this.current = new FifoQueue<QueueItem>();
    for (const item of bucket?.members().sort(this.compare) ?? []) {
      this.current.append(item);
      item.deadlines = this.current;
    }
    return this.current.peek();
  }
}
