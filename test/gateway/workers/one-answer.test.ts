/** What one answer is made of, for the figures of demand, readiness and pages. */
import { expect, it } from 'vitest';
import { oneAnswer } from '../../../src/gateway/workers/one-answer.js';

it('adds figures, and takes the highest of those that do not add up', () => {
  const all = [
    { waiting: 2, saturation: 0.5, timeToDrainMs: 50, isDraining: false, store: { calls: 3, latencyMs: 2 } },
    { waiting: 6, saturation: 0.9, timeToDrainMs: 20, isDraining: true, store: { calls: 4, latencyMs: 1 } },
  ];
  expect(oneAnswer(all)).toEqual({
    waiting: 8,
    saturation: 0.9,
    timeToDrainMs: 50,
    isDraining: true,
    store: { calls: 7, latencyMs: 2 },
  });
});

it('knows what one of them knows, but never ends before the last', () => {
  expect(
    oneAnswer([
      { kvCacheUsage: null, shared: null },
      { kvCacheUsage: 0.4, shared: null },
    ]),
  ).toEqual({
    kvCacheUsage: 0.4,
    shared: null,
  });
  expect(oneAnswer([{ timeToDrainMs: null }, { timeToDrainMs: 5 }])).toEqual({ timeToDrainMs: null });
  expect(oneAnswer([{ problem: undefined }, { problem: { code: 'unreachable' } }])).toEqual({
    problem: { code: 'unreachable' },
  });
  expect(oneAnswer([])).toBeUndefined();
});

it('makes rows of one name one row, the most urgent first, and adds others by their places', () => {
  const tenants = (name: string, waiting: number, oldestWaitMs: number | null, receivedShare: number): object => ({
    name,
    priority: 0,
    waiting,
    oldestWaitMs,
    receivedShare,
    isStarving: waiting > 4,
  });
  const all = [
    { tenants: [tenants('red', 1, 10, 0.2), tenants('blue', 5, 900, 0.8)], buckets: [null, [1, 0, 2]] },
    { tenants: [tenants('red', 3, 5_000, 0.4)], buckets: [null, [4, 1, 0]] },
  ];
  expect(oneAnswer(all)).toEqual({
    tenants: [
      { ...tenants('red', 4, 5_000, 0), receivedShare: expect.closeTo(0.3) },
      { ...tenants('blue', 5, 900, 0.8), isStarving: true },
    ],
    buckets: [null, [5, 1, 2]],
  });
});

it('keeps bands in their order, whoever has them', () => {
  const all = [{ bands: [{ priority: 0, waiting: 1 }] }, { bands: [{ priority: 9, waiting: 2 }] }];
  expect(oneAnswer(all)).toMatchObject({ bands: [{ priority: 9 }, { priority: 0 }] });
});

it('counts the parts of a limit once, and as held by others what no worker holds', () => {
  const row = (cap: number, others: number): object => ({ name: 'u', limit: 8, cap, others, inFlight: cap });
  expect(oneAnswer([{ rows: [row(2, 6)] }, { rows: [row(3, 5)] }])).toEqual({
    rows: [{ name: 'u', limit: 8, cap: 5, others: 3, inFlight: 5 }],
  });
});
