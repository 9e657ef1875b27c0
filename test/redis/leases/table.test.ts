/** The table of what faults cost, on real stores in virtual time: 6 replicas, a limit of 64, load 1.5, 600 s. */
import { expect, it } from 'vitest';
import { edited, withoutStepFive } from '../support/control.js';
import { storeKinds } from '../support/stores.js';
import { type Experiment, experiment } from '../support/table.js';
import { describeWithClient } from '../support/with-store.js';

/** A store that has lost everything forgets who else there was. */
const withoutMemory = (text: string): string => edited(text, 'math.max(sums.expected, rememberedWeight)', '0');

const flushedWhileCutOff: Omit<Experiment, 'seed'> = {
  flushedAtMs: 150_000,
  flushCutsOffMs: 60_000,
  drainMs: 20_000,
  lastsMs: 300_000,
};

/** The utilization that is asked for: what the table has, less .02. */
const bounded: readonly (readonly [string, Omit<Experiment, 'seed'>, number])[] = [
  ['without faults', {}, 0.969],
  ['with a refresh of 250 ms and a lease of 2 s', { refreshMs: 250, leaseMs: 2_000 }, 0.975],
  ['with 20 % of the replies lost', { lost: 0.2 }, 0.972],
  ['with partitions, and a drain as long as the longest request', { partitions: 0.02, drainMs: 20_000 }, 0.956],
  ['with the store flushed', { flushedAtMs: 300_000 }, 0.969],
  ['with the store flushed and 20 % of the replies lost', { flushedAtMs: 300_000, lost: 0.2 }, 0.969],
  [
    'with the store flushed and 20 % of so many replies lost that a client keeps hundreds of calls',
    { refreshMs: 100, flushedAtMs: 150_000, lost: 0.2, lastsMs: 300_000 },
    0.969,
  ],
  [
    'with the store flushed while a replica is cut off, and a drain as long as the longest request',
    flushedWhileCutOff,
    0.936,
  ],
  ['with two workers on each machine', { workers: 2 }, 0.969],
  ['with two workers on each machine and 20 % of the replies lost', { workers: 2, lost: 0.2 }, 0.969],
  [
    'with two workers on each machine, partitions, and a drain as long as the longest request',
    { workers: 2, partitions: 0.02, drainMs: 20_000 },
    0.9,
  ],
  ['with three workers on each machine and the store flushed', { workers: 3, flushedAtMs: 300_000, lost: 0.2 }, 0.969],
  ['with crashes that end their requests', { crashes: 0.01, forgetMs: 0, crashesEndRequests: true }, 0.947],
];

describeWithClient('a shared limit in virtual time', { timeout: 120_000, kind: storeKinds.at(-1) }, (redis) => {
  it.each(bounded)('is never exceeded, and used, %s', async (_name, plan, least) => {
    const { mostOver, timeOver, utilization } = await experiment(redis(), { seed: 7, ...plan });
    expect({ mostOver, timeOver }).toEqual({ mostOver: 0, timeOver: 0 });
    expect(utilization).toBeGreaterThanOrEqual(least);
  });

  it('is exceeded for a time by partitions without a drain, by what the silent replicas hold at most', async () => {
    const { mostOver, timeOver, utilization } = await experiment(redis(), { seed: 7, partitions: 0.02 });
    expect(mostOver).toBeGreaterThan(0);
    expect(mostOver).toBeLessThanOrEqual(20);
    expect(timeOver).toBeLessThan(0.08);
    expect(utilization).toBeGreaterThanOrEqual(0.96);
  });

  it('is exceeded where crashed replicas leave requests behind that no drain covers, and not where it does', async () => {
    const plan = { seed: 7, crashes: 0.06, forgetMs: 0, lastsMs: 300_000 };
    expect((await experiment(redis(), plan)).mostOver).toBeGreaterThan(0);
    expect((await experiment(redis(), { ...plan, drainMs: 20_000 })).mostOver).toBe(0);
  });

  it('is exceeded by the control, which does not hold the cap that a replica may go on with', async () => {
    const { timeOver } = await experiment(redis(), { seed: 7, lost: 0.2, edit: withoutStepFive });
    expect(timeOver).toBeGreaterThan(0.01);
  });

  it('is exceeded by the control, whose store does not learn that a replica is absent', async () => {
    expect(
      (await experiment(redis(), { seed: 7, ...flushedWhileCutOff, edit: withoutMemory })).timeOver,
    ).toBeGreaterThan(0.05);
  });

  it('costs one call for each replica and refresh, however many requests there are', async () => {
    const { storeCalls } = await experiment(redis(), { seed: 7, lastsMs: 120_000 });
    // 6 replicas for 120 s; the rest is what demand that grows asks for at once.
    expect(storeCalls).toBeLessThan(6 * 120 * 1.25);
  });
});
