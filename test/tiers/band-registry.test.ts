import { expect, it } from 'vitest';
import { fcfs, globalStrict } from '../../src/index.js';
import { BandRegistry } from '../../src/tiers/band-registry.js';
import type { BandSettings, PriorityBand } from '../../src/tiers/priority-band.js';
import { Random } from '../property/random.js';

const limits = { maxRequests: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };
const settings: BandSettings = {
  limits,
  flowLimits: limits,
  requestTtlMs: 60_000,
  fairness: globalStrict(),
  ordering: fcfs(),
  holdsFlows: false,
  parksFlows: false,
  maxInFlightPerFlow: undefined,
  minShare: 0,
};
const bandIdleTimeoutMs = 5000;

function makeRegistry(maxBands: number): { bands: BandRegistry; removed: number[] } {
  const removed: number[] = [];
  const options = {
    bands: [],
    defaultBand: settings,
    defaultNegativeBand: settings,
    maxBands,
    bandIdleTimeoutMs,
    bandOrder: { needsOldest: false },
    minShareUnit: 'requests' as const,
    overflow: 'reject' as const,
    maxFlows: 10,
    flowIdleTimeoutMs: 1000,
    flows: { size: 0, mayCap: false, get: () => undefined },
  };
  const listener = {
    bandAdded() {},
    bandRemoved: (band: PriorityBand) => removed.push(band.priority),
    flowRemoved() {},
    pluginFailed() {},
  };
  return { bands: new BandRegistry(options, listener, 0), removed };
}

const descending = (priorities: Iterable<number>): number[] => [...priorities].sort((a, b) => b - a);

it('keeps all bands and the waiting ones in descending order, through a long history', () => {
  const random = new Random(12);
  const { bands, removed } = makeRegistry(100);
  const known = new Set<number>();
  const waiting = new Set<number>();
  for (let i = 0; i < 3000; i++) {
    const nowMs = i * 100;
    const priority = random.int(40) - 20;
    const { version } = bands;
    const band = bands.arrived(priority, nowMs) ?? bands.bandOf(priority, nowMs);
    if (band === undefined) throw new Error('there is room for every band');
    for (const gone of removed.splice(0)) {
      expect(waiting.has(gone)).toBe(false);
      known.delete(gone);
    }
    if (!known.has(priority)) {
      known.add(priority);
      expect(bands.version).toBeGreaterThan(version);
    } else if (waiting.has(priority)) {
      band.waiting = 0;
      bands.deactivated(band);
      waiting.delete(priority);
    } else if (random.chance(0.3)) {
      band.waiting = 1;
      bands.activated(band);
      waiting.add(priority);
    }
    expect(bands.size).toBe(known.size);
    expect(bands.get(priority)).toBe(band);
    expect(bands.all().map((each) => each.priority)).toEqual(descending(known));
    expect(bands.allWaiting().map((each) => each.priority)).toEqual(descending(waiting));
    expect(bands.highestWaiting?.priority).toBe(descending(waiting)[0]);
    expect(bands.lowestWaiting?.priority).toBe(descending(waiting).at(-1));
  }
});

it('forgets a band that was made on first use once it has been idle for the timeout, and not before', () => {
  const { bands, removed } = makeRegistry(100);
  bands.bandOf(7, 1000);
  bands.arrived(7, 2000);
  bands.tend(2000 + bandIdleTimeoutMs - 1);
  expect(removed).toEqual([]);
  bands.tend(2000 + bandIdleTimeoutMs);
  expect(removed).toEqual([7]);
});

it('makes room by the band that is idle longest, and refuses when every band has work', () => {
  const { bands, removed } = makeRegistry(2);
  const first = bands.bandOf(1, 0) as PriorityBand;
  const second = bands.bandOf(2, 0) as PriorityBand;
  bands.arrived(1, 10);
  bands.bandOf(3, 20);
  expect(removed).toEqual([2]);
  expect(bands.get(2)).not.toBe(second);
  first.waiting = 1;
  (bands.get(3) as PriorityBand).waiting = 1;
  expect(bands.bandOf(4, 30)).toBeUndefined();
});
