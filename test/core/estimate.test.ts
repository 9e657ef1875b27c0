/** The option `estimate`: what the host says of a request's size wins over everything. */
import { describe, expect, it } from 'vitest';
import {
  explainWait,
  FlowController,
  type FlowRequest,
  inFlightEviction,
  quotaDetector,
  virtualTokenCounter,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import type { TokenEstimate } from '../../src/types/index.js';

interface Request extends FlowRequest {
  readonly inputTokens?: number;
  readonly size?: unknown;
}

const request = (size?: unknown): Request => ({ byteSize: 1, tokens: 750_000, inputTokens: 300_000, size });
const estimate = ({ size }: Request): TokenEstimate | undefined => size as TokenEstimate | undefined;
const key = { fairnessId: 'a', priority: 0 };

function make(more: object = {}) {
  const faults: string[] = [];
  const flow = new FlowController<Request>({ maxConcurrency: 1, estimate, clock: new ManualClock(), ...more });
  flow.on('pluginError', ({ kind, error }) => faults.push(`${kind}: ${error}`));
  return { flow, faults };
}

const heldBy = (flow: FlowController<Request>): unknown => flow.stats().inFlightByFlow[0]?.inFlightTokens;

describe('the host’s estimate', () => {
  it.each<[string, unknown, number]>([
    ['its parts, without what is cached', { inputTokens: 1000, cachedTokens: 900, outputTokens: 50 }, 150],
    ['a prompt alone', { inputTokens: 10.5 }, 11],
    ['more in the cache than there is', { inputTokens: 10, cachedTokens: 20 }, 0],
    ['nothing', undefined, 750_000],
  ])('is what a request holds: %s', async (_what, size, tokens) => {
    const { flow, faults } = make();
    await flow.enqueue(request(size), key);
    expect([heldBy(flow), faults]).toEqual([tokens, []]);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no tokenizer');
      },
    ],
    ['answers a promise', async () => ({ inputTokens: 1 })],
    ['answers nonsense', () => ({ inputTokens: Number.NaN })],
    ['answers less than nothing', () => ({ inputTokens: 1, outputTokens: -1 })],
  ])('counts as none when it %s, and the fault is told', async (_what, answer) => {
    const { flow, faults } = make({ estimate: (given: Request) => (given ? answer() : undefined) });
    await flow.enqueue(request(), key);
    expect(heldBy(flow)).toBe(750_000);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/^estimate: /);
  });

  it('is what its tenant is charged for at first, and what explanations say', async () => {
    const { flow } = make({ defaultBand: {}, bands: [{ priority: 0, fairness: virtualTokenCounter() }] });
    const size = { inputTokens: 1000, cachedTokens: 400, outputTokens: 50 };
    await flow.enqueue(request(size), key);
    const waiting = request(size);
    for (const fairnessId of ['a', 'b'])
      void flow.enqueue(fairnessId === 'a' ? waiting : request(size), { ...key, fairnessId });
    const told = explainWait(flow, waiting);
    expect(told?.leadInCost).toBeLessThanOrEqual(600 + 2 * 50);
    expect(told?.leadInCost).toBeGreaterThan(300);
    expect(told?.text).toContain('taken for 1000+50 tokens');
  });

  it('is what a quota reserves, though the quota has an estimate of its own', () => {
    const groups = [{ name: 'g', quotas: [{ unit: 'inputTokens' as const, limit: 5000, per: '1m' }] }];
    const quotas = quotaDetector<Request>({ groups, estimate: () => ({ inputTokens: 4999 }) });
    const { flow } = make({ maxConcurrency: 8, constraints: [quotas] });
    for (let i = 0; i < 2; i++) expect(flow.tryEnqueue(request({ inputTokens: 2000 }), key)?.type).toBe('Dispatched');
    expect(flow.tryEnqueue(request({ inputTokens: 2000 }), key)?.type).not.toBe('Dispatched');
  });

  it('stays with a request that is put back after an eviction', async () => {
    const { flow } = make({ eviction: inFlightEviction({ graceMs: 0 }) });
    const sheddable = await flow.enqueue(request({ inputTokens: 7 }), { fairnessId: 'batch', priority: -1 });
    if (sheddable.type !== 'Dispatched') throw new Error('dropped');
    const urgent = flow.enqueue(request({ inputTokens: 5 }), { fairnessId: 'chat', priority: 1 });
    expect(sheddable.lease.isEvicted).toBe(true);
    const again = sheddable.lease.requeue();
    const first = await urgent;
    if (first.type === 'Dispatched') first.lease.release();
    expect((await again).type).toBe('Dispatched');
    expect(heldBy(flow)).toBe(7);
  });

  it('is asked by the options that are in force', async () => {
    const { flow } = make();
    flow.reconfigure({ estimate: () => ({ inputTokens: 3 }) });
    await flow.enqueue(request(), key);
    expect(heldBy(flow)).toBe(3);
  });
});
