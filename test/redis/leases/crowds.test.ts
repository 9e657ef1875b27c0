/**
 * Many replicas on a real store in virtual time. `HEADGATE_CROWD=1000x100 npx vitest run test/redis/leases/crowds` for so
 * many replicas and endpoints; the figures of the page are from there.
 */
import { expect, it } from 'vitest';
import { crowd } from '../support/crowd.js';
import { describeWithClient } from '../support/with-store.js';

const [replicas = 100, endpoints = 20] = (process.env.HEADGATE_CROWD ?? '100x20').split('x').map(Number);

describeWithClient('a crowd of replicas', { timeout: 1_200_000 }, (redis) => {
  it('keeps the limit of each of many endpoints, and costs the store a part of a core', async () => {
    const finding = await crowd(redis(), {
      seed: 7,
      replicas,
      endpoints,
      limit: 256,
      demand: (replica) => Math.ceil((256 * endpoints * 1.4 * (replica % 10)) / (4.5 * replicas)),
      warmUpMs: 10_000,
      lastsMs: 10_000,
    });
    const { served, ...figures } = finding;
    process.stderr.write(`${replicas} replicas, ${endpoints} endpoints: ${JSON.stringify(figures)}\n`);
    expect(finding.mostOver).toBeLessThanOrEqual(0);
    expect(finding.utilization).toBeGreaterThan(0.9);
    expect(served.filter((requests, replica) => replica % 10 > 0 && requests === 0)).toEqual([]);
    expect(finding.callsPerSecond).toBeLessThan(1.5 * replicas);
  });

  it('as large as the limit leaves nine tenths of it to the one that is hungry', async () => {
    const plan = { seed: 7, replicas: 64, endpoints: 1, limit: 64, warmUpMs: 15_000, lastsMs: 60_000 };
    const { mostOver, utilization } = await crowd(redis(), { ...plan, demand: (replica) => (replica === 0 ? 100 : 0) });
    expect(mostOver).toBeLessThanOrEqual(0);
    expect(utilization).toBeGreaterThanOrEqual(0.9);
  });

  it('larger than the limit takes turns: everybody is served', async () => {
    const plan = { seed: 7, replicas: 24, endpoints: 1, limit: 8, warmUpMs: 10_000, lastsMs: 110_000 };
    const { mostOver, utilization, served } = await crowd(redis(), { ...plan, demand: () => 4 });
    expect(mostOver).toBeLessThanOrEqual(0);
    expect(Math.min(...served)).toBeGreaterThan(0);
    expect(utilization).toBeGreaterThan(0.7);
  });
});
