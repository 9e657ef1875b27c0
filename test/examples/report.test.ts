import { describe, expect, it } from 'vitest';
import {
  compareFairness,
  percentile,
  type Run,
  renderRun,
  summarize,
  verdict,
} from '../../examples/gateway/report.mjs';
import type { RequestRecord } from '../../examples/gateway/traffic.mjs';

function completed(tenant: string, ttftMs: number): RequestRecord {
  return { tenant, result: 'completed', ttftMs, perTokenMs: 40, waitedMs: ttftMs + 400, tokens: 11 };
}

function run(records: RequestRecord[]): Run {
  return { records, elapsedMs: 10_000, preemptions: 3, recomputedTokens: 100, promptTokens: 300 };
}

/** Ten requests per tenant: premium waits `premiumMs`, and `politeGood` of the polite tenant's are on time. */
function tenRequestsEach(premiumMs: number, politeGood: number): Run {
  const ten = Array.from({ length: 10 }, (_, index) => index);
  return run([
    ...ten.map(() => completed('premium', premiumMs)),
    ...ten.map((index) => completed('polite', index < politeGood ? 500 : 9_000)),
    ...ten.map(() => completed('noisy', 9_000)),
    ...ten.map(() => completed('batch', 900)),
  ]);
}

describe('percentile', () => {
  it('is the smallest value that p percent of all are not above', () => {
    const oneToHundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([50, 95, 99, 100].map((p) => percentile(oneToHundred, p))).toEqual([50, 95, 99, 100]);
    expect([1, 50, 51, 99].map((p) => percentile([20, 10], p))).toEqual([10, 10, 20, 20]);
  });

  it('of one value is that value, and of nothing is NaN', () => {
    expect(percentile([7], 99)).toBe(7);
    expect(percentile([], 50)).toBeNaN();
  });

  it('sorts as numbers and leaves its input alone', () => {
    const values = [100, 9, 20];
    expect(percentile(values, 50)).toBe(20);
    expect(values).toEqual([100, 9, 20]);
  });
});

describe('summarize', () => {
  it('counts as good what completed with its first token within the target', () => {
    const { tenants, good, sent, tokensPerSecond } = summarize(
      run([completed('premium', 1_000), completed('premium', 1_001), completed('polite', 2_000)]),
    );
    expect(tenants[0]).toMatchObject({ id: 'premium', sent: 2, completed: 2, good: 1, perTokenMs: 40 });
    expect([good, sent]).toEqual([2, 3]);
    expect(tokensPerSecond).toBeCloseTo(3.3);
  });

  it('counts waits that were in vain, but not requests that were refused at once', () => {
    const { tenants } = summarize(
      run([
        { tenant: 'premium', result: 'gave up', waitedMs: 10_000, tokens: 0 },
        { tenant: 'premium', result: 'dropped', reason: '503 rejected-ttl-expired', waitedMs: 8_000, tokens: 0 },
        { tenant: 'premium', result: 'dropped', reason: '429 rejected-saturated', waitedMs: 2, tokens: 0 },
      ]),
    );
    expect(tenants[0]?.ttftMs).toEqual([8_000, 10_000, 10_000]);
    expect(tenants[0]?.lost).toEqual({ 'gave up': 1, '503 rejected-ttl-expired': 1, '429 rejected-saturated': 1 });
  });
});

describe('renderRun', () => {
  it('shows every tenant, and each kind of loss on a line of its own', () => {
    const lost: RequestRecord[] = ['429 rejected-saturated', '503 rejected-ttl-expired'].map((reason) => ({
      tenant: 'batch',
      result: 'dropped',
      reason,
      waitedMs: 5,
      tokens: 0,
    }));
    const text = renderRun('TITLE', run([completed('premium', 250), ...lost]));
    expect(text).toMatch(/^ {2}TITLE\n/);
    expect(text).toMatch(/premium +1 +1 +1 \(100%\) +1\.00 s +0\.25 s/);
    expect(text).toMatch(/batch .*1 × 429 rejected-saturated\n +1 × 503 rejected-ttl-expired\n/);
    expect(text).toContain('3 preemptions; 25% of the prefill');
  });
});

describe('verdict', () => {
  it('is good when premium, the polite tenant and the total improve, and says by how much', () => {
    const { isBetter, sentence, failures } = verdict(tenRequestsEach(8_000, 2), tenRequestsEach(400, 10));
    expect([isBetter, failures]).toEqual([true, []]);
    expect(sentence).toContain('from 8.00 s to 0.40 s');
    expect(sentence).toContain('100% of its requests answered on time instead of 20%');
    expect(sentence).toContain('together 30 instead of 12');
    expect(sentence).toContain('who paid for it: nobody');
  });

  it('is bad when nothing changed, and names each margin that was missed', () => {
    const { isBetter, failures } = verdict(tenRequestsEach(800, 5), tenRequestsEach(800, 5));
    expect(isBetter).toBe(false);
    expect(failures).toHaveLength(2);
  });

  it('is bad when the total falls, even if premium and the polite tenant gain', () => {
    const sacrificed = tenRequestsEach(400, 5);
    const records = sacrificed.records.filter(({ tenant }) => tenant !== 'batch');
    const { failures } = verdict(tenRequestsEach(900, 2), { ...sacrificed, records });
    expect(failures).toEqual([expect.stringContaining('the total on time must not fall: 22 became 15')]);
  });

  it('is bad when there is nothing to compare', () => {
    expect(verdict(run([]), run([])).isBetter).toBe(false);
  });
});

describe('compareFairness', () => {
  it('says what sharing by tokens changed for the tenants of one band', () => {
    expect(compareFairness(tenRequestsEach(1_000, 3), tenRequestsEach(1_000, 8))).toBe(
      'Sharing a band by tokens instead of by turns (round robin): polite had 80% on time instead of 30% (TTFT p95 9.00 s instead of 9.00 s), ' +
        'noisy had 0% on time instead of 0% (TTFT p95 9.00 s instead of 9.00 s).',
    );
  });
});
