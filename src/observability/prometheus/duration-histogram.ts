/** One series of a histogram. prom-client's own validates and hashes its labels at every observation; this one costs an increment. */
import type { Labels, Sample } from './scraped-metric.js';

export class DurationHistogram {
  private readonly labels: Labels;
  private readonly bounds: readonly number[];
  /** Observations by the first bound that holds them; the last place is for those above every bound. */
  private readonly counts: number[];
  private sum = 0;

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels;
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(seconds: number): void {
    const { bounds, counts } = this;
    let index = 0;
    // Most waits are short: from below is faster than a bisection.
    while (index < bounds.length && seconds > bounds[index]!) index++;
    counts[index]!++;
    this.sum += seconds;
  }

  reset(): void {
    this.counts.fill(0);
    this.sum = 0;
  }

  /** Buckets are cumulative, as the exposition format has them. */
  *samples(name: string): Iterable<Sample> {
    const { labels } = this;
    let count = 0;
    for (const [index, own] of this.counts.entries()) {
      count += own;
      const le = index < this.bounds.length ? String(this.bounds[index]) : '+Inf';
      yield { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count };
    }
    yield { metricName: `${name}_sum`, labels, value: this.sum };
    yield { metricName: `${name}_count`, labels, value: count };
  }
}
