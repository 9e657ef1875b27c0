/** A photo in a request costs its sender what it costs the server, in the gateway's books and in its log. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createGateway, type LogFields, loadGatewayConfig } from '../../../src/gateway/index.js';
import { explainWait } from '../../../src/index.js';
import { until } from '../../integration/support/until.js';
import { fileOf, startGateway } from '../support/gateway.js';
import { type Answer, startUpstream } from '../support/upstream.js';
import { dataUrl, photo } from './pictures.js';

const keys = ['photographer', 'writer'].map((tenant) => ({ key: tenant, tenant }));
const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
/** Of a photo of 1024 × 1536 at a server that counts as Qwen's does, and the words beside it. */
const realTokens = 37 * 55 + 15;

const message = (url: string): object => ({
  model: 'qwen-vl',
  max_tokens: 256,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this, and where?' },
        { type: 'image_url', image_url: { url } },
      ],
    },
  ],
});
const withPhoto = message(dataUrl('image/jpeg', photo(3_000_000)));

function answering(promptTokens: number): Answer {
  const usage = { prompt_tokens: promptTokens, completion_tokens: 20, total_tokens: promptTokens + 20 };
  return ({ res }) => res.setHeader('content-type', 'application/json').end(JSON.stringify({ choices: [], usage }));
}

describe('a photo of 3 MB', () => {
  it('books its real tokens, and moves the share of its tenant by no more', async () => {
    const waiting: (() => void)[] = [];
    const upstream = await startUpstream((received, index) =>
      waiting.push(() => answering(realTokens)(received, index)),
    );
    const plugins = [
      { type: 'concurrency-detector', parameters: { maxConcurrency: 1 } },
      { type: 'virtual-token-counter-fairness-policy' },
    ];
    const flowControl = {
      saturationDetector: { pluginRef: 'concurrency-detector' },
      defaultPriorityBand: { fairnessPolicyRef: 'virtual-token-counter-fairness-policy' },
      priorityBands: [{ priority: 0, fairnessPolicyRef: 'virtual-token-counter-fairness-policy' }],
    };
    const { post, gateway, log } = await startGateway(fileOf([upstream.url], { auth: { keys }, plugins, flowControl }));
    const { flow } = gateway;
    const answers = [post(withPhoto, as('photographer'))];
    await until('the photo is with the server', () => waiting.length === 1);
    for (const key of ['photographer', 'writer']) answers.push(post(message('https://a.example/b.png'), as(key)));
    await until('the others wait', () => flow.stats().waiting === 2);
    expect(flow.stats().inFlightByFlow).toMatchObject([
      { fairnessId: 'photographer', inFlightTokens: realTokens + 256 },
    ]);
    const own = explainWait(
      flow,
      ({ inputTokens = 0, req }) => inputTokens > 0 && req.headers.authorization === 'Bearer photographer',
    );
    // Prompt tokens count once, and the 256 that are expected of the answer twice.
    expect(own?.leadInCost).toBeLessThanOrEqual(realTokens + 2 * 256);
    expect(own?.leadInCost).toBeGreaterThan(realTokens / 2);
    expect(own?.text).toContain('taken for 15+1x999+256 tokens');
    for (let i = 0; i < 3; i++) {
      await until('the next is with the server', () => waiting.length > i);
      waiting[i]?.();
    }
    await Promise.all(answers);
    await until('all are logged', () => log.filter(({ event }) => event === 'request').length === 3);
    expect(log.find(({ event }) => event === 'request')?.fields.estimate).toBe('15+1x2035+256');
  });
});

describe('the gateway', () => {
  it('learns what pictures take that it does not see', async () => {
    const upstream = await startUpstream(answering(5_000));
    const { post, log } = await startGateway(fileOf([upstream.url]));
    for (let i = 0; i < 9; i++) await (await post(message('https://a.example/b.png'))).text();
    await until('all are logged', () => log.filter(({ event }) => event === 'request').length === 9);
    const told = log.filter(({ event }) => event === 'request').map(({ fields }) => fields.estimate);
    expect([told[0], told[8]]).toEqual(['15+1x999+256', '15+1x4985+256']);
  });

  it('counts pictures as the file says', async () => {
    const upstream = await startUpstream(answering(600));
    const { post, log } = await startGateway(fileOf([upstream.url], { models: { pictures: { 'qwen-vl': 576 } } }));
    await (await post(withPhoto)).text();
    await until('it is logged', () => log.some(({ event }) => event === 'request'));
    expect(log.find(({ event }) => event === 'request')?.fields.estimate).toBe('15+1x576+256');
  });

  it('tells what servers reported for each token that it estimated, and what a host estimates in its place', async () => {
    const upstream = await startUpstream(answering(2042));
    const config = loadGatewayConfig(fileOf([upstream.url]));
    const log: LogFields[] = [];
    const gateway = await createGateway(
      {
        ...config,
        flow: {
          ...config.flow,
          estimate: (request) => (model(request) === 'own' ? { inputTokens: 1021, outputTokens: 8 } : undefined),
        },
      },
      { log: (_level, event, fields = {}) => void (event === 'request' && log.push(fields)) },
    );
    onTestFinished(async () => void (await gateway.close()));
    for (const name of ['qwen-vl', 'own']) {
      const body = JSON.stringify({ ...withPhoto, model: name });
      const headers = { 'content-type': 'application/json' };
      await (await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', body, headers })).text();
    }
    await until('both are logged', () => log.length === 2);
    expect(log.map(({ estimate }) => estimate)).toEqual(['15+1x2035+256', '1021+8']);
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    const name = 'inference_extension_flow_control_token_estimate_ratio';
    expect(text).toContain(`${name}_bucket{le="0.9",model_name="qwen-vl"} 0`);
    expect(text).toContain(`${name}_bucket{le="1",model_name="qwen-vl"} 1`);
    expect(text).toContain(`${name}_sum{model_name="own"} 2`);
  });
});

function model(request: unknown): unknown {
  return Reflect.get(Object(request), 'askedModel');
}
