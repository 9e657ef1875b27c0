/** How long will the answer be? A moving average for each fairness ID and model, in a table that does not grow. */
import * as s from '../../../base/schema/schema.js';
import { textHash } from '../../../base/text-hash.js';
import type { ItemView } from '../../views.js';

/** One object may serve several policies. Exceptions, and predictions outside (0, 2^53], count as plugin errors. */
export interface OutputPredictor {
  /** Completion tokens expected of a request, above 0. `model` is '' where models are not told apart. */
  predict(item: ItemView, model: string): number;
  /** A request had an answer of this many tokens. */
  observe(fairnessId: string, model: string, completionTokens: number): void;
}

/* @__NO_SIDE_EFFECTS__ */ export function aPredictor(): s.Schema<OutputPredictor> {
  return s.objectWith<OutputPredictor>('a predictor, such as outputPredictor()', 'predict', 'observe');
}

export interface OutputPredictorOptions {
  /** Answers over which the average moves: α = 2 / (window + 1). @default 5 */
  window?: number | undefined;
  /** Predicted where no answer is known. @default 256 */
  initialTokens?: number | undefined;
}

const options = s.object({ window: s.optional(s.positiveInteger(), 5), initialTokens: s.optional(s.aboveZero(), 256) });

/** A power of 2; 64 KiB. Of a hundred tenants, two share an average with a chance of 0.45: less precision only. */
const cells = 8192;

/** Averages by the `textHash` of their key: no entry is made, and none has to be forgotten. */
export class AverageTable {
  private averages: Float64Array | undefined = undefined;
  private readonly alpha: number;
  private readonly initial: number;

  constructor(window: number, initial: number) {
    this.alpha = 2 / (window + 1);
    this.initial = initial;
  }

  /** The average of a key, or what it begins with. */
  at(keyHash: number, part: string): number {
    const known = this.averages === undefined ? 0 : (this.averages[cellOf(keyHash, part)] as number);
    return known > 0 ? known : this.initial;
  }

  add(keyHash: number, part: string, observed: number): void {
    this.averages ??= new Float64Array(cells);
    const cell = cellOf(keyHash, part);
    const known = this.averages[cell] as number;
    this.averages[cell] = known > 0 ? known + this.alpha * (observed - known) : observed;
  }
}

function cellOf(keyHash: number, part: string): number {
  return (part === '' ? keyHash : textHash(part, keyHash)) & (cells - 1);
}

/**
 * Predicts answers by those before, for each fairness ID and model. Memory: 64 KiB, whatever the number of keys; those
 * whose hashes meet share an average. Source: VTC with length prediction, window 5. @throws FlowConfigError
 */
export function outputPredictor(given: OutputPredictorOptions = {}): OutputPredictor {
  const { window, initialTokens } = s.parse(options, given, 'outputPredictor');
  const table = new AverageTable(window, initialTokens);
  return {
    predict: ({ fairnessId }, model) => table.at(textHash(fairnessId), model),
    observe: (fairnessId, model, completionTokens) => table.add(textHash(fairnessId), model, completionTokens),
  };
}
