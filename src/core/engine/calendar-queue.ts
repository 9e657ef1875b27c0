/**
 * The deadlines of what waits, for the many requests that leave long before theirs.
 *
 *     pages:    256 ms each, as they came
 *     current:  the page that was turned last, put into order then; most of its requests are gone by that time
 *     late:     a heap of what came for pages that were turned before
 *
 * Source: R. Brown, "CalendarQueue queues: a fast O(1) priority queue implementation for the simulation event set problem", 1988; with a heap of
 * page numbers, and one of latecomers.
 */
import TinyQueue from 'tinyqueue';
import { FifoQueue } from '../../base/queues/fifo-queue.js';
import { HeapQueue } from '../../base/queues/heap-queue.js';
import type { QueueItem } from './queue-item.js';

const pageMs = 256;
/** Pages that are kept while nothing waits. */
const fewPages = 16;

export class CalendarQueue {
  private current = new FifoQueue<QueueItem>();
  private readonly late: HeapQueue<QueueItem>;
  private readonly pages = new Map<number, FifoQueue<QueueItem>>();
  private readonly upcoming = new TinyQueue<number>();
  /** The last page that was turned. */
  private turned = Number.NEGATIVE_INFINITY;
  /** The page that was written on last, often the next to be (bench: burst). */
  private latest: FifoQueue<QueueItem> | undefined = undefined;
  private latestNumber = Number.NaN;
  private readonly compare: (a: QueueItem, b: QueueItem) => number;

  /** `deadlineOf` must not change while a request waits. */
  constructor(deadlineOf: (item: QueueItem) => number) {
    this.compare = (a, b) => deadlineOf(a) - deadlineOf(b) || a.sequence - b.sequence;
    this.late = new HeapQueue<QueueItem>(this.compare);
  }

  /** O(1) amortized; O(log n) for latecomers. */
  add(item: QueueItem, deadlineMs: number): void {
    const number = Math.floor(deadlineMs / pageMs);
    const deadlines = number <= this.turned ? this.late : this.pageOf(number);
    deadlines.push(item);
    item.deadlines = deadlines;
  }

  /** `item.isWaiting` must be false by now. O(1) amortized. */
  remove(item: QueueItem): void {
    item.deadlines?.remove(item);
    item.deadlines = undefined;
  }

  /** What is due first; ties in arrival order. */
  first(): QueueItem | undefined {
    const late = this.late.peek();
    let first = this.current.peek();
    while (first === undefined && late === undefined && this.upcoming.length > 0) first = this.turnPage();
    if (first === undefined || late === undefined) return first ?? late;
    return this.compare(first, late) < 0 ? first : late;
  }

  /** True when a new one would be smaller, once nothing waits. */
  get hasGrown(): boolean {
    return this.pages.size > fewPages;
  }

  private pageOf(number: number): FifoQueue<QueueItem> {
    if (this.latest !== undefined && this.latestNumber === number) return this.latest;
    let page = this.pages.get(number);
    if (page === undefined) {
      page = new FifoQueue<QueueItem>();
      this.pages.set(number, page);
      this.upcoming.push(number);
    }
    this.latest = page;
    this.latestNumber = number;
    return page;
  }

  private turnPage(): QueueItem | undefined {
    this.turned = this.upcoming.pop() as number;
    const page = this.pages.get(this.turned);
    this.pages.delete(this.turned);
    this.latest = undefined;
    this.current = new FifoQueue<QueueItem>();
    for (const item of page?.members().sort(this.compare) ?? []) {
      this.current.append(item);
      item.deadlines = this.current;
    }
    return this.current.peek();
  }
}
