/** Which model a request is for, as labels say it, and rejections by it. Only the host knows; names are kept few. */
import { BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import { put } from '../../base/put.js';
import type { Drop } from '../../index.js';
import type { Labels, Sample } from './scraped-metric.js';

export interface Models {
  readonly model: string;
  readonly target: string;
  /** Both in one. */
  readonly key: string;
}

/** Where nobody says: an empty label is none. */
export const noModels: Models = { model: '', target: '', key: '' };

/** Stands for every pair beyond the bound. */
export const otherModels: Models = { model: otherLabel, target: otherLabel, key: `${otherLabel}\u0000${otherLabel}` };

const mostModels = 1000;
/** Pairs of model and target, and of model and API endpoint. */
const mostPairs = 1000;

type NameOf<R> = ((request: R) => string) | undefined;

/** One guard for model and target: at most 1000 names and 1000 pairs, the rest is `other`. Source: llm-d-router. */
export class ModelLabels<R> {
  private readonly names = new BoundedLabel(mostModels);
  private readonly known = new Map<string, Models>();
  private readonly modelName: NameOf<R>;
  private readonly targetModelName: NameOf<R>;

  constructor(modelName: NameOf<R>, targetModelName: NameOf<R>) {
    this.modelName = modelName;
    this.targetModelName = targetModelName;
  }

  get areNamed(): boolean {
    return this.modelName !== undefined || this.targetModelName !== undefined;
  }

  of(request: R): Models {
    if (!this.areNamed) return noModels;
    const model = this.names.of(nameFrom(this.modelName, request));
    const target = this.names.of(nameFrom(this.targetModelName, request));
    const key = `${model}\u0000${target}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    return this.known.size >= mostPairs ? otherModels : put(this.known, key, { model, target, key });
  }
}

/** A host's function that throws, or answers no text, costs the request its label and nothing else. */
function nameFrom<R>(nameOf: NameOf<R>, request: R): string {
  try {
    const name: unknown = nameOf?.(request);
    return typeof name === 'string' ? name : '';
  } catch {
    return '';
  }
}

const mostApiEndpoints = 100;

/** Requests rejected because every worker is busy, by model and API endpoint, as Dynamo's front end counts them. */
export class ModelRejections<R = never> {
  private readonly counts = new Map<string, { readonly labels: Labels; value: number }>();
  private readonly endpoints = new BoundedLabel(mostApiEndpoints);
  private readonly models: ModelLabels<R>;
  private readonly endpointOf: NameOf<R>;
  private readonly constant: Labels;

  constructor(models: ModelLabels<R>, endpointOf: NameOf<R>, constant: Labels) {
    this.models = models;
    this.endpointOf = endpointOf;
    this.constant = constant;
  }

  dropped(request: R, { type }: Drop): void {
    if (type !== 'RejectedCapacity') return;
    const { model } = this.models.of(request);
    this.rowOf(model, this.endpoints.of(nameFrom(this.endpointOf, request))).value++;
  }

  private rowOf(model: string, endpoint: string): { value: number } {
    const key = `${endpoint}\u0000${model}`;
    const known = this.counts.get(key);
    if (known !== undefined) return known;
    if (this.counts.size >= mostPairs && model !== otherLabel) return this.rowOf(otherLabel, endpoint);
    return put(this.counts, key, { labels: { model, endpoint, ...this.constant }, value: 0 });
  }

  samples(): Iterable<Sample> {
    return this.counts.values();
  }

  reset(): void {
    this.counts.clear();
  }
}
