/** How many tokens a request is taken for: by the formulas, and by what servers have reported. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import type { Medium } from '../../../src/gateway/sizes/media.js';
import {
  formulaOf,
  isPictureTokens,
  type PictureTokens,
  pictureTokens,
} from '../../../src/gateway/sizes/picture-tokens.js';
import type { PromptParts } from '../../../src/gateway/sizes/prompt-parts.js';
import { PromptSizes } from '../../../src/gateway/sizes/prompt-sizes.js';

const parts = (more: Partial<PromptParts>): PromptParts => ({ textBytes: 0, numbers: 0, media: [], ...more });
const pictureOf = (width: number, height: number, isLow = false): Medium => ({
  kind: 'picture',
  tokens: 1000,
  size: { width, height },
  isLow,
});

describe('the tokens of a picture', () => {
  it.each<[PictureTokens, number, number, boolean, number]>([
    // The examples of OpenAI's guide to pictures.
    ['openai-tiles', 1024, 1024, false, 765],
    ['openai-tiles', 2048, 4096, false, 1105],
    ['openai-tiles', 4096, 8192, true, 85],
    ['openai-tiles', 64, 64, false, 255],
    ['openai-patches', 1024, 1024, false, 1024],
    ['openai-patches', 1800, 2400, false, 1536],
    ['openai-patches(1.62)', 1024, 1024, false, 1659],
    ['openai-patches', 1024, 1024, true, 256],
    ['openai-patches', 8000, 64, false, 500],
    // The small model, whose tokens are cheaper: 2833, and 5667 for each tile.
    ['openai-tiles(33.3)', 1024, 1024, false, 25_475],
    ['openai-tiles(33.3)', 64, 64, true, 2831],
    // Those of Anthropic's.
    ['anthropic', 200, 200, false, 54],
    ['anthropic', 1000, 1000, false, 1334],
    ['anthropic', 8000, 8000, false, 1600],
    ['anthropic(4784)', 8000, 8000, false, 4784],
    ['anthropic(4784)', 2000, 1000, false, 2667],
    ['qwen-vl', 280, 560, false, 200],
    ['qwen-vl', 8, 8, false, 4],
    ['qwen-vl', 65_535, 65_535, false, 16_384],
    ['qwen-vl(1280)', 8000, 8000, false, 1280],
    ['pixels(784)', 280, 560, false, 200],
    ['pixels', 65_535, 65_535, false, 65_536],
    [576, 8000, 8000, false, 576],
    [({ width, isLow }) => (isLow ? 1 : width), 12, 8, false, 12],
  ])('by %s of %i × %i, low %s, are %i', (formula, width, height, isLow, tokens) => {
    expect(pictureTokens(formula, { width, height, isLow })).toBe(tokens);
  });

  it.each<[string, PictureTokens]>([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['answers nonsense', () => Number.NaN],
  ])('by a function that %s are not known', (_what, formula) => {
    expect(pictureTokens(formula, { width: 1, height: 1, isLow: false })).toBeUndefined();
    expect(new PromptSizes().estimate('m', parts({ media: [pictureOf(1, 1)] }), formula).inputTokens).toBe(1000);
  });

  it('are given by what the file may say', () => {
    expect(['openai-tiles', 'qwen-vl(1280)', 'pixels(0.5)', 0, 576].filter(isPictureTokens)).toHaveLength(5);
    expect(
      ['tiles', 'pixels(0)', 'pixels()', 'constructor', '', -1, Number.NaN, null, {}].filter(isPictureTokens),
    ).toEqual([]);
  });

  it.each([
    ['claude-3-5-sonnet-20241022', 'anthropic'],
    ['claude-sonnet-4-20250514', 'anthropic'],
    ['anthropic.claude-opus-4-6-v1:0', 'anthropic'],
    ['anthropic.claude-opus-4-7-v1:0', 'anthropic(4784)'],
    ['claude-sonnet-5', 'anthropic(4784)'],
    ['gpt-4o', 'openai-tiles'],
    ['gpt-4o-mini-2024-07-18', 'openai-tiles(33.3)'],
    ['gpt-4.1-mini', 'openai-patches(1.62)'],
    ['Qwen/Qwen2.5-VL-7B-Instruct', 'qwen-vl'],
    ['llava', 'qwen-vl'],
  ])('of %s are counted by %s', (model, formula) => {
    expect(formulaOf(model)).toBe(formula);
  });
});

describe('an estimate', () => {
  it('says what it is made of', () => {
    const media = [pictureOf(2048, 4096), pictureOf(2048, 4096)];
    const { told, inputTokens, outputTokens } = new PromptSizes().estimate(
      'gpt-4o',
      parts({ textBytes: 3216, media }),
      undefined,
      256,
    );
    expect({ told, inputTokens, outputTokens }).toEqual({
      told: '812+2x1105+256',
      inputTokens: 3022,
      outputTokens: 256,
    });
  });

  it('of one model does not learn from another, and of no more than a few hundred', () => {
    const sizes = new PromptSizes();
    const text = parts({ textBytes: 3968 });
    for (let i = 0; i < 8; i++) sizes.learn('a', sizes.estimate('a', text), 2000);
    expect(sizes.estimate('a', text).inputTokens).toBe(2000);
    expect(sizes.estimate('b', text).inputTokens).toBe(1000);
    for (let model = 0; model < 300; model++)
      for (let i = 0; i < 8; i++) sizes.learn(`m${model}`, sizes.estimate('b', text), 2000);
    expect(sizes.estimate('m0', text).inputTokens).toBe(2000);
    expect(sizes.estimate('m299', text).inputTokens).toBe(1000);
  });

  it('is an integer in its bounds, whatever is reported', () => {
    const kinds = fc.constantFrom<Medium['kind'][]>('picture', 'link', 'sound', 'document', 'video');
    const medium = fc.record({ kind: kinds, tokens: fc.nat(1e6) });
    const prompt = fc.record({
      textBytes: fc.nat(1e7),
      numbers: fc.nat(100),
      media: fc.array(medium, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(prompt, fc.double({ min: 0, noNaN: true })), { maxLength: 40 }), (reports) => {
        const sizes = new PromptSizes();
        for (const [each, reported] of reports) {
          const estimate = sizes.estimate('m', each);
          expect(Number.isSafeInteger(estimate.inputTokens) && Number.isSafeInteger(estimate.outputTokens)).toBe(true);
          expect(estimate.inputTokens).toBeGreaterThanOrEqual(Math.floor(each.textBytes / 8));
          // A token a byte, and the frame of a conversation.
          expect(estimate.inputTokens - estimate.mediaTokens).toBeLessThanOrEqual(each.textBytes + each.numbers + 65);
          sizes.learn('m', estimate, reported);
        }
      }),
    );
  });
});

/** A server that counts as a family does: text at its own length, some tokens for each message, and its pictures. */
interface Server {
  readonly bytesPerToken: number;
  readonly pictures: PictureTokens;
}

describe('in front of a server that counts', () => {
  const servers: readonly [string, Server][] = [
    ['openai-tiles', { bytesPerToken: 4.4, pictures: 'openai-tiles' }],
    ['openai-patches(1.62)', { bytesPerToken: 4.4, pictures: 'openai-patches(1.62)' }],
    ['anthropic', { bytesPerToken: 3.4, pictures: 'anthropic' }],
    ['qwen-vl', { bytesPerToken: 2.2, pictures: 'qwen-vl' }],
    ['pixels(588)', { bytesPerToken: 3.8, pictures: 'pixels(588)' }],
    ['576', { bytesPerToken: 3.8, pictures: 576 }],
    ['what nobody told', { bytesPerToken: 3.8, pictures: ({ width }) => 300 + width }],
  ];
  const kinds: readonly [string, (random: () => number) => PromptParts][] = [
    ['text', (random) => parts({ textBytes: 200 + Math.floor(random() * 20_000) })],
    [
      'pictures',
      (random) =>
        parts({
          textBytes: 100,
          media: [pictureOf(600 + Math.floor(random() * 900), 600 + Math.floor(random() * 900))],
        }),
    ],
    ['links to pictures of one size', () => parts({ textBytes: 100, media: [{ kind: 'link', tokens: 1000 }] })],
    ['both', (random) => parts({ textBytes: 4000 + Math.floor(random() * 4000), media: [pictureOf(1024, 1024)] })],
  ];

  it.each(
    servers.flatMap(([name, server]) =>
      kinds
        // Pictures of many sizes need the right formula.
        .filter(([kind]) => name !== 'what nobody told' || kind !== 'pictures')
        .map(([kind, make]) => [name, kind, server, make] as const),
    ),
  )(
    'by %s, requests of %s are estimated within 15 % after 20, the first within a factor of 3',
    (name, _kind, server, make) => {
      const sizes = new PromptSizes();
      const random = seededRandom(7);
      const ratios = Array.from({ length: 120 }, () => {
        const prompt = make(random);
        const estimate = sizes.estimate('m', prompt, name === 'what nobody told' ? undefined : server.pictures);
        const ofMedia = prompt.media.reduce(
          (sum, { size = { width: 1200, height: 900 } }) =>
            sum + (pictureTokens(server.pictures, { ...size, isLow: false }) ?? 0),
          0,
        );
        // A conversation's frame, and words that take more or fewer tokens.
        const reported = Math.round(8 + (prompt.textBytes / server.bytesPerToken) * (0.9 + 0.2 * random()) + ofMedia);
        sizes.learn('m', estimate, reported);
        return reported / estimate.inputTokens;
      });
      expect(ratios[0]).toBeGreaterThan(1 / 3);
      expect(ratios[0]).toBeLessThan(3);
      const errors = ratios
        .slice(20)
        .map((ratio) => Math.abs(1 / ratio - 1))
        .sort((a, b) => a - b);
      expect(errors[errors.length >> 1]).toBeLessThanOrEqual(0.15);
    },
  );
});
