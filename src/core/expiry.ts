/**
 * Ends the wait of requests whose time is up, exactly and with one timer.
 *
 *     band 1, 60 s:  item, item, item   requests with the same budget arrive in the order of their deadlines: a line is enough, and
 *     band 0, 60 s:  item, item         the deadlines need not be stored; bands apart, because they leave in different orders
 *     heap:          whatever has a budget beyond the first few distinct ones
 *
 * Invariant: while anything waits the timer is armed no later than the earliest deadline; while nothing waits there is no timer.
 */
import { FifoQueue } from '../queues/fifo-queue.js';
import { HeapQueue } from '../queues/heap-queue.js';
import type { Clock } from './clock.js';
import type { QueueItem } from './queue-item.js';

/** Distinct budgets of bands that get a lane; many more than bands, because requests with TTLs of their own are rare. */
const maxLanes = 64;

/** Waits of one band with one budget. */
export class Lane {
  readonly line: FifoQueue<QueueItem> = new FifoQueue<QueueItem>();
  readonly priority: number;
  readonly budgetMs: number;
  /** Budgets run from here for requests that waited before. */
  private readonly beganAtMs: number;

  constructor(priority: number, budgetMs: number, beganAtMs: number) {
    this.priority = priority;
    this.budgetMs = budgetMs;
    this.beganAtMs = beganAtMs;
  }

  deadlineOf(item: QueueItem): number {
    return Math.max(item.waitingSinceMs, this.beganAtMs) + this.budgetMs;
  }
}

function byDeadline(a: QueueItem, b: QueueItem): number {
  return a.expiresAtMs - b.expiresAtMs || a.sequence - b.sequence;
}

/** When its time is up; Infinity: never. */
export function deadlineOf(item: QueueItem): number {
  return item.lane === undefined ? item.expiresAtMs : item.lane.deadlineOf(item);
}

function isEarlier(a: QueueItem, b: QueueItem): boolean {
  const deadlineA = deadlineOf(a);
  const deadlineB = deadlineOf(b);
  return deadlineA === deadlineB ? a.sequence < b.sequence : deadlineA < deadlineB;
}

export class Expiry {
  private lanes: Lane[] = [];
  private heap = new HeapQueue<QueueItem>(byDeadline);
  private timer: unknown = undefined;
  /** The deadline that the timer is armed for; Infinity while it is not. */
  private armedForMs = Number.POSITIVE_INFINITY;
  /** No deadline is earlier. */
  private noneBeforeMs = Number.POSITIVE_INFINITY;
  private regimeBeganAtMs = Number.NEGATIVE_INFINITY;
  private readonly clock: Clock;
  private readonly onTimer: () => void;

  constructor(clock: Clock, onTimer: () => void) {
    this.clock = clock;
    this.onTimer = onTimer;
  }

  /**
   * Starts the budget of a wait, from the time it began or from the beginning of the regime; waits must come in the order of these
   * times. O(1), or O(log n) in the heap.
   */
  add(item: QueueItem, budgetMs: number): void {
    if (budgetMs === Number.POSITIVE_INFINITY) return;
    const lane = this.laneFor(item.priority, budgetMs);
    const deadlineMs = lane === undefined ? Math.max(item.waitingSinceMs, this.regimeBeganAtMs) + budgetMs : lane.deadlineOf(item);
    if (lane === undefined) {
      item.expiresAtMs = deadlineMs;
      this.heap.push(item);
    } else {
      item.lane = lane;
      lane.line.append(item);
    }
    if (deadlineMs < this.noneBeforeMs) this.noneBeforeMs = deadlineMs;
  }

  /** Ends the wait; `item.isWaiting` must be false by now. O(1). */
  remove(item: QueueItem): void {
    const { lane } = item;
    if (lane !== undefined) {
      item.lane = undefined;
      lane.line.remove(item);
    } else if (item.expiresAtMs !== Number.POSITIVE_INFINITY) this.heap.discard();
  }

  /** Most often answered without a look at the request (bench: burst). */
  isDue(item: QueueItem, nowMs: number): boolean {
    return nowMs >= this.noneBeforeMs && deadlineOf(item) <= nowMs;
  }

  /** The request whose time was up first, if any. */
  due(nowMs: number): QueueItem | undefined {
    if (nowMs < this.noneBeforeMs) return undefined;
    const item = this.first();
    this.noneBeforeMs = item === undefined ? Number.POSITIVE_INFINITY : deadlineOf(item);
    return nowMs >= this.noneBeforeMs ? item : undefined;
  }

  /** Forgets the deadlines of `waiting`, for a regime that began at that time: `add` them again. */
  clear(beganAtMs: number, waiting: readonly QueueItem[]): void {
    this.regimeBeganAtMs = beganAtMs;
    this.lanes = [];
    this.heap = new HeapQueue<QueueItem>(byDeadline);
    for (const item of waiting) {
      item.lane = undefined;
      if (item.expiresAtMs !== Number.POSITIVE_INFINITY) item.expiresAtMs = Number.POSITIVE_INFINITY;
    }
    this.disarm();
  }

  /** Called after every change: sets the timer when it is missing or late. Nothing to do for most requests. */
  arm(nowMs: number): void {
    if (this.timer === undefined || this.noneBeforeMs < this.armedForMs) this.rearm(nowMs);
  }

  /** Called when nothing waits. */
  disarm(): void {
    this.noneBeforeMs = Number.POSITIVE_INFINITY;
    this.armedForMs = Number.POSITIVE_INFINITY;
    if (this.timer === undefined) return;
    this.clock.clearTimeout(this.timer);
    this.timer = undefined;
  }

  private rearm(nowMs: number): void {
    this.disarm();
    const first = this.first();
    if (first !== undefined) this.noneBeforeMs = deadlineOf(first);
    this.armedForMs = this.noneBeforeMs;
    this.timer = this.clock.setTimeout(
      () => {
        this.timer = undefined;
        this.armedForMs = Number.POSITIVE_INFINITY;
        this.onTimer();
      },
      Math.max(Math.ceil(this.armedForMs - nowMs), 0),
    );
  }

  private first(): QueueItem | undefined {
    let earliest = this.heap.peek();
    for (const lane of this.lanes) {
      const first = lane.line.peek();
      if (first !== undefined && (earliest === undefined || isEarlier(first, earliest))) earliest = first;
    }
    return earliest;
  }

  /** Undefined when there are lanes enough. O(lanes), which for most hosts are as many as bands. */
  private laneFor(priority: number, budgetMs: number): Lane | undefined {
    for (const lane of this.lanes) if (lane.priority === priority && lane.budgetMs === budgetMs) return lane;
    if (this.lanes.length >= maxLanes) this.lanes = this.lanes.filter(({ line }) => line.peek() !== undefined);
    if (this.lanes.length >= maxLanes) return undefined;
    const lane = new Lane(priority, budgetMs, this.regimeBeganAtMs);
    this.lanes.push(lane);
    return lane;
  }
}
