/** Figures over time, in buckets of equal length: what charts are drawn from. */
import { put } from '../../base/put.js';
import type { ControllerFigures } from '../../index.js';
import { Samples } from './samples.js';

/** One value for each bucket; before the first of a name there is 0, or no latency. */
export interface TimeSeries {
  readonly bucketMs: number;
  /** Begin of each bucket, ms. */
  readonly startsAtMs: readonly number[];
  /** At the end of the bucket, by priority: requests that wait. */
  readonly waitingByBand: Readonly<Record<string, readonly number[]>>;
  readonly inFlight: readonly number[];
  /** As the controller read it last, 1 is full. */
  readonly saturation: readonly number[];
  /** Served per second, by tenant: prompt tokens once, output tokens twice. At most 50, the others together. */
  readonly serviceByTenant: Readonly<Record<string, readonly number[]>>;
  /** Of requests that ended in the bucket, by class, ms; NaN, `null` in JSON, where none was served. */
  readonly ttftP50ByClass: Readonly<Record<string, readonly number[]>>;
  readonly ttftP95ByClass: Readonly<Record<string, readonly number[]>>;
  readonly ttftP99ByClass: Readonly<Record<string, readonly number[]>>;
  /** Dropped for good in the bucket. */
  readonly dropped: readonly number[];
}

/** More are not kept: a run that drains for ever must not fill memory. */
const mostBuckets = 2000;
const mostTenants = 50;

/** Rows of values by name, of equal length. */
class Rows {
  readonly values = new Map<string, number[]>();
  private readonly nothing: number;

  /** `nothing`: the value of buckets that a name has no other for. */
  constructor(nothing: number) {
    this.nothing = nothing;
  }

  set(name: string, bucket: number, value: number): void {
    const row = this.values.get(name) ?? put(this.values, name, []);
    while (row.length < bucket) row.push(this.nothing);
    row[bucket] = value;
  }

  toRecord(length: number): Record<string, number[]> {
    for (const [name, row] of this.values) if (row.length < length) this.set(name, length - 1, this.nothing);
    return Object.fromEntries(this.values);
  }
}

export class SeriesRecorder {
  readonly bucketMs: number;
  private readonly waiting = new Rows(0);
  private readonly service = new Rows(0);
  /** By percentile. */
  private readonly ttft = { 50: new Rows(NaN), 95: new Rows(NaN), 99: new Rows(NaN) };
  private readonly lists: Readonly<Record<'startsAtMs' | 'inFlight' | 'saturation' | 'dropped', number[]>>;
  private readonly servedNow = new Map<string, number>();
  private readonly ttftNow = new Map<string, Samples>();
  private droppedNow = 0;

  constructor(bucketMs: number) {
    this.bucketMs = bucketMs;
    this.lists = { startsAtMs: [], inFlight: [], saturation: [], dropped: [] };
  }

  get isFull(): boolean {
    return this.lists.startsAtMs.length >= mostBuckets;
  }

  served(tenant: string, cost: number): void {
    const name = this.servedNow.has(tenant) || this.servedNow.size < mostTenants ? tenant : 'others';
    this.servedNow.set(name, (this.servedNow.get(name) ?? 0) + cost);
  }

  completed(className: string, ttftMs: number): void {
    const samples = this.ttftNow.get(className) ?? put(this.ttftNow, className, new Samples());
    samples.add(ttftMs);
  }

  droppedOne(): void {
    this.droppedNow++;
  }

  closeBucket(endsAtMs: number, { bands, stats }: ControllerFigures): void {
    const { startsAtMs, inFlight, saturation, dropped } = this.lists;
    const bucket = startsAtMs.length;
    startsAtMs.push(endsAtMs - this.bucketMs);
    for (const { priority, waiting } of bands) this.waiting.set(String(priority), bucket, waiting);
    inFlight.push(stats.inFlight);
    saturation.push(stats.saturation);
    dropped.push(this.droppedNow);
    this.droppedNow = 0;
    for (const [tenant, cost] of this.servedNow) {
      this.service.set(tenant, bucket, (cost * 1000) / this.bucketMs);
      this.servedNow.set(tenant, 0);
    }
    for (const [name, samples] of this.ttftNow) {
      for (const [percent, rows] of Object.entries(this.ttft))
        rows.set(name, bucket, samples.percentile(Number(percent)));
    }
    this.ttftNow.clear();
  }

  figures(): TimeSeries {
    const { length } = this.lists.startsAtMs;
    return {
      bucketMs: this.bucketMs,
      ...this.lists,
      waitingByBand: this.waiting.toRecord(length),
      serviceByTenant: this.service.toRecord(length),
      ttftP50ByClass: this.ttft[50].toRecord(length),
      ttftP95ByClass: this.ttft[95].toRecord(length),
      ttftP99ByClass: this.ttft[99].toRecord(length),
    };
  }
}
