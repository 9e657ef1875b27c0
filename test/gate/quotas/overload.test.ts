/**
 * Three times the quota of a provider, on a manual clock: what a real one would see minute by minute, without a machine's noise. Requests
 * arrive at the provider up to 200 ms after they were sent.
 */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { type Drop, type Lease, type QuotaOptions, quotaDetector } from '../../../src/index.js';
import { makeFlow, turns } from '../../support/flow.js';

const minuteMs = 60_000;
const minutes = 6;
const clients = 50;
const limit = 60;
const priorities = [100, 0, -10] as const;

interface Sent {
  readonly countedAtMs: number;
  readonly priority: number;
}

async function overload(quota: Omit<QuotaOptions, 'unit' | 'limit'>) {
  const { flow, clock } = makeFlow({
    saturationDetector: quotaDetector({ groups: [{ quotas: [{ unit: 'requests', limit, ...quota }] }] }),
    defaultRequestTtl: 10 * minuteMs,
  });
  const random = seededRandom(7);
  const sent: Sent[] = [];
  const drops: Drop[] = [];
  const running: { readonly lease: Lease; readonly endsAtMs: number }[] = [];
  let overtaken = 0;
  flow.on('dispatched', ({ lease }) => {
    const isBehindPremium =
      lease.priority < 100 && flow.figures().bands.some(({ priority, waiting }) => priority > lease.priority && waiting > 0);
    if (isBehindPremium) overtaken++;
    sent.push({ countedAtMs: clock.now() + random() * 200, priority: lease.priority });
    running.push({ lease, endsAtMs: clock.now() + 300 });
  });
  const ask = (client: number): void => {
    const priority = priorities[client % 3] as number;
    void flow.enqueue({ byteSize: 1 }, { fairnessId: `client-${client}`, priority }).then((outcome) => {
      if (outcome.type !== 'Dispatched') drops.push(outcome);
    });
  };
  // Three requests a second where one goes, and fifty waiting from the beginning.
  for (let client = 0; client < clients; client++) ask(client);
  for (let nowMs = 0; nowMs < minutes * minuteMs; nowMs += 50) {
    clock.advance(50);
    if (nowMs % 1000 < 150) ask(Math.floor(random() * clients));
    while ((running[0]?.endsAtMs ?? Number.POSITIVE_INFINITY) <= clock.now()) {
      const { lease } = running.shift() as (typeof running)[number];
      lease.answered({ status: 200, headers: {} });
      lease.release();
    }
    await turns(3);
  }
  return { sent: sent.sort((a, b) => a.countedAtMs - b.countedAtMs), drops, overtaken };
}

/** The most that a provider counts in any span of a minute. */
function mostInAMinute(sent: readonly Sent[]): number {
  let most = 0;
  for (let last = 0, first = 0; last < sent.length; last++) {
    while ((sent[last] as Sent).countedAtMs - (sent[first] as Sent).countedAtMs >= minuteMs) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

describe('at three times a quota', () => {
  it('sliding windows are never exceeded, and at least 97 % of them is used', async () => {
    const { sent, drops } = await overload({ window: 'sliding' });
    expect(mostInAMinute(sent)).toBeLessThanOrEqual(limit);
    expect(sent.length).toBeGreaterThanOrEqual(0.97 * limit * minutes);
    expect(drops).toEqual([]);
  });

  it('a token bucket is never overdrawn, and at least 97 % of it is used', async () => {
    const { sent, drops } = await overload({});
    let level = 0;
    let beforeMs = 0;
    for (const { countedAtMs } of sent) {
      level = Math.max(level - ((countedAtMs - beforeMs) * limit) / minuteMs, 0) + 1;
      beforeMs = countedAtMs;
      expect(level).toBeLessThanOrEqual(limit + 1e-9);
    }
    expect(sent.length).toBeGreaterThanOrEqual(0.97 * limit * (minutes + 1));
    expect(drops).toEqual([]);
  });

  it('nothing of a lower priority goes while one of a higher waits', async () => {
    const { sent, overtaken } = await overload({ window: 'sliding' });
    expect(overtaken).toBe(0);
    expect(sent.filter(({ priority }) => priority === 100).length).toBeGreaterThan(limit);
  });
});
