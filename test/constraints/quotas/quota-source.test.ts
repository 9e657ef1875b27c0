import { describe, expect, it } from 'vitest';
import { GcraWindow } from '../../../src/base/gcra-window.js';
import { type FlowController, quotaDetector } from '../../../src/index.js';
import type { ManualClock } from '../../../src/testing/index.js';
import type { QuotaDetector, QuotaDetectorOptions, QuotaSource, QuotaTerms } from '../../../src/types/index.js';
import { key, leaseOf, makeFlow, turns } from '../../support/flow.js';

/** Windows with as much room as the test says, which remember what happened to them. */
class Source implements QuotaSource {
  readonly asked: QuotaTerms[] = [];
  readonly wanted: number[] = [];
  readonly told: number[] = [];
  retired = 0;
  room = 0;

  window(
    terms: QuotaTerms,
  ): GcraWindow & { isShared: true; wants(amount: number): void; leaves(amount: number): void; retire(): void } {
    this.asked.push(terms);
    const source = this;
    class Window extends GcraWindow {
      readonly isShared = true;
      override roomAtMs(amount: number, nowMs: number): number {
        return amount <= source.room ? nowMs : nowMs + 60_000;
      }
      override take(amount: number, nowMs: number): ReturnType<GcraWindow['take']> {
        source.room -= amount;
        return super.take(amount, nowMs);
      }
      wants(amount: number): void {
        source.wanted.push(amount);
      }
      leaves(amount: number): void {
        source.told.push(amount);
      }
      retire(): void {
        source.retired++;
      }
    }
    return new Window(terms.limit, terms.perMs, terms.burst);
  }
}

function world(options: QuotaDetectorOptions): {
  source: Source;
  detector: QuotaDetector;
  flow: FlowController;
  clock: ManualClock;
} {
  const source = new Source();
  const detector = quotaDetector({ travel: 0, ...options });
  detector.drawFrom(source);
  return { source, detector, ...makeFlow({ constraints: [detector], defaultRequestTtl: 0 }) };
}

const request = { byteSize: 1, tokens: 30 };
const twoQuotas: QuotaDetectorOptions = {
  groups: [
    {
      name: 'account',
      quotas: [
        { unit: 'requests', limit: 60 },
        { unit: 'tokens', limit: 1_000, burst: 100 },
      ],
    },
  ],
};

describe('a source of quotas', () => {
  it('is asked once for each quota, by a key that is the same everywhere', () => {
    const { source, flow } = world(twoQuotas);
    source.room = 1_000;
    leaseOf(flow.tryEnqueue(request, key()));
    leaseOf(flow.tryEnqueue(request, key()));
    expect(source.asked.map(({ key, limit, perMs, burst }) => [key, limit, perMs, burst])).toEqual([
      ['account requests 60000', 60, 60_000, 60],
      ['account tokens 60000', 1_000, 60_000, 100],
    ]);
  });

  it('hears what a request lacks of each quota, and lets it go when it says that there is room', async () => {
    const { source, flow } = world(twoQuotas);
    const outcome = flow.enqueue(request, key());
    await turns();
    expect(source.wanted).toEqual(expect.arrayContaining([1, 30]));
    expect(flow.stats().waiting).toBe(1);
    source.room = 31;
    source.asked[0]?.onRoom();
    leaseOf(await outcome);
    expect(source.room).toBe(0);
  });

  it('hears of what the provider says is left, which is then not counted here', () => {
    const { source, flow } = world(twoQuotas);
    source.room = 1_000;
    const lease = leaseOf(flow.tryEnqueue(request, key()));
    lease.answered({
      status: 200,
      headers: new Headers({ 'x-ratelimit-remaining-tokens': '12', 'x-ratelimit-limit-tokens': '1000' }),
    });
    expect(source.told).toEqual([12]);
  });

  it('does not drop a request for tokens that other processes may give back', async () => {
    const { flow } = world(twoQuotas);
    const outcome = flow.enqueue({ ...request, ttlMs: 1_000 }, key());
    await turns();
    // Of requests nobody gives any back: those are told to come later.
    expect(await outcome).toMatchObject({ type: 'RejectedCapacity' });
    const tokensOnly = world({ groups: [{ quotas: [{ unit: 'tokens', limit: 1_000 }] }] });
    void tokensOnly.flow.enqueue({ ...request, ttlMs: 1_000 }, key());
    await turns();
    expect(tokensOnly.flow.stats().waiting).toBe(1);
  });

  it('has no say in windows that are not gcra, nor in quotas that only answers tell', () => {
    const { source, flow, detector, clock } = world({
      groups: [{ quotas: [{ unit: 'requests', limit: 2, window: 'sliding' }] }],
    });
    leaseOf(flow.tryEnqueue(request, key())).answered({ status: 200, headers: { 'x-ratelimit-limit-tokens': '500' } });
    expect(source.asked).toEqual([]);
    expect(detector.quotas(clock.now()).quotas.map(({ unit, isShared = false }) => [unit, isShared])).toEqual([
      ['requests', false],
      ['tokens', false],
    ]);
  });

  it('is told when its windows are no longer used, and settles what still runs', () => {
    const { source, flow, detector, clock } = world(twoQuotas);
    source.room = 1_000;
    const lease = leaseOf(flow.tryEnqueue(request, key()));
    expect(detector.quotas(clock.now()).quotas.map(({ isShared }) => isShared)).toEqual([true, true]);
    detector.drawFrom(undefined);
    expect(source.retired).toBe(2);
    lease.report({ promptTokens: 5, completionTokens: 5 });
    lease.release();
    leaseOf(flow.tryEnqueue(request, key()));
    expect(source.asked).toHaveLength(2);
    expect(detector.quotas(clock.now()).quotas).toMatchObject([{ reserved: 1 }, { reserved: 30 }]);
  });
});
