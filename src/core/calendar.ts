/**
 * The deadlines of what waits, for the many requests that leave long before theirs.
 *
 *     near:   a heap of what is due before the end of the page that was turned last
 *     pages:  256 ms each, as they came; a page is put into order when it is turned, and by then most of its requests are gone
 *
 * Source: R. Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation event set problem", 1988; with a heap
 * for the first page and a heap of page numbers.
 */
import TinyQueue from 'tinyqueue';
import { FifoQueue } from '../queues/fifo-queue.js';
import { HeapQueue } from '../queues/heap-queue.js';
import type { QueueItem } from './queue-item.js';

const pageMs = 256;
/** Pages that are kept while nothing waits. */
const fewPages = 16;

export class Calendar {
  private near: HeapQueue<QueueItem>;
  private readonly pages = new Map<number, FifoQueue<QueueItem>>();
  private upcoming = new TinyQueue<number>();
  /** The last page that was turned. */
  private turned = Number.NEGATIVE_INFINITY;
  /** The page that was written on last, often the next to be (bench: burst). */
  private latest: FifoQueue<QueueItem> | undefined = undefined;
  private latestNumber = Number.NaN;
  private readonly compare: (a: QueueItem, b: QueueItem) => number;

  /** `deadlineOf` must not change while a request waits. */
  constructor(deadlineOf: (item: QueueItem) => number) {
    this.compare = (a, b) => deadlineOf(a) - deadlineOf(b) || a.sequence - b.sequence;
    this.near = new HeapQueue<QueueItem>(this.compare);
  }

  /** O(1) amortized; O(log n) for what is due before all that was not looked at yet. */
  add(item: QueueItem, deadlineMs: number): void {
    const number = Math.floor(deadlineMs / pageMs);
    const deadlines = number <= this.turned ? this.near : this.pageOf(number);
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
    let first = this.near.peek();
    while (first === undefined && this.upcoming.length > 0) {
      this.turnPage();
      first = this.near.peek();
    }
    return first;
  }

  /** Forgets what was added. */
  clear(): void {
    this.near = new HeapQueue<QueueItem>(this.compare);
    this.pages.clear();
    this.upcoming = new TinyQueue<number>();
    this.turned = Number.NEGATIVE_INFINITY;
    this.latest = undefined;
  }

  /** Called when nothing waits. */
  tidy(): void {
    if (this.pages.size > fewPages) this.clear();
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

  private turnPage(): void {
    this.turned = this.upcoming.pop() as number;
    const page = this.pages.get(this.turned);
    this.pages.delete(this.turned);
    this.latest = undefined;
    this.near = new HeapQueue<QueueItem>(this.compare, page?.members());
    for (const item of this.near.members()) item.deadlines = this.near;
  }
}
