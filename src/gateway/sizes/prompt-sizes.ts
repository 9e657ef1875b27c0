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
/** Of a picture that is not seen. */
const usualSize = { width: 1024, height: 768 };
/** Reports after which a rate moves, and those that it is made of. */
const [fewReports, mostReports] = [8, 32];

/** Tokens for each unit, by the longer half of the last reports; and of a prompt's frame, by the shortest ones. */
class Rate {
  private value: number;
  /** What a conversation takes beside its words. */
  private frame: number;
  private readonly bounds: readonly [least: number, most: number, mostFrame: number];
  private readonly reports: (readonly [units: number, tokens: number])[] = [];
  private count = 0;

  constructor(kind: Kind) {
    this.value = kind === 'text' ? 1 / 4 : 1;
    this.frame = kind === 'text' ? 8 : 0;
    this.bounds = kind === 'text' ? [1 / 8, 1, 64] : [1 / 50, 50, 0];
  }

  tokensOf(units: number): number {
    return units === 0 ? 0 : Math.ceil(units * this.value + this.frame);
  }

  learn(units: number, tokens: number): void {
    const { reports, bounds } = this;
    reports[this.count++ % mostReports] = [units, tokens];
    if (this.count % fewReports > 0) return;
    const sorted = [...reports].sort((a, b) => b[0] - a[0]);
    const rates = sorted.slice(0, sorted.length / 2).map(([each, taken]) => (taken - this.frame) / each);
    this.value = Math.min(Math.max(median(rates), bounds[0]), bounds[1]);
    const rests = sorted.slice(-fewReports).map(([each, taken]) => taken - each * this.value);
    this.frame = Math.min(Math.max(median(rests), 0), bounds[2]);
  }
}

const median = (numbers: number[]): number => numbers.sort((a, b) => a - b)[numbers.length >> 1]!;

export class PromptSizes {
  private readonly models = new Map<string, Map<Kind, Rate>>();

  estimate(model: string, parts: PromptParts, formula?: PictureTokens, maxOutputTokens?: number): SizeEstimate {
    const { textBytes, numbers, media } = parts;
    const units = new Map<Kind, number>([['text', textBytes]]);
    for (const { kind, size = kind === 'link' ? usualSize : undefined, isLow = false, tokens } of media) {
      const ofPicture = size && pictureTokens(formula ?? formulaOf(model), { ...size, isLow });
      units.set(kind, (units.get(kind) ?? 0) + (ofPicture ?? tokens));
    }
    let inputTokens = numbers;
    for (const [kind, count] of units) inputTokens += this.rateOf(model, kind).tokensOf(count);
    const textTokens = numbers + this.rateOf(model, 'text').tokensOf(textBytes);
    const mediaTokens = inputTokens - textTokens;
    const outputTokens = estimateTokens({ inputTokens, maxOutputTokens }) - inputTokens;
    const ofMedia = media.length === 0 ? '' : `+${media.length}x${Math.round(mediaTokens / media.length)}`;
    const told = `${textTokens}${ofMedia}+${outputTokens}`;
    return { inputTokens, outputTokens, textTokens, mediaTokens, told, units };
  }

  /** A server has reported the length of the prompt, if it did. What is mostly of one kind teaches that kind. */
  learn(model = '', size: SizeEstimate | undefined, promptTokens = 0): void {
    if (size === undefined || promptTokens === 0) return;
    const { textTokens, mediaTokens, units } = size;
    const isText = mediaTokens * 10 <= textTokens;
    const rest = Math.max(1, promptTokens - (isText ? mediaTokens : textTokens));
    if (!isText && Math.max(rest, mediaTokens) < textTokens) return;
    for (const [kind, count] of units) {
      const rate = this.rateOf(model, kind, true);
      if (count > 0 && isText === (kind === 'text'))
        rate.learn(count, isText ? rest : (rest * rate.tokensOf(count)) / mediaTokens);
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
