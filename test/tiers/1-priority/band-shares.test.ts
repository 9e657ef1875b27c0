import { describe, expect, it } from 'vitest';
import { concurrencyDetector, inFlightEviction, type Lease } from '../../../src/index.js';
import { BandShares } from '../../../src/tiers/1-priority/band-shares.js';
import type { PriorityBand } from '../../../src/tiers/priority-band.js';
import { Random } from '../../property/random.js';
import { fakeItem } from '../../support/fake-item.js';
import { key, leaseOf, makeFlow, turns } from '../../support/flow.js';

interface FakeBand {
  readonly priority: number;
  readonly settings: { readonly minShare: number };
  backlog: number;
  readonly waiting: number;
  policies: { selector: { keepsAccount: boolean } };
}

/** Serves one request after the other under strict priority and shares; tells who went, and checks nothing. */
function serve(shares: BandShares, bands: readonly FakeBand[], tokens = 0): FakeBand | undefined {
  const waiting = bands.filter(({ backlog }) => backlog > 0) as unknown as PriorityBand[];
  const band = shares.due(waiting) ?? waiting[0];
  if (band === undefined) return undefined;
  const served = band as unknown as FakeBand;
  served.backlog--;
  if (served.backlog === 0) shares.emptied(band);
  shares.dispatched(
    band,
    waiting.filter((other) => (other as unknown as FakeBand).backlog > 0),
    fakeItem({ tokens }),
  );
  return served;
}

function make(minShares: readonly number[], unit?: 'tokens'): { bands: FakeBand[]; shares: BandShares } {
  const bands = minShares.map((minShare, i) => ({
    priority: 100 - i,
    settings: { minShare },
    backlog: 0,
    policies: { selector: { keepsAccount: false } },
    get waiting() {
      return this.backlog;
    },
  }));
  const shares = new BandShares();
  shares.configure(bands as unknown as PriorityBand[], unit);
  return { bands, shares };
}

describe('BandShares', () => {
  it.each([
    [[0, 0.1]],
    [[0, 0.3, 0.2]],
    [[0.4, 0.3, 0.2]],
    [[0, 0.05, 0, 0.5, 0.05]],
    [[0.19, 0.19, 0.19, 0.19, 0.19]],
  ])('gives every band of %j at least its part, within the bound, while all keep waiting', (minShares) => {
    const { bands, shares } = make(minShares);
    for (const band of bands) band.backlog = 1e6;
    const counts = new Map<FakeBand, number>(bands.map((band) => [band, 0]));
    const sharing = minShares.filter((share) => share > 0).length;
    const tooFew: string[] = [];
    for (let n = 1; n <= 3000; n++) {
      const served = serve(shares, bands) as FakeBand;
      counts.set(served, (counts.get(served) ?? 0) + 1);
      for (const band of bands) {
        const { minShare } = band.settings;
        const least = minShare * n - (2 + minShare * sharing);
        if (minShare > 0 && (counts.get(band) ?? 0) < least) tooFew.push(`${counts.get(band)} of ${n} for ${minShare}`);
      }
    }
    expect(tooFew).toEqual([]);
    // What nobody is owed goes to the highest.
    const [highest] = bands as [FakeBand];
    const owed = minShares.slice(1).reduce((sum, share) => sum + share, 0);
    expect(counts.get(highest)).toBeGreaterThan((1 - owed) * 3000 - 2 * bands.length);
  });

  it.each([undefined, 'tokens'] as const)(
    'keeps the bound over every stretch in which a band waits, however the others come and go (%s)',
    (unit) => {
      const tooFew: string[] = [];
      const largest = unit === 'tokens' ? 100 : 1;
      for (let seed = 0; seed < 40; seed++) {
        const random = new Random(seed);
        const minShares = Array.from({ length: 2 + random.int(4) }, () =>
          random.chance(0.7) ? random.next() * 0.24 : 0,
        );
        const { bands, shares } = make(minShares, unit);
        const sharing = minShares.filter((share) => share > 0).length;
        /** Cost that went since the band began to wait, and how much of it was its own. */
        const stretch = bands.map(() => ({ all: 0, own: 0 }));
        for (let step = 0; step < 800; step++) {
          for (const [i, band] of bands.entries()) {
            if (random.chance(band.backlog === 0 ? 0.1 : 0.4)) {
              if (band.backlog === 0) stretch[i] = { all: 0, own: 0 };
              band.backlog += 1 + random.int(random.chance(0.05) ? 60 : 2);
            }
          }
          const cost = unit === 'tokens' ? random.pick([1, 2, 5, 10, 50, 100]) : 1;
          const served = serve(shares, bands, cost);
          for (const [i, band] of bands.entries()) {
            const { minShare } = band.settings;
            const counted = stretch[i] as { all: number; own: number };
            if (served === undefined || minShare === 0) continue;
            counted.all += cost;
            if (served === band) counted.own += cost;
            if (band.backlog > 0) {
              const least = minShare * counted.all - (2 + minShare * sharing) * largest;
              if (counted.own < least)
                tooFew.push(`seed ${seed}, step ${step}: ${counted.own} of ${counted.all} for ${minShare}`);
            }
          }
        }
      }
      expect(tooFew).toEqual([]);
    },
  );

  it('lets the lowest of the bands that are due go first', () => {
    const { bands, shares } = make([0, 0.4, 0.4]);
    for (const band of bands) band.backlog = 10;
    const order = Array.from({ length: 5 }, () => bands.indexOf(serve(shares, bands) as FakeBand));
    // After three dispatches both bands below are owed more than one request.
    expect(order).toEqual([0, 0, 0, 2, 1]);
  });

  it('costs nothing and decides nothing without shares', () => {
    const { bands, shares } = make([0, 0]);
    for (const band of bands) band.backlog = 10;
    expect(shares.isUsed).toBe(false);
    for (let i = 0; i < 10; i++) expect(serve(shares, bands)).toBe(bands[0]);
  });

  it('gives a band its part of tokens, and by count a band of short requests would get nearly none', () => {
    const received = (unit?: 'tokens'): number => {
      const { bands, shares } = make([0, 0.25], unit);
      const tokens = [1000, 10];
      const sums = [0, 0];
      for (const band of bands) band.backlog = 1e6;
      for (let n = 0; n < 20_000; n++) {
        // What the band that is due would send; strict priority serves the first otherwise.
        const next = shares.due(bands as unknown as PriorityBand[]) === undefined ? 0 : 1;
        serve(shares, bands, tokens[next]);
        sums[next] = (sums[next] as number) + (tokens[next] as number);
      }
      return (sums[1] as number) / ((sums[0] as number) + (sums[1] as number));
    };
    expect(received('tokens')).toBeCloseTo(0.25, 2);
    expect(received()).toBeLessThan(0.01);
  });
});

describe('in a controller, minShareUnit tokens', () => {
  it('puts right at the end what requests were booked with, so that answers count too', async () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      bands: [{ priority: 10 }, { priority: 0, minShare: 0.2 }],
      minShareUnit: 'tokens',
    });
    const received: Record<number, number> = { 10: 0, 0: 0 };
    const running: Lease[] = [];
    flow.on('dispatched', ({ lease }) => running.push(lease));
    const first = leaseOf(flow.tryEnqueue({ byteSize: 1 }, key('a')));
    for (let i = 0; i < 600; i++)
      for (const priority of [10, 0]) void flow.enqueue({ byteSize: 1, tokens: 10 }, key('a', priority));
    first.release();
    // The answers of the upper band are long, those of the lower one short: nobody knew.
    for (let i = 0; i < 600; i++) {
      const lease = running.pop();
      if (lease === undefined) break;
      const completionTokens = lease.priority === 10 ? 390 : 40;
      received[lease.priority] = (received[lease.priority] as number) + 10 + completionTokens;
      lease.report({ promptTokens: 10, completionTokens });
      lease.release();
    }
    await turns();
    const part = (received[0] as number) / ((received[0] as number) + (received[10] as number));
    expect(part).toBeGreaterThan(0.19);
    expect(part).toBeLessThan(0.22);
  });
});

describe('in a controller, the share of a template', () => {
  it('counts from the first request of a band that is made on the way', () => {
    const { flow } = makeFlow({ bands: [{ priority: 10 }], maxBands: 3, defaultNegativeBand: { minShare: 0.5 } });
    const order: number[] = [];
    const running: Lease[] = [];
    flow.on('dispatched', ({ lease }) => {
      order.push(lease.priority);
      running.push(lease);
    });
    void flow.enqueue({ byteSize: 1 }, key('a', 10));
    for (let i = 0; i < 4; i++) for (const priority of [10, -1]) void flow.enqueue({ byteSize: 1 }, key('a', priority));
    for (let lease = running.shift(); lease !== undefined; lease = running.shift()) lease.release();
    expect(order).toEqual([10, 10, 10, -1, 10, -1, 10, -1, -1]);
  });
});

describe('what a band has saved', () => {
  type Band = PriorityBand;
  const item = (tokens = 0) => fakeItem({ tokens });

  /** A high band and a low one, each with half of everything. */
  function halves(unit?: 'tokens') {
    const { bands, shares } = make([0.5, 0.5], unit);
    for (const band of bands) band.backlog = 1e6;
    const [high, low] = bands as unknown as [Band, Band];
    return {
      shares,
      high,
      low,
      both: [high, low],
      configure: (next?: 'tokens') => shares.configure([high, low], next),
    };
  }

  it('makes it due, also the highest band, wherever the order of bands would go', () => {
    const { shares, high, low, both } = halves();
    for (let i = 0; i < 2; i++) shares.dispatched(low, both, item());
    expect(shares.due(both)).toBe(high);
    expect(shares.due([high])).toBe(high);
    expect(shares.due([low])).toBeUndefined();
  });

  it('is gone once nothing of it waits, or it is removed, and so is what it owes', () => {
    const { shares, high, low, both } = halves();
    for (let i = 0; i < 2; i++) shares.dispatched(low, both, item());
    shares.emptied(high);
    expect(shares.due(both)).toBeUndefined();
    // The low band owes 1 until it is empty.
    shares.emptied(low);
    shares.dispatched(high, both, item());
    expect(shares.due([low])).toBeUndefined();
    shares.dispatched(high, both, item());
    expect(shares.due([low])).toBe(low);
    shares.removed(low);
    expect(shares.due([low])).toBeUndefined();
  });

  it('is 0 after its last request, or one that never waited', () => {
    const { shares, high, low } = halves();
    (low as unknown as FakeBand).backlog = 0;
    for (let i = 0; i < 3; i++) shares.dispatched(low, [high], item());
    (low as unknown as FakeBand).backlog = 1;
    shares.emptied(high);
    for (let i = 0; i < 2; i++) shares.dispatched(high, [low], item());
    expect(shares.due([low])).toBe(low);
  });

  it('by tokens: what it owes stays when nothing of it waits, and what it is given back does not', () => {
    const { shares, high, low } = halves('tokens');
    (low as unknown as FakeBand).backlog = 0;
    shares.dispatched(low, [high], item(100));
    shares.emptied(low);
    shares.dispatched(high, [low], item(100));
    expect(shares.due([low])).toBeUndefined();
    shares.settled(low, [], item(1000), 100);
    expect(shares.due([low])).toBeUndefined();
    shares.dispatched(high, [low], item(10));
    expect(shares.due([low])).toBe(low);
  });

  it('by tokens: a total above 2^53 changes nothing, and is counted where the fairness policy does not', () => {
    for (const keepsAccount of [false, true]) {
      const { shares, high, low, both } = halves('tokens');
      Object.assign(low, { policies: { selector: { keepsAccount } } });
      shares.dispatched(low, [], item(10));
      shares.settled(low, both, item(10), 2 ** 54);
      expect([shares.due(both), shares.ignoredReports]).toEqual([undefined, keepsAccount ? 0 : 1]);
      shares.dispatched(high, both, item(40));
      expect(shares.due([low])).toBe(low);
    }
  });

  it('by tokens: a request that consumed nothing gives back what it was booked with', () => {
    const { shares, high, low } = halves('tokens');
    shares.dispatched(low, [], item(10));
    shares.settled(low, [], item(10), 0);
    shares.dispatched(high, [low], item(2));
    expect(shares.due([low])).toBe(low);
  });

  it('outlives new shares, and is forgotten with another unit, or while there are no shares', () => {
    const { shares, high, low, both, configure } = halves();
    const save = (): void => {
      for (let i = 0; i < 2; i++) shares.dispatched(low, both, item());
      expect(shares.due(both)).toBe(high);
    };
    save();
    configure();
    expect(shares.due(both)).toBe(high);
    configure('tokens');
    expect(shares.due(both)).toBeUndefined();
    configure();
    save();
    shares.configure([]);
    expect([shares.isUsed, shares.due(both)]).toEqual([false, undefined]);
    configure();
    expect(shares.due(both)).toBeUndefined();
  });

  it('counts for nothing before there are shares', () => {
    const shares = new BandShares();
    expect([shares.isUsed, shares.countsTokens]).toEqual([false, false]);
  });

  it('counts for nothing while the band has no share any more', () => {
    const { shares, high, low, both } = halves();
    for (let i = 0; i < 2; i++) shares.dispatched(low, both, item());
    const lost = { ...high, settings: { minShare: 0 } } as unknown as Band;
    Object.assign(high, { settings: lost.settings });
    shares.configure(both);
    expect(shares.due(both)).toBeUndefined();
  });

  it('is not diminished by what the band got while it had no share', () => {
    const { shares, high, low, both, configure } = halves();
    const { settings } = high;
    Object.assign(high, { settings: { minShare: 0 } });
    configure();
    shares.dispatched(high, [], item());
    Object.assign(high, { settings });
    configure();
    for (let i = 0; i < 2; i++) shares.dispatched(low, both, item());
    expect(shares.due(both)).toBe(high);
  });

  it('by tokens: an end without a report gives nothing back', () => {
    const { shares, high, low } = halves('tokens');
    shares.dispatched(high, [low], item(10));
    shares.dispatched(low, [], item(10));
    shares.settled(low, [], item(10), undefined);
    expect(shares.due([low])).toBeUndefined();
  });

  it('by tokens: is bounded by the largest request of the last thousand or so, not by the last one', () => {
    const { shares, high, low } = halves('tokens');
    shares.dispatched(high, [], item(1000));
    for (let i = 1; i < 1024; i++) shares.dispatched(high, [], item(1));
    for (let i = 0; i < 2; i++) shares.dispatched(low, [], item(600));
    for (let i = 0; i < 13; i++) shares.dispatched(high, [low], item(100));
    expect(shares.due([low])).toBeUndefined();
    for (let i = 0; i < 8; i++) shares.dispatched(high, [low], item(100));
    expect(shares.due([low])).toBe(low);
  });

  it('by tokens: an end without a report changes nothing, and a larger report is charged the difference', () => {
    const { shares, high, low, both } = halves('tokens');
    shares.dispatched(low, [], item(10));
    shares.settled(low, both, item(10), undefined);
    expect(shares.due(both)).toBeUndefined();
    shares.settled(low, both, item(10), 30);
    expect(shares.due(both)).toBe(high);
  });

  it.each([
    ['as large as the largest request of late', 20, true],
    ['larger, where large requests are not long ago', 0, false],
  ])('and what it owes is bounded: %s', (_bound, reviews, isDue) => {
    const { shares, high, low } = halves('tokens');
    shares.dispatched(low, [], item(1000));
    shares.removed(low);
    for (let i = 0; i < reviews * 1024; i++) shares.dispatched(high, [], item(1));
    for (let i = 0; i < 3; i++) shares.dispatched(low, [], item(50));
    for (let i = 0; i < 3; i++) shares.dispatched(high, [low], item(50));
    expect(shares.due([low])).toBe(isDue ? low : undefined);
  });
});

describe('in a controller, a guaranteed share of tokens', () => {
  /** Which band each of the next requests is of, one at a time, while both wait; `act` ends each. */
  async function orderOf(
    act: (lease: Lease, index: number) => void,
    requests: number,
  ): Promise<{ order: string; ignored: number }> {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      bands: [{ priority: 10 }, { priority: 0, minShare: 0.25 }],
      minShareUnit: 'tokens',
    });
    const running: Lease[] = [leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key('a', 10)))];
    flow.on('dispatched', ({ lease }) => running.push(lease));
    for (let i = 0; i < requests; i++)
      for (const priority of [10, 0]) void flow.enqueue({ byteSize: 1, tokens: 10 }, key('a', priority));
    let order = '';
    for (let i = 0; i < requests; i++) {
      const lease = running.pop() as Lease;
      order += lease.priority === 10 ? 'h' : 'l';
      act(lease, i);
      lease.release();
    }
    await turns();
    return { order, ignored: flow.stats().ignoredReports };
  }

  it.each([10, 0])('outlives a report that cannot be, of a request of priority %i', async (priority) => {
    let told = false;
    const { order, ignored } = await orderOf((lease) => {
      const isBogus = !told && lease.priority === priority;
      told ||= isBogus;
      lease.report({ promptTokens: isBogus ? 2 ** 60 : 10 });
    }, 400);
    const part = order.split('l').length / order.length;
    expect(part).toBeGreaterThan(0.23);
    expect(part).toBeLessThan(0.27);
    expect(ignored).toBe(1);
  });

  it('is not used up by a request that was evicted, consumed nothing and waits once more', () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      bands: [{ priority: 10 }, { priority: -1, minShare: 0.25 }],
      minShareUnit: 'tokens',
      eviction: inFlightEviction(),
    });
    const running: Lease[] = [];
    const order: number[] = [];
    flow.on('dispatched', ({ lease }) => {
      running.push(lease);
      order.push(lease.priority);
    });
    void flow.enqueue({ byteSize: 1, tokens: 100 }, key('a', -1));
    const [victim] = running.splice(0) as [Lease];
    for (let i = 0; i < 20; i++) void flow.enqueue({ byteSize: 1, tokens: 100 }, key('b', 10));
    expect(victim.isEvicted).toBe(true);
    order.length = 0;
    void victim.requeue();
    for (let i = 0; i < 4; i++) (running.pop() as Lease).release();
    expect(order.indexOf(-1)).toBe(1);
  });
});
