import { describe, expect, it } from 'vitest';
import { burst } from '../../examples/gateway/burst.mjs';
import {
  auditBooks,
  type EvictionRun,
  endsOf,
  evictionVerdict,
  renderEviction,
} from '../../examples/gateway/eviction-report.mjs';
import type { RequestRecord } from '../../examples/gateway/traffic.mjs';
import { FlowController, type FlowStats } from '../../src/index.js';

const idleStats = new FlowController({ saturationDetector: () => 0 }).stats();

function completed(tenant: string, ttftMs: number): RequestRecord {
  return { tenant, result: 'completed', ttftMs, perTokenMs: 20, waitedMs: ttftMs + 400, tokens: 50 };
}

const cutShort: RequestRecord = { tenant: 'batch', result: 'cut short', ttftMs: 100, waitedMs: 900, tokens: 40 };
const toldToLeave: RequestRecord = {
  tenant: 'batch',
  result: 'dropped',
  reason: '429 evicted-priority',
  waitedMs: 900,
  tokens: 0,
};
const expired: RequestRecord = {
  tenant: 'batch',
  result: 'dropped',
  reason: '503 rejected-ttl-expired',
  waitedMs: 8_000,
  tokens: 0,
};
const gaveUp: RequestRecord = { tenant: 'batch', result: 'gave up', waitedMs: 8_000, tokens: 0 };

/** A run whose gateway counted what the clients saw, except for `differences`. */
function run(records: RequestRecord[], differences: Partial<FlowStats> = {}, left = 0): EvictionRun {
  const { sent, completed, evicted, dropped } = endsOf(records);
  const seated = completed + evicted;
  const stats = {
    ...idleStats,
    enqueued: sent,
    dispatched: seated,
    released: seated,
    evicted: dropped,
    evictedInFlight: evicted,
  };
  return { records, stats: { ...stats, ...differences }, left, total: () => evicted };
}

const off = run([
  completed('premium', 3_000),
  completed('premium', 4_000),
  completed('batch', 90),
  completed('batch', 90),
  expired,
]);
const on = run([completed('premium', 80), completed('premium', 100), completed('batch', 90), cutShort, toldToLeave]);

describe('endsOf', () => {
  it('counts a broken stream and a 429 for eviction as evicted, other refusals as dropped, and the rest as lost', () => {
    const unfinished: RequestRecord = { ...gaveUp, result: 'unfinished' };
    const failed: RequestRecord = { ...gaveUp, result: 'failed', reason: '502 without a reason' };
    const records = [completed('premium', 80), cutShort, toldToLeave, expired, gaveUp, unfinished, failed];
    expect(endsOf(records)).toEqual({ sent: 7, completed: 1, evicted: 2, dropped: 1, lost: 3 });
  });
});

describe('auditBooks', () => {
  it('finds nothing when clients and gateway agree', () => {
    expect([auditBooks(off), auditBooks(on)]).toEqual([[], []]);
  });

  it('finds requests that ended in no known way', () => {
    expect(auditBooks(run([...on.records, gaveUp]))).toEqual([
      'sent = completed + evicted + dropped: expected 6; got 5',
      'requests lost: expected 0; got 1',
    ]);
  });

  it('finds a seat that did not come back, one given back twice, and work left behind', () => {
    expect(auditBooks(run([...on.records], { released: 4 }))).toEqual(['seats given back: expected 5; got 4']);
    expect(auditBooks(run([...on.records], { released: 6 }))).toEqual(['seats given back: expected 5; got 6']);
    expect(auditBooks(run([...on.records], {}, 2))).toEqual([expect.stringContaining('left behind')]);
  });

  it('finds requests that the gateway counted otherwise than the clients', () => {
    expect(auditBooks(run([...on.records], { enqueued: 6, evicted: 1 }))).toHaveLength(2);
    expect(auditBooks({ ...on, stats: undefined })).toEqual(['the gateway ran without flow control']);
  });

  it('finds streams that broke without an eviction, yet lets an evicted request complete', () => {
    expect(auditBooks(run([...on.records], { evictedInFlight: 1 }))).toEqual([
      'answers broken off: 2; the gateway evicted only 1',
    ]);
    expect(auditBooks(run([...on.records], { evictedInFlight: 3 }))).toEqual([]);
  });
});

describe('evictionVerdict', () => {
  it('is good when premium waits half as long at most, and says what it cost', () => {
    const { isGood, sentence, failures } = evictionVerdict(off, on);
    expect([isGood, failures]).toEqual([true, []]);
    expect(sentence).toContain('from 4.00 s to 0.10 s; the gateway evicted 2 of 3 best-effort requests');
    expect(sentence).toContain('stopped computing 2, and 40 tokens');
    expect(sentence).toContain('every seat is free again');
  });

  it('is bad when premium waits as long as before, or when nobody was evicted', () => {
    const slow = run([completed('premium', 3_000), completed('premium', 2_001), completed('batch', 90)]);
    expect(evictionVerdict(off, slow).failures).toEqual([
      "premium's TTFT p95 had to halve at least: 4.00 s became 3.00 s",
      'somebody had to be evicted while eviction is on: nobody was',
    ]);
  });

  it('is bad when somebody is evicted while eviction is off', () => {
    const { failures } = evictionVerdict(run([...off.records, cutShort]), on);
    expect(failures).toEqual(['nobody may be evicted while eviction is off: 1 were']);
  });

  it('is bad when premium lost a request', () => {
    const { failures } = evictionVerdict(off, run([...on.records, { ...cutShort, tenant: 'premium' }]));
    expect(failures).toEqual(['all of premium had to complete with eviction on: 2 of 3 did']);
  });

  it('is bad when the books of either run do not balance, and does not claim that they do', () => {
    const { isGood, sentence, failures } = evictionVerdict(
      run([...off.records], { released: 3 }),
      run([...on.records, gaveUp]),
    );
    expect(isGood).toBe(false);
    expect(sentence).toContain('the books do not balance');
    expect(failures).toEqual([
      'eviction off, the books: seats given back: expected 4; got 3',
      expect.stringMatching(/^eviction on, the books: sent/),
      expect.stringMatching(/^eviction on, the books: requests lost/),
    ]);
  });

  it('is bad when there is nothing to compare', () => {
    expect(evictionVerdict(run([]), run([])).isGood).toBe(false);
  });
});

describe('renderEviction', () => {
  it('shows a line for each run', () => {
    const lines = renderEviction(off, on).split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[2]).toMatch(/^ {2}off +3\.00 s +4\.00 s +4\.00 s +3 +2 +0 +1 +0$/);
    expect(lines[3]).toMatch(/^ {2}on +0\.08 s +0\.10 s +0\.10 s +3 +1 +2 +0 +2$/);
  });
});

describe('burst', () => {
  it('fills the 45 seats with long best-effort requests before premium comes', () => {
    const arrivals = burst(7);
    const batch = arrivals.filter(({ tenant }) => tenant.objective === 'best-effort-traffic');
    const premium = arrivals.filter(({ tenant }) => tenant.objective === 'premium-traffic');
    expect(batch.length).toBeGreaterThan(45);
    expect(premium.length).toBeGreaterThan(0);
    expect(batch.length + premium.length).toBe(arrivals.length);
    expect(Math.max(...batch.map(({ atMs }) => atMs))).toBeLessThan(Math.min(...premium.map(({ atMs }) => atMs)));
    expect(Math.min(...batch.map(({ outputTokens }) => outputTokens))).toBeGreaterThan(150);
  });

  it('is the same for the same seed, and comes in order of time', () => {
    expect(burst(3)).toEqual(burst(3));
    expect(burst(3)).not.toEqual(burst(4));
    const times = burst(3).map(({ atMs }) => atMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
});
