/**
 * What a prompt takes at each family of models, from what is public of them; nothing here is of `src`. Text is counted
 * by OpenAI's own vocabularies where they are public, and by a rule where none is.
 */
import { Tiktoken, type TiktokenBPE } from 'js-tiktoken/lite';
import cl100k from 'js-tiktoken/ranks/cl100k_base';
import o200k from 'js-tiktoken/ranks/o200k_base';

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** How a family counts; every count is an integer of tokens. */
export interface Family {
  text(text: string): number;
  picture(size: Size, detail: string | undefined): number;
  /** Of a page of a document: its text, and a picture of it. */
  readonly perPage: number;
  readonly perSecondOfSound: number;
  /** What a conversation takes beside its parts, for each of these. */
  readonly frame: { readonly prompt: number; readonly message: number; readonly tool: number; readonly tools: number };
}

/** Made when first asked, because that takes half a second; what was counted once is not counted again. */
function encoded(ranks: TiktokenBPE): (text: string) => number {
  let encoding: Tiktoken | undefined;
  const counted = new Map<string, number>();
  return (text) => {
    encoding ??= new Tiktoken(ranks);
    const count = counted.get(text) ?? encoding.encode(text, [], []).length;
    counted.set(text, count);
    return count;
  };
}

/**
 * Anthropic publishes no vocabulary, but that a token is about 3.5 English characters (docs, glossary). Words up to six
 * letters are one token, longer ones one more for each four; Han, kana and marks are one each.
 */
function ofClaude(text: string): number {
  let tokens = 0;
  for (const [piece] of text.matchAll(
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|\p{L}+|\p{N}{1,3}|[^\s\p{L}\p{N}]|\n+/gu,
  ))
    tokens += piece.length <= 6 ? 1 : 1 + Math.ceil((piece.length - 6) / 4);
  return tokens;
}

/**
 * Fits 2048 × 2048, then its shorter side 768; a base, and so many for each tile of 512 px; low detail is the base.
 * Source: OpenAI, images and vision, "GPT-4o, GPT-4.1, GPT-4o-mini, CUA, and o-series (except o4-mini)".
 */
const tiles =
  (base: number, each: number) =>
  ({ width, height }: Size, detail?: string): number => {
    if (detail === 'low') return base;
    const fit = Math.min(1, 2048 / Math.max(width, height));
    const scale = fit * Math.min(1, 768 / (Math.min(width, height) * fit));
    return base + each * Math.ceil((width * scale) / 512) * Math.ceil((height * scale) / 512);
  };

/**
 * Patches of 32 px; where these are more than 1,536, the picture shrinks until a whole number of them fits.
 * Source: OpenAI, images and vision, "GPT-4.1-mini, GPT-4.1-nano, o4-mini": 1.62, 2.46, 1.72.
 */
const patches =
  (factor: number) =>
  ({ width, height }: Size): number => {
    const most = 1536;
    let [across, down] = [width / 32, height / 32];
    if (Math.ceil(across) * Math.ceil(down) > most) {
      const ratio = Math.sqrt(most / (across * down));
      const whole = Math.min(Math.floor(across * ratio) / (across * ratio), Math.floor(down * ratio) / (down * ratio));
      across *= ratio * whole;
      down *= ratio * whole;
    }
    // The products above may be a hair beyond a whole number.
    return Math.ceil(Math.min(Math.ceil(across - 1e-9) * Math.ceil(down - 1e-9), most) * factor);
  };

/** w · h / 750, with a longest side and a most. Source: Anthropic, vision, "Evaluate image size". */
const pixels =
  (longest: number, most: number) =>
  ({ width, height }: Size): number => {
    const scale = Math.min(1, longest / Math.max(width, height), Math.sqrt((most * 750) / (width * height)));
    return Math.ceil((width * scale * height * scale) / 750);
  };
const anthropic = pixels(1568, 1600);

/**
 * Each side a multiple of 28 px, between 4 and 16,384 such squares, each a token; and two that enclose them.
 * Source: `smart_resize` of QwenLM/Qwen2.5-VL, and its preprocessor_config.json (min_pixels 3136, max_pixels 12845056).
 */
function qwen({ width, height }: Size): number {
  const [factor, least, most] = [28, 4 * 784, 16_384 * 784];
  let across = Math.max(1, Math.round(width / factor));
  let down = Math.max(1, Math.round(height / factor));
  if (across * down * 784 > most) {
    const beta = Math.sqrt((width * height) / most);
    [across, down] = [Math.floor(width / beta / factor), Math.floor(height / beta / factor)];
  } else if (across * down * 784 < least) {
    const beta = Math.sqrt(least / (width * height));
    [across, down] = [Math.ceil((width * beta) / factor), Math.ceil((height * beta) / factor)];
  }
  return across * down + 2;
}

/** Source: OpenAI's cookbook, "How to count tokens"; audio is a token for 100 ms (realtime costs). */
const openai = {
  text: encoded(o200k),
  perPage: 700 + tiles(85, 170)({ width: 1275, height: 1650 }),
  perSecondOfSound: 10,
  frame: { prompt: 3, message: 3, tool: 10, tools: 12 },
};

export const families = {
  tiles: { ...openai, picture: tiles(85, 170) },
  /** The small model's pictures cost what the large one's do, in its cheaper tokens. */
  'costly tiles': { ...openai, picture: tiles(2833, 5667) },
  patches: { ...openai, picture: patches(1.62) },
  /** A page: 1,500–3,000 tokens of text (PDF support). Tools: 346 (tool use, pricing). */
  anthropic: {
    text: ofClaude,
    picture: anthropic,
    perPage: 2_000 + anthropic({ width: 1275, height: 1650 }),
    perSecondOfSound: 25,
    frame: { prompt: 4, message: 4, tool: 10, tools: 346 },
  },
  /** Claude 4.7 and later: patches of 28 px, no side beyond 2,576 px, 4,784 at most. Source: the same, in 2026. */
  'anthropic, high resolution': {
    text: ofClaude,
    picture: ({ width, height }: Size): number => {
      const costs = (scale: number): number => Math.ceil((width * scale) / 28) * Math.ceil((height * scale) / 28);
      let scale = Math.min(1, 2576 / Math.max(width, height));
      while (costs(scale) > 4784) scale *= 0.999;
      return costs(scale);
    },
    perPage: 2_000 + anthropic({ width: 1275, height: 1650 }),
    perSecondOfSound: 25,
    frame: { prompt: 4, message: 4, tool: 10, tools: 346 },
  },
  /** Its vocabulary is that of cl100k_base with more Chinese (Qwen, tokenization note); sound as in Qwen2-Audio. */
  qwen: {
    text: encoded(cl100k),
    picture: qwen,
    perPage: 1_500,
    perSecondOfSound: 25,
    frame: { prompt: 3 + 11, message: 5, tool: 10, tools: 120 },
  },
} satisfies Record<string, Family>;
