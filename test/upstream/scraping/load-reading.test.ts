/** What each engine's exposition becomes. */
import { describe, expect, it } from 'vitest';
import type { EndpointView, MetricProfile, MetricSources } from '../../../src/upstream/index.js';
import { metricProfiles } from '../../../src/upstream/index.js';
import { parseSelector } from '../../../src/upstream/scraping/load-reading.js';
import { candidatesFor } from '../../../src/upstream/scraping/resolve-sources.js';
import { Answer, Target } from '../../../src/upstream/scraping/target.js';
import { fakeEndpoint } from '../../support/fake-pool.js';
import { dynamo, oldVllm, sglang, triton, trtllmServe, vllm } from './expositions.js';

const anywhere = fakeEndpoint('a');

function answer(text: string, profile?: MetricProfile | MetricSources, endpoint: EndpointView = anywhere): Answer {
  const taken = new Answer(new Target(endpoint, 'http://a/metrics', candidatesFor(endpoint, profile)));
  taken.exposition.push(new TextEncoder().encode(text));
  taken.exposition.end();
  return taken;
}

function load(text: string, profile?: MetricProfile | MetricSources): unknown {
  return answer(text, profile).recognized().report();
}

describe('each engine', () => {
  const figures = { waiting: 3, running: 7, kv: 0.5 };
  const cases: [MetricProfile, string, object][] = [
    ['vllm', vllm(figures), { ranks: [{ totalBlocks: 1000, kvUsedBlocks: 500 }] }],
    ['vllm', oldVllm(figures), { loraAdapters: { running: [], waiting: [], max: 0 } }],
    ['sglang', sglang(figures), { ranks: [{ totalBlocks: 2000, kvUsedBlocks: 1000 }] }],
    ['trtllm-serve', trtllmServe(figures), { ranks: [{ totalBlocks: 400, kvUsedBlocks: 200 }] }],
    ['triton', triton(figures), { ranks: [{ totalBlocks: 500, kvUsedBlocks: 250 }] }],
    ['dynamo', dynamo(figures), { ranks: [{ totalBlocks: 300 }, { totalBlocks: 300, kvUsedBlocks: 150 }] }],
  ];

  it.each(cases)('%s is recognized, and its load read', (profile, text, more) => {
    expect(answer(text).recognized().sources.name).toBe(profile);
    expect(load(text)).toMatchObject({ waitingQueueSize: 3, runningRequests: 7, kvCacheUsage: 0.5, ...more });
    expect(load(text, profile)).toEqual(load(text));
  });

  it.each(cases)('%s is not taken for another', (profile, text) => {
    for (const other of Object.keys(metricProfiles) as MetricProfile[]) {
      if (other !== profile) expect(() => load(text, other)).toThrow(/^no .* in the answer \(profile/);
    }
  });

  it('behind Dynamo is read by its own metrics', () => {
    expect(answer(dynamo({ waiting: 1 }) + vllm({ waiting: 2 })).recognized().sources.name).toBe('vllm');
    expect(load(dynamo({ waiting: 1 }) + vllm({ waiting: 2 }), 'dynamo')).toMatchObject({ waitingQueueSize: 1 });
  });
});

describe('the profile', () => {
  it.each([
    ['sglang', 'sglang'],
    ['triton-tensorrt-llm', 'triton'],
  ])('is what the label says: %s', (engineType, name) => {
    const endpoint = fakeEndpoint('a', { labels: { 'llm-d.ai/engine-type': engineType } });
    expect(candidatesFor(endpoint, undefined).map((sources) => sources.name)).toEqual([name]);
    expect(candidatesFor(endpoint, 'vllm').map((sources) => sources.name)).toEqual(['vllm']);
    expect(
      candidatesFor(endpoint, ({ id }) => (id === 'b' ? 'vllm' : undefined)).map((sources) => sources.name),
    ).toEqual([name]);
  });

  it('is found out when the label names no engine', () => {
    const endpoint = fakeEndpoint('a', { labels: { 'llm-d.ai/engine-type': 'constructor' } });
    expect(candidatesFor(endpoint, undefined)).toHaveLength(5);
  });

  it.each<[string, unknown, RegExp]>([
    ['an unknown engine', 'vlm', /expected one of "vllm".*got "vlm" \(string\)/],
    ['a name that objects inherit', 'toString', /expected one of/],
    ['no queue', {}, /waitingQueueSize: expected a metric/],
    ['a selector that is none', { waitingQueueSize: 'a{b=' }, /waitingQueueSize: expected a metric/],
    ['one wrong of several', { waitingQueueSize: ['a', ''] }, /waitingQueueSize: expected a metric/],
    ['an unknown figure', { waitingQueueSize: 'a', waiting: 'b' }, /waiting: expected one of the keys/],
  ])('is refused: %s', (_, profile, message) => {
    expect(() => candidatesFor(anywhere, profile as MetricProfile)).toThrow(message);
  });
});

describe('data-parallel ranks', () => {
  it('add up, and their cache is as full as it is on average', () => {
    expect(load(vllm({ waiting: 2, running: 5, kv: 0.25 }, { waiting: 1, running: 3, kv: 0.75 }))).toMatchObject({
      waitingQueueSize: 3,
      runningRequests: 8,
      kvCacheUsage: 0.5,
      ranks: [
        { totalBlocks: 1000, kvUsedBlocks: 250 },
        { totalBlocks: 1000, kvUsedBlocks: 750 },
      ],
    });
  });

  it('are in the order of their numbers', () => {
    const text = [10, 9, 0].map((rank) => `q{dp_rank="${rank}"} 1\nblocks{dp_rank="${rank}"} ${rank}\n`).join('');
    expect(load(text, { waitingQueueSize: 'q', totalBlocks: 'blocks', rankLabel: 'dp_rank' })).toMatchObject({
      waitingQueueSize: 3,
      ranks: [{ totalBlocks: 0 }, { totalBlocks: 9 }, { totalBlocks: 10 }],
    });
  });

  it('that show themselves twice count once', () => {
    const text = 'q{tp_rank="0"} 4\nq{tp_rank="1"} 4\nq{tp_rank="2"} 3\n';
    expect(load(text, { waitingQueueSize: 'q' })).toMatchObject({ waitingQueueSize: 4 });
  });

  it('are not more than a server can have', () => {
    const text = Array.from({ length: 1025 }, (_, rank) => `vllm:num_requests_waiting{engine="${rank}"} 1\n`).join('');
    expect(() => load(text)).toThrow('more than 1024 ranks in vllm:num_requests_waiting');
  });
});

describe('what is unknown', () => {
  it('is not taken for idle: a figure that is missing, or no number', () => {
    expect(() => load('')).toThrow('no metrics of vllm, sglang, trtllm-serve, triton, dynamo in the answer');
    expect(() => load('vllm:num_requests_waiting 1\nvllm:num_requests_running 1\n')).toThrow(
      'no vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc in the answer (profile vllm)',
    );
    for (const value of ['NaN', '-1', '+Inf']) {
      expect(() => load(vllm({ waiting: 1 }).replace(/^(vllm:num_requests_waiting\{.*\}).*$/m, `$1 ${value}`))).toThrow(
        'no ',
      );
    }
    expect(() => load('q{state="run"} 1\n# TYPE q gauge\n', { waitingQueueSize: 'q{state="wait"}' })).toThrow(
      'no q in the answer',
    );
  });

  it('is idle where the server has the metric and has counted nothing yet', () => {
    const fresh = sglang({ waiting: 9, running: 9, kv: 0.9 }).replace(/^sglang:.*\n/gm, '');
    expect(load(fresh)).toEqual({ waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
  });

  it('reads 0 where the host named no source for it', () => {
    expect(load('q 5\n', { waitingQueueSize: 'q' })).toEqual({
      waitingQueueSize: 5,
      runningRequests: 0,
      kvCacheUsage: 0,
    });
  });

  it('of several ranks leaves the others as they are', () => {
    const text = vllm({ waiting: 2 }, { waiting: 1 }).replace(
      /^(vllm:num_requests_waiting\{engine="0".*\}).*$/m,
      '$1 NaN',
    );
    expect(load(text)).toMatchObject({ waitingQueueSize: 1 });
  });
});

describe('metrics of a host’s own', () => {
  it('are selected by their labels, quoted or not, and several are alternatives', () => {
    const text = 'r{state="wait",m="a"} 4\nr{state="run",m="a"} 2\nprefill 900\nlimits{tokens="8192",x="y"} 1\n';
    expect(
      load(text, {
        waitingQueueSize: ['absent', 'r{state="wait", m="a"}'],
        runningRequests: 'r{state=run}',
        activePrefillTokens: 'prefill',
        maxNumBatchedTokens: { metric: 'limits{x="y"}', valueLabel: 'tokens' },
      }),
    ).toEqual({
      waitingQueueSize: 4,
      runningRequests: 2,
      kvCacheUsage: 0,
      ranks: [{ activePrefillTokens: 900, maxNumBatchedTokens: 8192 }],
    });
  });

  it('may begin with an engine’s', () => {
    const text = `${vllm({ waiting: 1, kv: 0.5 })}my_queue 6\n`;
    expect(load(text, { ...metricProfiles.vllm, waitingQueueSize: 'my_queue' })).toMatchObject({
      waitingQueueSize: 6,
      kvCacheUsage: 0.5,
    });
  });

  it.each([['m{'], ['m{a}'], ['m{a="b"'], ['1m'], ['m{a="b" c="d"}'], ['m n'], ['']])('are no selector: %j', (text) => {
    expect(parseSelector(text)).toBeUndefined();
  });
});

it('LoRA adapters are those of the newest series', () => {
  expect(load(vllm())).toMatchObject({ loraAdapters: { running: ['sql', 'chat'], waiting: ['tools'], max: 4 } });
});
