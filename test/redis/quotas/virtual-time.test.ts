/**
 * One provider's quota and several replicas, in virtual time: what the provider counts never exceeds the quota, and the
 * quota is used.
 */
import { expect, it } from 'vitest';
import { describeWithClient } from '../support/with-store.js';
import { type Findings, mostOver, type Plan, play, type Sent } from './quota-world.js';

const rpm = { unit: 'requests' as const, limit: 600, per: 60_000, burst: 60 };
const tpm = { unit: 'tokens' as const, limit: 600_000, per: 60_000, burst: 100_000 };
const tokens = (random: number): number => 200 + Math.round(1_600 * random);
const usual: Plan = { seed: 1, replicas: 4, quotas: [rpm, tpm], load: 1.5, lastsMs: 120_000, tokens };

const amountOf =
  ({ unit }: Plan['quotas'][number]) =>
  ({ consumed }: Sent): number =>
    unit === 'requests' ? 1 : consumed;

/** By how much replicas together went over each quota. */
function over({ quotas }: Plan, { sent }: Findings): number[] {
  return quotas.map((quota) => Math.round(mostOver(sent, quota, amountOf(quota)) * 1e6) / 1e6);
}

/** The part of the first quota that was used. */
function use({ quotas: [quota = rpm], lastsMs }: Plan, { sent }: Findings): number {
  const total = sent.reduce((sum, one) => sum + amountOf(quota)(one), 0);
  return total / ((quota.burst ?? quota.limit) + (quota.limit / quota.per) * lastsMs);
}

describeWithClient('a quota that replicas share', { timeout: 180_000 }, (redis) => {
  it('is one quota for four replicas that ask for half too much, and is used up', async () => {
    const found = await play(redis(), usual);
    expect(over(usual, found)).toEqual([0, 0]);
    expect(use(usual, found)).toBeGreaterThan(0.95);
  });

  it('is four quotas where each replica has it for itself: the control', async () => {
    const found = await play(redis(), { ...usual, isAlone: true });
    expect(over(usual, found)[0]).toBeGreaterThan(2 * rpm.burst);
  });

  it('holds for twelve replicas, and where a few requests fit at a time', async () => {
    for (const extra of [{ replicas: 12 }, { quotas: [{ ...rpm, limit: 20, burst: 5 }], lastsMs: 300_000 }]) {
      const plan = { ...usual, ...extra };
      const found = await play(redis(), plan);
      expect(Math.max(...over(plan, found))).toBe(0);
      expect(use(plan, found)).toBeGreaterThan(0.95);
    }
  });

  it('lets nine of ten requests go at once while there is room, and a hundredth of them wait for more than 10 ms at most', async () => {
    const plan = { ...usual, load: 0.3 };
    const waits = [...(await play(redis(), plan)).waits].sort((a, b) => a - b);
    expect(waits.filter((ms) => ms === 0).length / waits.length).toBeGreaterThan(0.9);
    expect(waits[Math.floor(waits.length * 0.99)]).toBeLessThan(10);
  });

  it('gets back what requests reserved and did not use', async () => {
    const plan = { ...usual, quotas: [tpm], load: 2.6, consumes: (random: number) => 0.3 + 0.2 * random };
    const found = await play(redis(), plan);
    expect(over(plan, found)).toEqual([0]);
    // Of what is reserved four tenths are used: without refunds the quota would be used to that part.
    expect(use(plan, found)).toBeGreaterThan(0.85);
  });

  it('is not exceeded by requests that are larger than all chunks, and these wait no longer than others', async () => {
    for (const [load, part] of [
      [1.2, 0.01],
      [1.5, 0.5],
    ] as const) {
      const large = 60_000;
      const sizes = (random: number): number => (random < part ? large : tokens(random));
      const plan = { ...usual, quotas: [tpm], load, tokens: sizes };
      const found = await play(redis(), plan);
      expect(over(plan, found)).toEqual([0]);
      expect(use(plan, found)).toBeGreaterThan(0.9);
      const longest = (isLarge: boolean): number =>
        Math.max(...found.waits.filter((_, at) => (found.sent[at]!.tokens === large) === isLarge));
      expect(longest(true)).toBeLessThan(1.5 * longest(false) + 10_000);
    }
  });

  it('is asked for by each replica at most ten times in a refresh, whatever the rate of requests', async () => {
    const slow = await play(redis(), usual);
    const fast = await play(redis(), { ...usual, load: 15, lastsMs: 60_000 });
    const callsPerSecond = ({ storeCalls }: Findings, { lastsMs, replicas, quotas }: Plan): number =>
      storeCalls / (lastsMs / 1_000) / replicas / quotas.length;
    expect(callsPerSecond(slow, usual)).toBeLessThan(10);
    expect(callsPerSecond(fast, { ...usual, lastsMs: 60_000 })).toBeLessThan(10);
  });

  it('is not exceeded by replies that get lost', async () => {
    const plan = { ...usual, lost: 0.2 };
    const found = await play(redis(), plan);
    expect(over(plan, found)).toEqual([0, 0]);
    expect(found.sent.length).toBeGreaterThan(300);
  });

  it('is not exceeded while the store is away nor after, and is used meanwhile', async () => {
    for (const load of [0.7, 1.5]) {
      const away = [40_000, 70_000] as const;
      const plan = { ...usual, load, away };
      const found = await play(redis(), plan);
      expect(over(plan, found)).toEqual([0, 0]);
      const meanwhile = found.sent.filter(({ atMs }) => atMs >= away[0] && atMs < away[1]).length;
      expect(meanwhile).toBeGreaterThan(0.5 * 300 * Math.min(load, 1));
      expect(found.replicas.flatMap(({ shared }) => shared.status.map(({ isLocal }) => isLocal))).not.toContain(true);
    }
  });

  it('is put in again after the store has lost everything', async () => {
    for (const load of [0.9, 1.5]) {
      const plan = { ...usual, load, flushedAtMs: 50_000 };
      const found = await play(redis(), plan);
      // Whoever asks first finds an empty bucket, and tells of it with the next call.
      const [requests = 0, spent = 0] = over(plan, found);
      expect(requests).toBeLessThanOrEqual(rpm.burst / 4);
      expect(spent).toBeLessThanOrEqual(tpm.burst / 4);
    }
  });
});
