/** Which flows are kept: those of which something waits, or runs where its end is told to the fairness policy. */
import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  type FlowRequest,
  labelFilter,
  overviewOf,
  virtualTokenCounter,
} from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { key, makeFlow, record, request, runNow } from '../../support/flow.js';

interface Modelled extends FlowRequest {
  readonly model?: string;
}

const roomy = { saturationDetector: concurrencyDetector({ maxConcurrency: 100 }) };

describe('a flow', () => {
  it('is not forgotten while a request of it runs whose end its fairness policy hears of', () => {
    const { flow, clock } = makeFlow({
      ...roomy,
      flowIdleTimeout: 1000,
      bands: [{ priority: 0, fairness: virtualTokenCounter() }],
    });
    const removed = record(flow, 'flowRemoved');
    const [first, second] = [runNow(flow, { fairnessId: 'a' }), runNow(flow, { fairnessId: 'a' })];
    first?.release();
    clock.advance(5000);
    runNow(flow, { fairnessId: 'b' });
    expect(removed).toEqual([]);
    second?.release();
    clock.advance(5000);
    runNow(flow, { fairnessId: 'c' });
    expect(removed).toMatchObject([{ fairnessId: 'a' }]);
    expect(audit(flow).violations).toEqual([]);
  });

  it('is forgotten when its requests queue by class from now on, and theirs are kept', () => {
    const pool = new EndpointPool();
    pool.add('server', { labels: { model: 'm' } });
    const { flow, clock } = makeFlow({
      pool,
      endpointFilters: [labelFilter({ label: 'model', of: ({ model }: Modelled) => model })],
      flowIdleTimeout: 1000,
      defaultRequestTtl: 0,
    });
    const removed = record(flow, 'flowRemoved');
    runNow(flow, { fairnessId: 'other' });
    const asked: Modelled = { ...request, model: 'm' };
    void flow.enqueue(asked, key('a'));
    flow.reconfigure({ holBlocking: 'none' });
    clock.advance(5000);
    expect(flow.tryEnqueue(request, key('b'))).toBeUndefined();
    overviewOf(flow, { flows: 'all' });
    expect(audit(flow).violations).toEqual([]);
    expect(flow.stats().waiting).toBe(1);
    expect(removed.map(({ fairnessId }) => fairnessId)).toContain('a');
    expect(overviewOf(flow, { flows: 'all' }).bands[0]?.flows.map(({ fairnessId }) => fairnessId)).toEqual(['a']);
  });
});
