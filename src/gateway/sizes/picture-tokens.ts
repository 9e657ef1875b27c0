/** The tokens of a picture, by the formulas of those who serve models. */
import type { PictureSize } from './picture-size.js';

/** A picture as a formula sees it; `isLow`: sent with `detail: "low"`. */
export interface Picture extends PictureSize {
  readonly isLow: boolean;
}

/**
 * A formula by its name, with its number in brackets; a number of tokens; or a function. `openai-tiles(factor)`: 85,
 * and 170 for each tile of 512 px. `openai-patches(factor)`: patches of 32 px, at most 1,536. `anthropic(most)`: a
 * token for 750 px, at most 1,600. `qwen-vl(most)`: patches of 28 px. `pixels(n)`: a token for n px.
 */
export type PictureTokens = string | number | ((picture: Picture) => number);

const formulas: Readonly<Record<string, (picture: Picture, number?: number) => number>> = {
  'openai-tiles': (picture, factor = 1) =>
    factor * (picture.isLow ? 85 : 85 + 170 * patches(shrunk(shrunk(picture, 2048), 2048, 768), 512)),
  'openai-patches': (picture, factor = 1) =>
    Math.min(patches(shrunk(picture, picture.isLow ? 512 : Infinity), 32), 1536) * factor,
  anthropic: (picture, most = 1600) => Math.min(patches(shrunk(picture, most > 1600 ? 2576 : 1568), 1) / 750, most),
  'qwen-vl': ({ width, height }, most = 16_384) =>
    Math.max(4, Math.min(Math.round(width / 28) * Math.round(height / 28), most)),
  pixels: ({ width, height }, each = 750) => (width * height) / each,
};

const notation = /^([a-z-]+)(?:\((\d+(?:\.\d+)?)\))?$/;
/** Of one picture; no server takes more. */
const mostTokens = 65_536;

/** Whether it is a number of tokens, or names a formula. */
export function isPictureTokens(given: unknown): given is string | number {
  if (typeof given === 'number') return given >= 0;
  const [, name = '', number = 1] = notation.exec(String(given)) ?? [];
  return Object.hasOwn(formulas, name) && Number(number) > 0;
}

/** An integer from 0 up; undefined where a function fails. */
export function pictureTokens(given: PictureTokens, picture: Picture): number | undefined {
  let tokens: number | undefined = typeof given === 'number' ? given : undefined;
  try {
    const [, name = '', number] = typeof given === 'string' ? (notation.exec(given) ?? []) : [];
    if (typeof given === 'function') tokens = given(picture);
    else tokens ??= formulas[name]?.(picture, number === undefined ? undefined : Number(number));
  } catch {}
  return tokens !== undefined && tokens >= 0 ? Math.min(Math.ceil(tokens), mostTokens) : undefined;
}

/** The formula of a model, as far as its name tells; servers that do not count it so are learnt from. */
export function formulaOf(model: string): string {
  if (/claude/i.test(model)) return /[a-z]-(?:4[-.][7-9]|[5-9])\b/i.test(model) ? 'anthropic(4784)' : 'anthropic';
  if (/gpt-(?:4\.1|5).*nano/i.test(model)) return 'openai-patches(2.46)';
  if (/gpt-(?:4\.1|5).*mini|o4-mini/i.test(model)) return 'openai-patches(1.62)';
  if (/gpt-4o-mini/i.test(model)) return 'openai-tiles(33.3)';
  return /gpt|\bo\d/i.test(model) ? 'openai-tiles' : 'qwen-vl';
}

/** Made smaller, never larger, until neither side is longer than `longest`, nor the shorter one than `shortest`. */
function shrunk({ width, height, isLow }: Picture, longest: number, shortest: number = longest): Picture {
  const scale = Math.min(1, longest / Math.max(width, height), shortest / Math.min(width, height));
  return { width: width * scale, height: height * scale, isLow };
}

const patches = ({ width, height }: PictureSize, side: number): number =>
  Math.ceil(width / side) * Math.ceil(height / side);
