/**
 * Three times the quota of a provider, on a manual clock: what a real one would see minute by minute, without a
 * machine's noise. Requests arrive at the provider up to 200 ms after they were sent.
 */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { type Lease, type Outcome, quotaDetector } from '../../../src/index.js';
import type { QuotaOptions } from '../../../src/types/index.js';
import { makeFlow, turns } from '../../support/flow.js';
import {
  type Sent as Dispatch,
  type Dropped,
  dispatchesLate,
  expectNobodyDroppedInVain,
} from '../../support/overload.js';

const minuteMs = 60_000;
const minutes = 6;
const clients = 50;
const limit = 60;
const priorities = [100, 0, -10] as const;

interface Sent extends Dispatch {
  readonly countedAtMs: number;
}

const ttlMs = 10 * minuteMs;

async function overload(quota: Omit<QuotaOptions, 'unit' | 'limit'>, defaultRequestTtl = ttlMs) {
  const { flow, clock } = makeFlow({
    constraints: [quotaDetector({ groups: [{ quotas: [{ unit: 'requests', limit, ...quota }] }] })],
    defaultRequestTtl,
  });
  const random = seededRandom(7);
  const sent: Sent[] = [];
  const dropped: Dropped[] = [];
  const premiumCameAtMs: number[] = [];
  const running: { readonly lease: Lease; readonly endsAtMs: number }[] = [];
  let overtaken = 0;
  flow.on('dispatched', ({ lease }) => {
    const isBehindPremium =
      lease.priority < 100 &&
      flow.figures().bands.some(({ priority, waiting }) => priority > lease.priority && waiting > 0);
    if (isBehindPremium) overtaken++;
    const atMs = clock.now();
    sent.push({ atMs, countedAtMs: atMs + random() * 200, priority: lease.priority });
    running.push({ lease, endsAtMs: atMs + 300 });
  });
  const ask = (client: number): void => {
    const priority = priorities[client % 3] as number;
    const cameAtMs = clock.now();
    if (priority === 100) premiumCameAtMs.push(cameAtMs);
    void flow.enqueue({ byteSize: 1 }, { fairnessId: `client-${client}`, priority }).then((outcome) => {
      if (outcome.type !== 'Dispatched') dropped.push({ drop: outcome, cameAtMs, atMs: clock.now() });
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
  const drops = dropped.map(({ drop }) => drop);
  return {
    sent,
    counted: [...sent].sort((a, b) => a.countedAtMs - b.countedAtMs),
    drops,
    dropped,
    overtaken,
    premiumCameAtMs,
  };
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

const shortTtlMs = 20_000;

describe('at three times a quota', () => {
  it('sliding windows are never exceeded, and at least 97 % of them is used', async () => {
    const { sent, counted, drops } = await overload({ window: 'sliding' });
    expect(mostInAMinute(counted)).toBeLessThanOrEqual(limit);
    expect(sent.length).toBeGreaterThanOrEqual(0.97 * limit * minutes);
    expect(drops).toEqual([]);
  });

  it('a token bucket is never overdrawn, and at least 97 % of it is used', async () => {
    const { sent, counted, drops } = await overload({});
    let level = 0;
    let beforeMs = 0;
    for (const { countedAtMs } of counted) {
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

  it.each(['gcra', 'fixed', 'sliding'] as const)(
    'premium waits at most one dispatch longer than at best: %s',
    async (window) => {
      const { sent, premiumCameAtMs } = await overload({ window });
      const late = dispatchesLate(sent, premiumCameAtMs);
      expect(late.length).toBeGreaterThan(limit);
      expect(Math.max(...late)).toBeLessThanOrEqual(1);
    },
  );

  it.each(['gcra', 'fixed', 'sliding'] as const)(
    'nobody is dropped whose turn comes within its time to live: %s',
    async (window) => {
      const { sent, dropped } = await overload({ window }, shortTtlMs);
      expect(dropped.length).toBeGreaterThan(limit);
      expectNobodyDroppedInVain({ sent, dropped }, shortTtlMs);
    },
  );

  it('whoever cannot be served in time is told at once, with the time at which there is room', async () => {
    const { sent, dropped } = await overload({ window: 'fixed' }, shortTtlMs);
    const told = dropped.filter(({ drop }) => drop.reason === 'over-quota');
    expect(told.length).toBeGreaterThan(limit);
    for (const { drop, cameAtMs, atMs } of told) expect([drop.type, atMs]).toEqual(['RejectedCapacity', cameAtMs]);
    for (const { drop, atMs } of told) {
      const roomAtMs = atMs + (drop.retryAfterMs as number);
      expect(roomAtMs > minutes * minuteMs || sent.some((each) => Math.abs(each.atMs - roomAtMs) <= 1000)).toBe(true);
    }
  });
});

/** A provider with fixed windows that tells its quota in headers, and nothing of it is configured. */
async function overloadLearnt(seed: number) {
  const { flow, clock } = makeFlow({
    constraints: [quotaDetector({ random: () => 0 })],
    defaultRequestTtl: ttlMs,
  });
  const random = seededRandom(seed);
  const accepted = [0];
  const refused = [0];
  let endsAtMs = 0;
  interface Sending {
    readonly lease: Lease;
    readonly countedAtMs: number;
    status: number;
    headers: Record<string, string>;
  }
  let sending: Sending[] = [];
  let waiting: Sending[] = [];
  const send = (outcome: Outcome): void => {
    if (outcome.type !== 'Dispatched') throw new Error(`expected a dispatch, got ${outcome.reason}`);
    sending.push({ lease: outcome.lease, countedAtMs: clock.now() + random() * 200, status: 0, headers: {} });
  };
  const arrive = (request: Sending): void => {
    if (clock.now() >= endsAtMs) {
      endsAtMs = clock.now() + minuteMs;
      accepted.push(0);
      refused.push(0);
    }
    const window = accepted.length - 1;
    const isFull = (accepted[window] as number) >= limit;
    if (isFull) (refused[window] as number)++;
    else (accepted[window] as number)++;
    const resetIn = (endsAtMs - clock.now()) / 1000;
    request.status = isFull ? 429 : 200;
    request.headers = {
      'x-ratelimit-limit-requests': String(limit),
      'x-ratelimit-remaining-requests': String(limit - (accepted[window] as number)),
      'x-ratelimit-reset-requests': `${resetIn}s`,
      ...(isFull && { 'retry-after-ms': String(Math.ceil(resetIn * 1000)) }),
    };
    waiting.push(request);
  };
  const ask = (client: number): void => {
    const priority = priorities[client % 3] as number;
    void flow.enqueue({ byteSize: 1 }, { fairnessId: `client-${client}`, priority }).then(send);
  };
  for (let client = 0; client < clients; client++) ask(client);
  for (let nowMs = 0; nowMs < minutes * minuteMs; nowMs += 50) {
    clock.advance(50);
    if (nowMs % 1000 < 150) ask(Math.floor(random() * clients));
    for (const request of sending.filter(({ countedAtMs }) => countedAtMs <= clock.now())) arrive(request);
    sending = sending.filter(({ countedAtMs }) => countedAtMs > clock.now());
    for (const { lease, status, headers } of waiting.filter(({ countedAtMs }) => countedAtMs + 300 <= clock.now())) {
      lease.answered({ status, headers });
      if (status === 429) void lease.requeue().then(send);
      else lease.release();
    }
    waiting = waiting.filter(({ countedAtMs }) => countedAtMs + 300 > clock.now());
    await turns(4);
  }
  // The first entry stands for no window.
  return { accepted: accepted.slice(1), refused: refused.slice(1) };
}

describe('at three times a quota that only answers tell', () => {
  it.each([1, 2, 3, 4, 5])('there is one 429 a window at most, and at least 97 % is used: seed %i', async (seed) => {
    const { accepted, refused } = await overloadLearnt(seed);
    expect(Math.max(...refused)).toBeLessThanOrEqual(1);
    const total = accepted.reduce((sum, each) => sum + each, 0);
    expect(total).toBeGreaterThanOrEqual(0.97 * limit * minutes);
  });
});
