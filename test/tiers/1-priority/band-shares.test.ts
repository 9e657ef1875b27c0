import { describe, expect, it } from 'vitest';
import { BandShares } from '../../../src/tiers/1-priority/band-shares.js';
import type { PriorityBand } from '../../../src/tiers/priority-band.js';
import { Random } from '../../property/random.js';

interface FakeBand {
  readonly priority: number;
  readonly settings: { readonly minShare: number };
  backlog: number;
}

/** Serves one request after the other under strict priority and shares; tells who went, and checks nothing. */
function serve(shares: BandShares, bands: readonly FakeBand[]): FakeBand | undefined {
  const waiting = bands.filter(({ backlog }) => backlog > 0) as unknown as PriorityBand[];
  const band = shares.due(waiting) ?? waiting[0];
  if (band === undefined) return undefined;
  const served = band as unknown as FakeBand;
  served.backlog--;
  if (served.backlog === 0) shares.emptied(band);
  shares.dispatched(
    band,
    waiting.filter((other) => (other as unknown as FakeBand).backlog > 0),
  );
  return served;
}

function make(minShares: readonly number[]): { bands: FakeBand[]; shares: BandShares } {
  const bands = minShares.map((minShare, i) => ({ priority: 100 - i, settings: { minShare }, backlog: 0 }));
  const shares = new BandShares();
  shares.configure(bands as unknown as PriorityBand[]);
  return { bands, shares };
}

describe('BandShares', () => {
  it.each([[[0, 0.1]], [[0, 0.3, 0.2]], [[0.4, 0.3, 0.2]], [[0, 0.05, 0, 0.5, 0.05]], [[0.19, 0.19, 0.19, 0.19, 0.19]]])(
    'gives every band of %j at least its part, within the bound, while all keep waiting',
    (minShares) => {
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
    },
  );

  it('keeps the bound over every stretch in which a band waits, however the others come and go', () => {
    const tooFew: string[] = [];
    for (let seed = 0; seed < 40; seed++) {
      const random = new Random(seed);
      const minShares = Array.from({ length: 2 + random.int(4) }, () => (random.chance(0.7) ? random.next() * 0.24 : 0));
      const { bands, shares } = make(minShares);
      const sharing = minShares.filter((share) => share > 0).length;
      /** Dispatches since the band began to wait, and how many of them were its own. */
      const stretch = bands.map(() => ({ all: 0, own: 0 }));
      for (let step = 0; step < 800; step++) {
        for (const [i, band] of bands.entries()) {
          if (random.chance(band.backlog === 0 ? 0.1 : 0.4)) {
            if (band.backlog === 0) stretch[i] = { all: 0, own: 0 };
            band.backlog += 1 + random.int(random.chance(0.05) ? 60 : 2);
          }
        }
        const served = serve(shares, bands);
        for (const [i, band] of bands.entries()) {
          const { minShare } = band.settings;
          const counted = stretch[i] as { all: number; own: number };
          if (served === undefined || minShare === 0) continue;
          counted.all++;
          if (served === band) counted.own++;
          if (band.backlog > 0) {
            const least = minShare * counted.all - (2 + minShare * sharing);
            if (counted.own < least) tooFew.push(`seed ${seed}, step ${step}: ${counted.own} of ${counted.all} for ${minShare}`);
          }
        }
      }
    }
    expect(tooFew).toEqual([]);
  });

  it('costs nothing and decides nothing without shares', () => {
    const { bands, shares } = make([0, 0]);
    for (const band of bands) band.backlog = 10;
    expect(shares.isUsed).toBe(false);
    for (let i = 0; i < 10; i++) expect(serve(shares, bands)).toBe(bands[0]);
  });
});
