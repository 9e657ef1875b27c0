import { describe, expect, it } from 'vitest';
import { EndpointPool, type FlowControllerOptions, labelFilter, overviewOf } from '../../../src/index.js';
import { key, makeFlow, request, runNow } from '../../support/flow.js';

function waiting(options: Partial<FlowControllerOptions> = {}) {
  const made = makeFlow({
    limits: { maxRequests: 50 },
    bands: [{ priority: 1, limits: { maxRequests: 9 } }],
    ...options,
  });
  runNow(made.flow, key('held', 1));
  return made;
}

describe('figures for exporters', () => {
  it('are what a snapshot says, band by band', () => {
    const { flow } = waiting();
    for (const [fairnessId, priority] of [
      ['a', 1],
      ['b', 1],
      ['a', 1],
      ['c', -2],
    ] as const) {
      void flow.enqueue({ ...request, tokens: 5 }, key(fairnessId, priority));
    }
    const { stats, limits, bands } = overviewOf(flow, { flows: 'all' });
    const figures = flow.figures();
    expect(figures).toMatchObject({ stats, limits, waitingTokens: 20, pool: undefined });
    expect(figures.bands).toHaveLength(bands.length);
    for (const [index, band] of bands.entries()) {
      const { priority, isConfigured, waiting, waitingBytes, flows } = band;
      const found = figures.bands[index];
      expect(found).toMatchObject({ priority, isConfigured, waiting, waitingBytes, limits: band.limits });
      expect([...(found?.waitingIds() ?? [])]).toEqual(flows.map(({ fairnessId }) => fairnessId));
      for (const of of flows)
        expect(found?.waitingOf(of.fairnessId)).toMatchObject({ waiting: of.waiting, waitingBytes: of.waitingBytes });
    }
  });

  it('know nothing of a fairness ID of which nothing waits', () => {
    const { flow } = waiting();
    const [band] = flow.figures().bands;
    expect(band?.waitingOf('held')).toBeUndefined();
    expect(band?.waitingOf('never seen')).toBeUndefined();
  });

  it('add up a fairness ID whose requests queue by class, held back or not', () => {
    const pool = new EndpointPool();
    for (const model of ['x', 'y']) pool.add(`serves-${model}`, { labels: { model } });
    const { flow } = makeFlow({
      pool,
      endpointFilters: [labelFilter({ label: 'model' })],
      headroom: 'required',
      holBlocking: 'none',
      saturationDetector: { type: 'full', saturation: () => 0, filter: () => [] },
    } as Partial<FlowControllerOptions>);
    for (const model of ['x', 'y', 'x']) void flow.enqueue({ byteSize: 2, model } as never, key('a'));
    const [band] = flow.figures().bands;
    expect(band?.waiting).toBe(3);
    expect(band?.waitingOf('a')).toEqual({ waiting: 3, waitingBytes: 6 });
    expect([...(band?.waitingIds() ?? [])]).toEqual(['a', 'a']);
    expect(flow.figures().pool?.endpoints).toBe(2);
  });
});
