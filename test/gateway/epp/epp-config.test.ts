import { describe, expect, it } from 'vitest';
import { loadEppConfig } from '../../../src/gateway/index.js';

const discovery = '- { type: file-discovery, parameters: { path: /etc/endpoints.yaml } }';

/** A file with the plugins, and sections behind them. */
function load(plugins = '', sections = '', objects = '') {
  return loadEppConfig(`
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
${discovery}
${plugins}
${sections}
${objects && `---\n${objects}`}`);
}

const profile = (...references: string[]): string =>
  `schedulingProfiles: [{ name: default, plugins: [${references.map((each) => `{ pluginRef: ${each} }`).join(', ')}] }]`;

describe('the file of an endpoint picker', () => {
  it('needs nothing but where the endpoints are', () => {
    const config = load();
    expect(config.settings).toEqual({
      host: '0.0.0.0',
      port: 9002,
      healthPort: 9003,
      metricsPort: 9090,
      poolName: 'pool',
      trust: false,
      contract: 'llm-d',
      maxRequestBytes: 16_777_216,
      emitScores: false,
      drain: 5_000,
      drainStreams: 30_000,
      logRequests: true,
    });
    expect(config.endpoints).toEqual({ path: '/etc/endpoints.yaml', isWatched: false });
    expect(config).toMatchObject({ maxEndpoints: 1, rewrites: [], scorers: [], attributes: [], warnings: [] });
    expect(config.parsers).toContain('passthrough-parser');
  });

  it('queues with the feature gate alone; without it, sheddable requests are rejected while servers are full', () => {
    const detector = '- { type: utilization-detector }';
    const section = 'saturationDetector: { pluginRef: utilization-detector }';
    expect(load(detector, section).options.mode).toBe('admission');
    const on = load(detector, `${section}\nfeatureGates: [flowControl]\nflowControl: { maxRequests: 100 }`);
    expect(on.options).toMatchObject({ limits: { maxRequests: 100 } });
    expect(on.options.mode).toBeUndefined();
  });

  it('may have the detector among the filters of its profile', () => {
    const { options } = load(
      '- { type: concurrency-detector, parameters: { maxConcurrency: 3 } }',
      profile('concurrency-detector'),
    );
    expect(options.saturationDetector).toMatchObject({ type: 'concurrency-detector' });
    expect(options.admission).toMatchObject({ type: 'scheduling-filter' });
  });

  it('names scorers with weights, a picker, and parsers, by name or by type', () => {
    const config = load(
      `
- { type: queue-scorer, name: short }
- { type: max-score-picker, parameters: { maxNumOfEndpoints: 3 } }
- { type: openai-parser, name: ours }`,
      `
schedulingProfiles:
- name: default
  plugins: [{ pluginRef: short, weight: 2 }, { pluginRef: kv-cache-utilization-scorer }, { pluginRef: max-score-picker }]
requestHandler: { parsers: [{ pluginRef: ours }] }`,
    );
    expect(config.scorers).toMatchObject([
      { type: 'queue-scorer', weight: 2 },
      { type: 'kv-cache-utilization-scorer', weight: 1 },
    ]);
    expect(config).toMatchObject({ maxEndpoints: 3, parsers: ['openai-parser'] });
  });

  it('warns of what it leaves out', () => {
    const { warnings } = load(
      '- { type: p-d-decider }',
      `${profile('p-d-decider', 'queue-scorer')}`.replace('}] }]', '}] }, { name: prefill }]'),
    );
    expect(warnings).toEqual(
      expect.arrayContaining([
        'schedulingProfiles: only the first one is used',
        "schedulingProfiles: not headgate's, ignored: p-d-decider",
      ]),
    );
  });

  it('takes the template of bands with the priority that llm-d gives it', () => {
    const bands = 'featureGates: [flowControl]\nflowControl: { defaultPriorityBand: { priority: 0, maxRequests: 7 } }';
    expect(load('', bands).options.defaultBand).toMatchObject({ limits: { maxRequests: 7 } });
  });

  it('has objectives and model rewrites beside it', () => {
    const config = load(
      '',
      '',
      `
apiVersion: llm-d.ai/v1alpha2
kind: InferenceObjective
metadata: { name: batch }
spec: { priority: -10, poolRef: { name: pool } }
---
apiVersion: llm-d.ai/v1alpha2
kind: InferenceModelRewrite
metadata: { name: canary }
spec:
  rules:
  - matches: [{ model: { value: chat } }]
    targets: [{ modelRewrite: llama-a, weight: 9 }, { modelRewrite: llama-b }]
  - targets: [{ modelRewrite: small }]`,
    );
    expect(config.objectives).toEqual(new Map([['batch', -10]]));
    expect(config.rewrites).toEqual([
      {
        model: 'chat',
        targets: [
          { model: 'llama-a', weight: 9 },
          { model: 'llama-b', weight: 1 },
        ],
      },
      { model: undefined, targets: [{ model: 'small', weight: 1 }] },
    ]);
  });

  it('may name the servers in DNS instead', () => {
    const own = 'headgate: { endpoints: { dns: vllm.models.svc, port: 8000 } }';
    const { endpoints } = loadEppConfig(`kind: EndpointPickerConfig\napiVersion: llm-d.ai/v1alpha1\n${own}`);
    expect(endpoints).toEqual({ dns: 'vllm.models.svc', port: 8000, interval: 5_000 });
  });

  it('is refused with every fault, and with what a key was meant to be', () => {
    const wrong = (): unknown =>
      load(
        `
- { type: max-score-picker, parameters: { maxNumOfEndpoints: 0 } }
- { type: request-attribute-reporter, parameters: { attributes: [{ key: { name: cost } }] } }`,
        `${profile('max-score-picker')}
featureGates: [flowControl]
flowControl: { maxRequests: -1 }
headgate: { port: 70000, emitScore: true }`,
      );
    expect(wrong).toThrow(/headgate\.port: expected .*65535; got 70000/s);
    expect(wrong).toThrow(/emitScores/);
  });

  it.each([
    ['kind: EndpointPickerConfig', 'path'],
    ['', 'path'],
    ['kind: [', 'line 1, column 8: expected valid YAML'],
  ])('is refused without endpoints: %j', (text, message) => {
    expect(() => loadEppConfig(text)).toThrow(message);
  });
});
