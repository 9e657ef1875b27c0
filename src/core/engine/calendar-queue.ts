/**
 * A calendar queue of deadlines, made for requests that leave long before theirs: these cost O(1), and are never
 * sorted.
 *
 *     buckets:  256 ms each, in the order of arrival
 *     current:  the bucket that was opened last, sorted then; most of its requests have left by that time
 *     late:     a heap of requests whose bucket was opened before they came
 *
 * Source: R. Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation event set problem",
 * 1988; with a heap of bucket numbers, and one of latecomers.
 */
import TinyQueue from 'tinyqueue';
import { FifoQueue } from '../../base/queues/fifo-queue.js';
import { HeapQueue } from '../../base/queues/heap-queue.js';
import type { QueueItem } from './queue-item.js';

const bucketMs = 256;
/** Buckets that are kept while nothing waits. */
const fewBuckets = 16;

export class CalendarQueue {
  private current = new FifoQueue<QueueItem>();
  private readonly late: HeapQueue<QueueItem>;
  private readonly buckets = new Map<number, FifoQueue<QueueItem>>();
  private readonly upcoming = new TinyQueue<number>();
  /** The number of the bucket that was opened last, because its time had come. */
  private opened = Number.NEGATIVE_INFINITY;
  /** The bucket that got the last request, and often gets the next (bench: burst). */
  private latest: FifoQueue<QueueItem> | undefined = undefined;
  private latestNumber = Number.NaN;
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

  /** `item.isWaiting` must be false by now. O(1) amortized. */
  remove(item: QueueItem): void {
    item.deadlines?.remove(item);
    item.deadlines = undefined;
  }

  /** Its bucket has been given up as a whole, with another calendar. */
  unlink(item: QueueItem): void {
    item.deadlines = undefined;
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
