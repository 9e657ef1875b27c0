import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkAdapter } from '../../src/adapters/http/adapter-options.js';
import { controlHeaders, type ErrorResponseOptions, toHttpResponse } from '../../src/adapters/http/index.js';
import { FlowConfigError } from '../../src/index.js';
import { type DropName, drops } from '../adapters/http/drops.js';

const page = readFileSync(new URL('../../docs/http.md', import.meta.url), 'utf8');
const options = readFileSync(new URL('../../docs/options.md', import.meta.url), 'utf8');
const bodies = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, json = '']) => JSON.parse(json));

function bodyOf(name: DropName, options?: ErrorResponseOptions): unknown {
  return JSON.parse(toHttpResponse(drops[name], options).body);
}

describe('docs/http.md', () => {
  it('prints bodies as they are', () => {
    expect(bodies).toEqual([bodyOf('capacity')]);
    expect(bodyOf('capacity', { body: 'openai' })).toEqual({ error: bodies[0].error });
  });

  it('names every option', () => {
    let expected = '';
    try {
      checkAdapter({ enqueue: () => new Promise(() => {}) }, { unknown: true });
    } catch (error) {
      if (error instanceof FlowConfigError) expected = error.issues[0]!.expected;
    }
    const names = /^one of the keys (.*?)(?: \(did you mean|$)/.exec(expected)?.[1]?.split(', ') ?? [];
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) expect(options).toContain(`\n| \`${name}\` |`);
  });

  it('names every header that is removed', () => {
    const written = page.replaceAll(
      '`x-llm-d-video-*`',
      '`x-llm-d-video-fps` `x-llm-d-video-duration-seconds` `x-llm-d-video-resolution`',
    );
    const newer = ['x-llm-d-slo-tpot-ms', 'x-llm-d-model-name-rewrite'];
    for (const name of controlHeaders) if (!newer.includes(name)) expect(written).toContain(`\`${name}\``);
  });

  it.each<[DropName, gatewayApi: number, llmD: number]>([
    ['capacity', 429, 429],
    ['displaced', 429, 429],
    ['overloaded', 503, 429],
    ['noEndpointsEvicted', 503, 503],
    ['ttl', 503, 429],
    ['infeasible', 503, 503],
    ['gone', 503, 503],
    ['shutdownRejected', 500, 503],
    ['internal', 500, 500],
  ])('has the contracts right: %s', (name, gatewayApi, llmD) => {
    const { code, outcome } = bodyOf(name) as { code: string; outcome: string };
    const row = page.split('\n').find((line) => line.startsWith('| ') && line.includes(`\`${code}\``));
    expect(row).toMatch(new RegExp(`\`${outcome}\`.*\\| ${gatewayApi} \\| ${llmD}`));
    expect(toHttpResponse(drops[name]).status).toBe(gatewayApi);
    expect(toHttpResponse(drops[name], { contract: 'llm-d' }).status).toBe(llmD);
  });
});
