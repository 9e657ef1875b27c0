/**
 * Estimates in front of servers that count as each family of models does, over sockets and in their own dialects. All
 * that is read of an estimate is what its user reads: the line of the log, and the metric.
 */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { until } from '../../integration/support/until.js';
import { fileOf, startGateway } from '../support/gateway.js';
import { dialects, kinds, type Prompt } from '../support/prompts.js';
import { families } from '../support/token-counts.js';
import { startTokenServer } from '../support/token-server.js';

type FamilyName = keyof typeof families;

/** A gateway before a server of a family. `ask` tells the reported length of a prompt, for each token estimated. */
async function gatewayTo(family: FamilyName, dialect: keyof typeof dialects, cachedShare = 0) {
  const server = await startTokenServer(families[family], cachedShare);
  const { gateway, log } = await startGateway(fileOf([server.url], {}, 10));
  let asked = 0;
  const lines = () => log.filter(({ event }) => event === 'request');
  const ask = async (model: string, prompt: Prompt): Promise<number> => {
    const { path, body } = dialects[dialect](model, prompt);
    const answer = await fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, stream: asked++ % 2 === 1 }),
    });
    await answer.text();
    expect(answer.status).toBe(200);
    await until('it is logged', () => lines().length === asked);
    const { estimate, promptTokens } = lines().at(-1)?.fields ?? {};
    const [, text, media = 0, each = 0] = /^(\d+)(?:\+(\d+)x(\d+))?\+/.exec(String(estimate)) ?? [];
    return Number(promptTokens) / (Number(text) + Number(media) * Number(each));
  };
  /** The first ratio, and by how much the estimates after `few` reports are wrong, at the median. */
  const tryOut = async (model: string, of: readonly string[], few = 20, then = 25) => {
    const random = seededRandom(7);
    const ratios: number[] = [];
    for (let i = 0; i < few + then; i++)
      ratios.push(await ask(model, kinds[of[Math.floor(random() * of.length)]!]!(random)));
    const errors = ratios.slice(few).map((ratio) => Math.abs(1 / ratio - 1));
    return { first: ratios[0]!, error: errors.sort((a, b) => a - b)[errors.length >> 1]!, ratios };
  };
  return { ask, tryOut, gateway, server };
}

/** Of kinds whose size nobody can know before a server tells it. */
const unseen = ['links to photos of 12 megapixels', 'links to photos of any size'];

describe('the first estimate is right within a factor of 3, and after 20 requests of a kind within 15 %', () => {
  it.each<[FamilyName, string, keyof typeof dialects, RegExp]>([
    ['tiles', 'gpt-4o', 'chat', /^$/],
    ['costly tiles', 'gpt-4o-mini', 'chat', /^$/],
    ['patches', 'gpt-4.1-mini', 'responses', /^$/],
    ['anthropic', 'claude-sonnet-4-5-20250929', 'messages', /sound/],
    ['anthropic, high resolution', 'claude-opus-4-7', 'messages', /sound/],
    ['qwen', 'Qwen/Qwen2.5-VL-7B-Instruct', 'chat', /document/],
  ])(
    'before a server that counts as %s, for %s, of %s',
    async (family, model, dialect, unknown) => {
      const { tryOut } = await gatewayTo(family, dialect);
      const missed: string[] = [];
      for (const kind of Object.keys(kinds)) {
        if (unknown.test(kind) || unseen.includes(kind)) continue;
        // Each kind has a model of its own, so that nothing is learnt for the next one.
        const { first, error } = await tryOut(`${model} ${kind}`, [kind]);
        if (!(first >= 1 / 3 && first <= 3 && error <= 0.15)) missed.push(`${kind}: ${first}, then ${error}`);
      }
      expect(missed).toEqual([]);
    },
    240_000,
  );
});

it.each<[FamilyName, string, keyof typeof dialects]>([
  ['tiles', 'gpt-4o', 'chat'],
  ['anthropic', 'claude-sonnet-4-5', 'messages'],
  ['qwen', 'Qwen2.5-VL', 'chat'],
])('a mix of languages, code, tools and pictures, counted as %s, comes within 25 %', async (family, model, dialect) => {
  const mixed = Object.keys(kinds).filter((kind) => !/sound|document|link/.test(kind));
  const { tryOut } = await gatewayTo(family, dialect);
  const { error } = await tryOut(model, mixed, 20, 50);
  expect(error).toBeLessThanOrEqual(0.25);
});

describe('a link to a picture is taken for one of 1024 × 768', () => {
  it('is wrong at first by as much as its picture is larger, and right once eight of that size were reported', async () => {
    const { tryOut } = await gatewayTo('qwen', 'chat');
    const { ratios, error } = await tryOut('Qwen2.5-VL', ['links to photos of 12 megapixels'], 8);
    expect(Math.min(...ratios.slice(0, 8))).toBeGreaterThan(10);
    expect(error).toBeLessThan(0.01);
  });

  it('stays wrong where sizes differ, because nobody has seen them: half of them by more than 15 %', async () => {
    const { tryOut } = await gatewayTo('qwen', 'chat');
    const { error } = await tryOut('Qwen2.5-VL', ['links to photos of any size']);
    expect(error).toBeGreaterThan(0.15);
    expect(error).toBeLessThan(3);
  });
});

it('a prompt that was cached teaches its whole length', async () => {
  for (const dialect of ['messages', 'responses'] as const) {
    const { tryOut } = await gatewayTo('anthropic', dialect, 0.9);
    const { first, error } = await tryOut('claude-sonnet-4-5', ['an agent with tools']);
    expect(first).toBeGreaterThan(1);
    expect(error).toBeLessThanOrEqual(0.15);
  }
});

it('the metric counts the same ratios as the lines of the log', async () => {
  const { tryOut, gateway } = await gatewayTo('tiles', 'chat');
  const { ratios } = await tryOut('gpt-4o', ['an agent with tools']);
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  const name = 'inference_extension_flow_control_token_estimate_ratio';
  const figure = (what: string): number =>
    Number(new RegExp(`${name}_${what}\\{[^}]*model_name="gpt-4o"\\} (\\S+)`).exec(text)?.[1]);
  expect(figure('count')).toBe(ratios.length);
  expect(figure('sum')).toBeCloseTo(
    ratios.reduce((sum, ratio) => sum + ratio, 0),
    6,
  );
});
