/** Requests rejected because every worker is busy, by model and API endpoint, as Dynamo's front end counts them. */
import { BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import type { Drop } from '../../index.js';
import { type ModelLabels, nameFrom } from './model-labels.js';
import type { Labels, Sample } from './scraped-metric.js';

const mostApiEndpoints = 100;
/** Pairs of model and API endpoint. */
const mostPairs = 1000;

export class ModelRejections<R = never> {
  private readonly counts = new Map<string, { readonly labels: Labels; value: number }>();
  private readonly endpoints = new BoundedLabel(mostApiEndpoints);
  private readonly models: ModelLabels<R>;
  private readonly endpointOf: ((request: R) => string) | undefined;
  private readonly constant: Labels;

  constructor(models: ModelLabels<R>, endpointOf: ((request: R) => string) | undefined, constant: Labels) {
    this.models = models;
    this.endpointOf = endpointOf;
    this.constant = constant;
  }

  dropped(request: R, { type }: Drop): void {
    if (type !== 'RejectedCapacity') return;
    const { model } = this.models.of(request);
    const endpoint = this.endpoints.of(nameFrom(this.endpointOf, request));
    this.rowOf(model, endpoint).value++;
  }

  private rowOf(model: string, endpoint: string): { value: number } {
    const key = `${endpoint}\u0000${model}`;
    const known = this.counts.get(key);
    if (known !== undefined) return known;
    if (this.counts.size >= mostPairs && model !== otherLabel) return this.rowOf(otherLabel, endpoint);
    const row = { labels: { model, endpoint, ...this.constant }, value: 0 };
    this.counts.set(key, row);
    return row;
  }

  samples(): Iterable<Sample> {
    return this.counts.values();
  }

  reset(): void {
    this.counts.clear();
  }
}
