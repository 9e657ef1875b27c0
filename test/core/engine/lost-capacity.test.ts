/** Servers that cannot be had are no capacity; and a pool of which none can be had is empty. */
import { describe, expect, it } from 'vitest';
import {
  busyThresholdDetector,
  concurrencyDetector,
  EndpointPool,
  explainWait,
  type FlowControllerOptions,
  maxOf,
  type SaturationDetector,
  utilizationDetector,
  withHysteresis,
} from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { dropOf, key, makeFlow, record, turns } from '../../support/flow.js';

const idle = { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 };

/** Servers a and b with four seats each, and more requests than they can run. */
function twoServers(options: Partial<FlowControllerOptions> = {}) {
  const pool = new EndpointPool();
  for (const id of ['a', 'b']) pool.add(id);
  const made = makeFlow({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 4 }), ...options });
  const send = (count: number): void => {
    for (let i = 0; i < count; i++) void made.flow.enqueue({ byteSize: 1 }, key());
  };
  const running = (): Record<string, number> =>
    Object.fromEntries(pool.endpoints.map(({ id, inFlightRequests }) => [id, inFlightRequests]));
  return { ...made, pool, send, running };
}

type Loss = (pool: EndpointPool) => void;
const losses: [string, Loss, Loss][] = [
  ['ill', (pool) => pool.update('a', { state: 'ill' }), (pool) => pool.update('a', { state: 'ready' })],
  ['draining', (pool) => pool.update('a', { state: 'draining' }), (pool) => pool.update('a', { state: 'ready' })],
  ['marked as overloaded', (pool) => pool.markOverloaded('a', 60_000), (pool) => pool.clearOverloaded('a')],
];

describe.each(losses)('a server that is %s', (_, lose, regain) => {
  it('is no capacity: the other one gets no more than its own seats', () => {
    const { pool, send, running, flow } = twoServers();
    lose(pool);
    send(20);
    expect(running()).toEqual({ a: 0, b: 4 });
    expect(flow.figures()).toMatchObject({ stats: { saturation: 1 }, pool: { endpoints: 2, available: 1 } });
    regain(pool);
    expect(running()).toEqual({ a: 4, b: 4 });
    expect(audit(flow).violations).toEqual([]);
  });

  it('takes what runs on it out of the books of the others', () => {
    const { pool, send, running, flow } = twoServers();
    send(4);
    expect(running()).toEqual({ a: 2, b: 2 });
    lose(pool);
    expect(flow.figures().stats.saturation).toBe(0.5);
    send(20);
    expect(running()).toEqual({ a: 2, b: 4 });
  });

  it('leaves an empty pool when it was the last one', async () => {
    const { pool, flow, clock } = twoServers({ noEndpointRequestTtl: 100, limits: { maxRequests: 1 } });
    const regimes = record(flow, 'regime');
    pool.remove('b');
    lose(pool);
    expect(regimes).toEqual([{ isPoolEmpty: true }]);
    const waiting = flow.enqueue({ byteSize: 1 }, key());
    expect(dropOf(await flow.enqueue({ byteSize: 1 }, key())).type).toBe('RejectedNoEndpoints');
    clock.advance(100);
    const drop = dropOf(await waiting);
    expect(drop).toMatchObject({ type: 'EvictedNoEndpoints', reason: 'no-endpoints' });
    expect(drop.detail).toBe('every server is ill, draining or marked as overloaded');
    regain(pool);
    expect(regimes).toEqual([{ isPoolEmpty: true }, { isPoolEmpty: false }]);
    expect(flow.tryEnqueue({ byteSize: 1 }, key())?.type).toBe('Dispatched');
  });
});

it('a mark that runs out while nobody waits gives the capacity back', async () => {
  const { pool, flow, clock } = twoServers();
  for (const id of ['a', 'b']) pool.markOverloaded(id, 100);
  expect(flow.figures().pool?.available).toBe(0);
  clock.advance(100);
  expect(flow.figures().pool?.available).toBe(2);
  expect(flow.tryEnqueue({ byteSize: 1 }, key())?.type).toBe('Dispatched');
});

it('however often the servers come and go, nobody waits longer than both budgets together', async () => {
  const { pool, flow, clock, send } = twoServers({
    defaultRequestTtl: 100,
    noEndpointRequestTtl: 50,
    saturationDetector: () => 1,
  });
  pool.remove('b');
  send(1);
  for (let i = 0; i < 20; i++) {
    pool.update('a', { state: i % 2 === 0 ? 'ill' : 'ready' });
    clock.advance(10);
  }
  await turns();
  expect(flow.stats()).toMatchObject({ waiting: 0, evicted: 1 });
});

describe('a server without fresh metrics', () => {
  const detectors: [string, SaturationDetector][] = [
    ['utilization', utilizationDetector({ queueDepthThreshold: 5 })],
    ['a composite with it', maxOf(utilizationDetector({ queueDepthThreshold: 5 }), busyThresholdDetector({}))],
    ['hysteresis around it', withHysteresis(utilizationDetector({ queueDepthThreshold: 5 }))],
  ];

  it.each(detectors)('is no capacity under %s', (_, saturationDetector) => {
    const { pool, flow, clock, send, running } = twoServers({ saturationDetector });
    pool.report('b', { ...idle, waitingQueueSize: 3 });
    expect(flow.figures()).toMatchObject({ stats: { saturation: 0.6 }, pool: { available: 1 } });
    send(20);
    expect(running().a).toBe(0);
    expect(running().b).toBe(2);
    clock.advance(201);
    expect(flow.figures()).toMatchObject({ stats: { saturation: 1 }, pool: { available: 0 } });
  });

  it('makes the pool empty when there is no other one, and drops say why', async () => {
    const { pool, flow, clock } = twoServers({
      saturationDetector: utilizationDetector({ queueDepthThreshold: 5 }),
      noEndpointRequestTtl: 300,
    });
    const drop = flow.enqueue({ byteSize: 1 }, key());
    const waiting = { byteSize: 1, ttlMs: 10_000 };
    void flow.enqueue(waiting, key());
    expect(explainWait(flow, waiting)?.text).toContain('no server reports its load');
    clock.advance(300);
    expect(dropOf(await drop)).toMatchObject({ type: 'EvictedNoEndpoints', detail: 'no server reports its load' });
    const next = flow.enqueue({ byteSize: 1 }, key());
    pool.report('a', idle);
    expect((await next).type).toBe('Dispatched');
    expect(audit(flow).violations).toEqual([]);
  });

  it('is judged as before where the detector guesses or ignores it', () => {
    const { flow } = twoServers({ saturationDetector: utilizationDetector({ stalenessPolicy: 'ignore' }) });
    expect(flow.figures()).toMatchObject({ stats: { saturation: 0 }, pool: { available: 2 } });
  });
});

describe('weight is capacity', () => {
  it('of seats', () => {
    const { pool, send, running } = twoServers();
    pool.update('b', { weight: 3 });
    send(40);
    expect(running()).toEqual({ a: 4, b: 12 });
    pool.update('a', { weight: 2 });
    send(1);
    expect(running()).toEqual({ a: 8, b: 12 });
  });

  it.each(['tokens', 'hybrid'] as const)('in mode %s', (concurrencyMode) => {
    const pool = new EndpointPool();
    pool.add('a');
    pool.add('b', { weight: 3 });
    const saturationDetector = concurrencyDetector({ concurrencyMode, maxTokenConcurrency: 40, maxConcurrency: 100 });
    const { flow } = makeFlow({ pool, saturationDetector });
    for (let i = 0; i < 40; i++) void flow.enqueue({ byteSize: 1, tokens: 10 }, key());
    expect(pool.endpoints.map(({ inFlightTokens }) => inFlightTokens)).toEqual([40, 120]);
  });

  it('every server has a seat, however light', () => {
    const { pool, send, running } = twoServers();
    pool.update('a', { weight: 0.1 });
    send(20);
    expect(running()).toEqual({ a: 1, b: 4 });
  });

  it('of a reported queue, and of the mean', () => {
    const { pool, flow } = twoServers({ saturationDetector: utilizationDetector({ queueDepthThreshold: 5 }) });
    pool.update('b', { weight: 3 });
    pool.report('a', { ...idle, waitingQueueSize: 5 });
    pool.report('b', { ...idle, waitingQueueSize: 3 });
    expect(flow.figures().stats.saturation).toBeCloseTo((1 * 1 + 3 * 0.2) / 4);
  });

  it('of busy servers', () => {
    const { pool, flow } = twoServers({
      saturationDetector: busyThresholdDetector({ activePrefillTokensThreshold: 10 }),
    });
    pool.update('b', { weight: 3 });
    pool.report('b', { ...idle, ranks: [{ activePrefillTokens: 11 }] });
    expect(flow.figures().stats.saturation).toBe(0.75);
  });
});
