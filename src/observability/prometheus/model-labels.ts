/** Which model a request is for, as labels say it. Only the host knows; what it says is kept few. */
import { BoundedLabel, otherLabel } from '../../base/bounded-label.js';

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
    let models = this.known.get(key);
    if (models === undefined) {
      if (this.known.size >= mostPairs) return otherModels;
      models = { model, target, key };
      this.known.set(key, models);
    }
    return models;
  }
}

/** A host's function that throws, or answers no text, costs the request its label and nothing else. */
export function nameFrom<R>(nameOf: NameOf<R>, request: R): string {
  try {
    const name: unknown = nameOf?.(request);
    return typeof name === 'string' ? name : '';
  } catch {
    return '';
  }
}
