/** One series of a histogram: an observation costs an increment. prom-client's own validates and hashes labels. */
import { put } from '../../base/put.js';
import type { Labels, Sample } from './scraped-metric.js';

/** The label `le` of each bound and of +Inf, made once for each list of bounds. */
const bucketLabels = new WeakMap<readonly number[], readonly Labels[]>();

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

  /** Read at once, so that they agree. Buckets are cumulative, as the exposition format has them. */
  samples(name: string): Sample[] {
    const { labels: sharedLabels, counts } = this;
    const samples: Sample[] = [];
    const bucketName = `${name}_bucket`;
    let count = 0;
    let index = 0;
    const makeLabels = (): Labels[] => [...this.bounds.map(String), '+Inf'].map((le) => ({ le }));
    for (const labels of bucketLabels.get(this.bounds) ?? put(bucketLabels, this.bounds, makeLabels())) {
      count += counts[index++]!;
      samples.push({ metricName: bucketName, labels, sharedLabels, value: count });
    }
    samples.push({ metricName: `${name}_sum`, sharedLabels, value: this.sum });
    samples.push({ metricName: `${name}_count`, sharedLabels, value: count });
    return samples;
  }
}
