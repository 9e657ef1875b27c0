/**
 * How many tokens will a request take? By its prompt, and what servers reported of others for the model: tokens a byte
 * of text, and beyond the usual of a medium. Invariant: an integer from 0 up; memory is bounded.
 */
import { tokenEstimator } from '../../index.js';
import type { Medium } from './media.js';
import { formulaOf, type PictureTokens, pictureTokens } from './picture-tokens.js';
import type { PromptParts } from './prompt-parts.js';

type Kind = 'text' | Medium['kind'];

export interface SizeEstimate {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The parts of `inputTokens`. */
  readonly textTokens: number;
  readonly mediaTokens: number;
  /** Of text, media and output: `812+2x1105+256`. */
  readonly told: string;
  /** Bytes of text, and usual tokens of media. */
  readonly units: ReadonlyMap<Kind, number>;
}

const estimateTokens = tokenEstimator({ addEstimatedOutputTokens: true });
const mostModels = 256;
/** Reports after which a rate moves, and those that it is made of. */
const [fewReports, mostReports] = [8, 32];

/** Tokens for each unit: those of the middle half of the last reports. */
class Rate {
  value: number;
  private readonly bounds: readonly [least: number, most: number];
  private readonly reports: (readonly [units: number, tokens: number])[] = [];
  private count = 0;

  constructor(kind: Kind) {
    this.value = kind === 'text' ? 1 / 4 : 1;
    this.bounds = kind === 'text' ? [1 / 8, 1] : [1 / 50, 50];
  }

  learn(units: number, tokens: number): void {
    const { reports, bounds } = this;
    reports[this.count++ % mostReports] = [units, tokens];
    if (this.count % fewReports > 0) return;
    const sorted = [...reports].sort((a, b) => a[1] / a[0] - b[1] / b[0]);
    let [inAll, ofAll] = [0, 0];
    for (const [each, taken] of sorted.slice(sorted.length / 4, (sorted.length * 3) / 4)) {
      inAll += each;
      ofAll += taken;
    }
    this.value = Math.min(Math.max(ofAll / inAll, bounds[0]), bounds[1]);
  }
}

export class PromptSizes {
  private readonly models = new Map<string, Map<Kind, Rate>>();

  estimate(model: string, parts: PromptParts, formula?: PictureTokens, maxOutputTokens?: number): SizeEstimate {
    const { textBytes, numbers, media } = parts;
    const units = new Map<Kind, number>([['text', textBytes]]);
    for (const { kind, size, isLow = false, tokens } of media) {
      const ofPicture = size && pictureTokens(formula ?? formulaOf(model), { ...size, isLow });
      units.set(kind, (units.get(kind) ?? 0) + (ofPicture ?? tokens));
    }
    let inputTokens = numbers;
    for (const [kind, count] of units) inputTokens += Math.ceil(count * this.rateOf(model, kind).value);
    const textTokens = numbers + Math.ceil(textBytes * this.rateOf(model, 'text').value);
    const mediaTokens = inputTokens - textTokens;
    const outputTokens = estimateTokens({ inputTokens, maxOutputTokens }) - inputTokens;
    const ofMedia = media.length === 0 ? '' : `+${media.length}x${Math.round(mediaTokens / media.length)}`;
    const told = `${textTokens}${ofMedia}+${outputTokens}`;
    return { inputTokens, outputTokens, textTokens, mediaTokens, told, units };
  }

  /** A server has reported the length of the prompt. What is mostly of one kind teaches that kind. */
  learn(model: string, { textTokens, mediaTokens, units }: SizeEstimate, promptTokens: number): void {
    const isText = mediaTokens * 10 <= textTokens;
    const rest = Math.max(1, promptTokens - (isText ? mediaTokens : textTokens));
    if (!isText && Math.max(rest, mediaTokens) < textTokens) return;
    for (const [kind, count] of units) {
      const rate = this.rateOf(model, kind, true);
      if (count > 0 && isText === (kind === 'text'))
        rate.learn(count, isText ? rest : (rest * count * rate.value) / mediaTokens);
    }
  }

  private rateOf(model: string, kind: Kind, isKept = false): Rate {
    const rates = this.models.get(model) ?? new Map<Kind, Rate>();
    const rate = rates.get(kind) ?? new Rate(kind);
    if (isKept && (this.models.has(model) || this.models.size < mostModels))
      this.models.set(model, rates.set(kind, rate));
    return rate;
  }
}
