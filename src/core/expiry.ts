/**
 * Ends the wait of requests whose time is up, exactly and with one timer.
 *
 *     lane 60 s:  item ⇄ item ⇄ item      requests with the same budget arrive in the order of their deadlines: a list is enough
 *     lane  2 s:  item ⇄ item
 *     heap:       whatever has a budget beyond the first few distinct ones
 *
 * Invariant: while anything waits the timer is armed no later than the earliest deadline; while nothing waits there is no timer.
 */
import { HeapQueue } from '../queues/heap-queue.js';
import { LinkedList } from '../queues/linked-list.js';
import type { Clock } from './clock.js';
import type { QueueItem } from './queue-item.js';

/** Distinct budgets that get a lane; more than one band's worth of different TTLs is rare. */
const maxLanes = 16;

function byDeadline(a: QueueItem, b: QueueItem): number {
  return a.expiresAtMs - b.expiresAtMs || a.sequence - b.sequence;
}

export class Expiry {
  private readonly lanes = new Map<number, LinkedList<QueueItem>>();
  private heap = new HeapQueue<QueueItem>(byDeadline);
  private timer: unknown = undefined;
  /** What the timer is armed for; Infinity while it is not. */
  private armedForMs = Number.POSITIVE_INFINITY;
  /** The earliest deadline added since the timer was armed. */
  private earliestAddedMs = Number.POSITIVE_INFINITY;
  private readonly clock: Clock;
  private readonly onTimer: () => void;

  constructor(clock: Clock, onTimer: () => void) {
    this.clock = clock;
    this.onTimer = onTimer;
  }

  /** Starts the wait: `budgetMs` counted from `fromMs`, which must not fall from one call to the next. O(1), or O(log n) in the heap. */
  add(item: QueueItem, fromMs: number, budgetMs: number): void {
    item.expiresAtMs = fromMs + budgetMs;
    item.deadlines = undefined;
    if (budgetMs === Number.POSITIVE_INFINITY) return;
    const lane = this.laneFor(budgetMs);
    item.deadlines = lane ?? this.heap;
    item.deadlines.push(item);
    if (item.expiresAtMs < this.earliestAddedMs) this.earliestAddedMs = item.expiresAtMs;
  }

  /** Ends the wait; `item.isWaiting` must be false by now. O(1). */
  remove(item: QueueItem): void {
    const { deadlines } = item;
    item.deadlines = undefined;
    if (deadlines instanceof LinkedList) deadlines.remove(item);
    else if (deadlines !== undefined) deadlines.discard();
  }

  /** The request whose time was up first, if any. */
  due(nowMs: number): QueueItem | undefined {
    const item = this.first();
    return item !== undefined && item.expiresAtMs <= nowMs ? item : undefined;
  }

  /** Forgets every deadline, for a new regime: `add` the waiting requests again. */
  clear(): void {
    this.lanes.clear();
    this.heap = new HeapQueue<QueueItem>(byDeadline);
    this.earliestAddedMs = Number.NEGATIVE_INFINITY;
  }

  /** Called after every change: sets the timer when it is missing or late. Nothing to do for most requests. */
  arm(nowMs: number): void {
    if (this.timer !== undefined && this.earliestAddedMs >= this.armedForMs) return;
    this.disarm();
    const deadline = this.first()?.expiresAtMs ?? Number.POSITIVE_INFINITY;
    const delay = Math.max(Math.ceil(deadline - nowMs), 0);
    this.armedForMs = nowMs + delay;
    this.earliestAddedMs = Number.POSITIVE_INFINITY;
    this.timer = this.clock.setTimeout(() => {
      this.timer = undefined;
      this.armedForMs = Number.POSITIVE_INFINITY;
      this.onTimer();
    }, delay);
  }

  /** Called when nothing waits. */
  disarm(): void {
    if (this.timer === undefined) return;
    this.clock.clearTimeout(this.timer);
    this.timer = undefined;
    this.armedForMs = Number.POSITIVE_INFINITY;
  }

  private first(): QueueItem | undefined {
    let earliest = this.heap.peek();
    for (const lane of this.lanes.values()) {
      if (lane.first !== undefined && (earliest === undefined || byDeadline(lane.first, earliest) < 0)) earliest = lane.first;
    }
    return earliest;
  }

  /** Undefined when there are lanes enough. */
  private laneFor(budgetMs: number): LinkedList<QueueItem> | undefined {
    let lane = this.lanes.get(budgetMs);
    if (lane !== undefined) return lane;
    if (this.lanes.size >= maxLanes) this.dropEmptyLanes();
    if (this.lanes.size >= maxLanes) return undefined;
    lane = new LinkedList<QueueItem>();
    this.lanes.set(budgetMs, lane);
    return lane;
  }

  private dropEmptyLanes(): void {
    for (const [budgetMs, lane] of this.lanes) if (lane.size === 0) this.lanes.delete(budgetMs);
  }
}
