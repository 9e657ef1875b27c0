import { describe, expect, it } from 'vitest';
import { concurrencyDetector, FlowController, inFlightEviction, type Lease, noByteSent } from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { turns } from '../support/flow.js';

async function running(count: number, filter = noByteSent()) {
  const faults: string[] = [];
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: count }),
    eviction: inFlightEviction({ filter, maxPerDecision: count }),
    clock: new ManualClock(),
  });
  flow.on('pluginError', ({ error }) => faults.push(String(error)));
  const leases: Lease[] = [];
  flow.on('dispatched', ({ lease }) => void leases.push(lease));
  for (let i = 0; i < count; i++) await flow.enqueue({ byteSize: 1 }, { fairnessId: `f${i}`, priority: i });
  const urgent = async (): Promise<boolean[]> => {
    void flow.enqueue({ byteSize: 1 }, { fairnessId: 'urgent', priority: 100 });
    await turns();
    return leases.slice(0, count).map(({ isEvicted }) => isEvicted);
  };
  return { flow, leases, urgent, faults };
}

describe('noByteSent', () => {
  it('takes the lowest request of any priority while nothing was sent', async () => {
    const { urgent } = await running(3);
    expect(await urgent()).toEqual([true, false, false]);
  });

  it.each<[what: string, tell: (lease: Lease) => void]>([
    ['its head came', (lease) => lease.answered({ status: 200, headers: {} })],
    ['its first token was reported', (lease) => lease.report({ completionTokens: 1 })],
  ])('spares a request from the moment on that %s, and takes the next', async (_, tell) => {
    const { leases, urgent } = await running(3);
    tell(leases[0]!);
    expect(await urgent()).toEqual([false, true, false]);
  });

  it('still takes a request that only told of its prompt', async () => {
    const { leases, urgent } = await running(1);
    leases[0]!.report({ promptTokens: 100 });
    expect(await urgent()).toEqual([true]);
  });

  it('lets the urgent request wait for a release when all have sent something', async () => {
    const { flow, leases, urgent } = await running(2);
    for (const lease of leases) lease.answered({ status: 200, headers: {} });
    expect(await urgent()).toEqual([false, false]);
    expect(flow.stats().waiting).toBe(1);
    leases[0]!.release();
    await turns();
    expect(flow.stats().waiting).toBe(0);
  });
});

describe('the second question of a filter', () => {
  it('is put once to a request that it answers with no', async () => {
    let asked = 0;
    const { urgent } = await running(2, { type: 'counts', accepts: () => true, stillAccepts: () => ++asked < 0 });
    expect(await urgent()).toEqual([false, false]);
    await urgent();
    expect(asked).toBe(2);
  });

  it('counts as no where it fails, which is reported', async () => {
    const stillAccepts = (): never => {
      throw new Error('broken');
    };
    const { urgent, faults } = await running(1, { type: 'odd', accepts: () => true, stillAccepts });
    expect(await urgent()).toEqual([false]);
    expect(faults).toEqual(['Error: broken']);
  });
});
