import { expect, it } from 'vitest';
import { globalStrict } from '../../src/index.js';
import { BandRegistry, type BandRegistrySettings } from '../../src/tiers/band-registry.js';
import type { Flow, WaitingItem } from '../../src/tiers/flow.js';
import type { BandSettings, PriorityBand } from '../../src/tiers/priority-band.js';
import { Random } from '../property/random.js';
import { bandSettings } from '../support/bands.js';

const settings: BandSettings = { ...bandSettings, fairness: globalStrict() };
const bandIdleTimeoutMs = 5000;

function makeRegistry(maxBands: number, own: Partial<BandRegistrySettings> = {}) {
  const removed: number[] = [];
  const added: number[] = [];
  const removedFlows: string[] = [];
  const options: BandRegistrySettings = {
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
    holBlocking: 'band',
    ...own,
  };
  const listener = {
    bandAdded: (band: PriorityBand) => added.push(band.priority),
    bandRemoved: (band: PriorityBand) => removed.push(band.priority),
    flowRemoved: ({ fairnessId }: Flow) => removedFlows.push(fairnessId),
    pluginFailed() {},
  };
  return { bands: new BandRegistry(options, listener, 0), removed, added, removedFlows, options };
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
  }
});

it('forgets a band that was made on first use once it has been idle for the timeout, and not before', () => {
  const { bands, removed } = makeRegistry(100);
  bands.bandOf(7, 1000);
  bands.arrived(7, 2000);
  bands.collectAndSample(2000 + bandIdleTimeoutMs - 1);
  expect(removed).toEqual([]);
  bands.collectAndSample(2000 + bandIdleTimeoutMs);
  expect(removed).toEqual([7]);
});

it('makes room by the band that is idle longest, and rejects when every band has work', () => {
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

/** Settings of a band that lets so many requests wait. */
function limited(maxRequests: number): BandSettings {
  return { ...settings, limits: { ...settings.limits, maxRequests } };
}

it('tells how many more a band lets wait, whether it exists or not', () => {
  const { bands } = makeRegistry(10, {
    bands: [
      { priority: 5, ...limited(3) },
      { priority: 1, ...settings },
    ],
    defaultBand: limited(7),
    defaultNegativeBand: limited(2),
  });
  const band = bands.get(5) as PriorityBand;
  expect([5, 1, 9, 0, -1].map((priority) => bands.headroomOf(priority))).toEqual([3, undefined, 7, 7, 2]);
  band.waiting = 1;
  expect(bands.headroomOf(5)).toBe(2);
  band.waiting = 4;
  expect(bands.headroomOf(5)).toBe(0);
  expect([5, 9, 0, -1].map((priority) => bands.settingsOf(priority).limits.maxRequests)).toEqual([3, 7, 7, 2]);
});

it('counts arrivals of bands that exist, and the first of one that is made', () => {
  const { bands, added } = makeRegistry(10);
  expect(bands.arrived(3, 0)).toBeUndefined();
  const band = bands.bandOf(3, 0) as PriorityBand;
  expect([band.traffic.arrived, band.isConfigured, added]).toEqual([1, false, [3]]);
  expect(bands.arrived(3, 10)).toBe(band);
  expect([band.traffic.arrived, band.traffic.lastUsedMs]).toEqual([2, 10]);
  expect(bands.bandOf(3, 20)).toBe(band);
  expect(band.traffic.arrived).toBe(2);
});

it('looks after what is idle once a second, with the next arrival', () => {
  const { bands, removed } = makeRegistry(10, { bandIdleTimeoutMs: 0 });
  bands.bandOf(7, 0);
  bands.arrived(1, 999);
  expect(removed).toEqual([]);
  bands.arrived(1, 1000);
  expect(removed).toEqual([7]);
  bands.bandOf(8, 1000);
  bands.arrived(1, 1999);
  expect(removed).toEqual([7]);
  bands.arrived(1, 2000);
  expect(removed).toEqual([7, 8]);
});

it('keeps a band that is configured, in use, or has requests running whose end its policy hears of', () => {
  const { bands, removed } = makeRegistry(10, { bands: [{ priority: 1, ...settings }] });
  const [waiting, running] = [bands.bandOf(2, 0), bands.bandOf(3, 0)] as [PriorityBand, PriorityBand];
  waiting.waiting = 1;
  running.trackedInFlight = 1;
  bands.collectAndSample(1e9);
  expect(removed).toEqual([]);
  waiting.waiting = 0;
  running.trackedInFlight = 0;
  bands.collectAndSample(1e9);
  expect([removed, bands.all().map(({ priority }) => priority)]).toEqual([[3, 2], [1]]);
});

it('of bands that are idle equally long the highest makes room', () => {
  const { bands, removed } = makeRegistry(2);
  bands.bandOf(1, 0);
  bands.bandOf(2, 0);
  bands.bandOf(3, 10);
  expect(removed).toEqual([2]);
});

it('tells bands that compete from those of which all requests are parked', () => {
  const { bands } = makeRegistry(10);
  const [high, low] = [bands.bandOf(2, 0), bands.bandOf(1, 0)] as [PriorityBand, PriorityBand];
  for (const band of [high, low]) {
    band.waiting = 2;
    bands.activated(band);
  }
  expect([bands.highestWaiting, bands.allCompeting()]).toEqual([high, [high, low]]);
  high.aside.waiting.parked = 2;
  bands.noteParked(2);
  expect([bands.parked, bands.highestWaiting, bands.allCompeting(), bands.allWaiting()]).toEqual([
    2,
    low,
    [low],
    [high, low],
  ]);
  low.aside.waiting.parked = 2;
  bands.noteParked(2);
  expect([bands.highestWaiting, bands.allCompeting()]).toEqual([undefined, []]);
  high.aside.waiting.parked = 0;
  low.aside.waiting.parked = 0;
  bands.noteParked(-4);
  expect([bands.parked, bands.highestWaiting, bands.allCompeting()]).toEqual([0, high, [high, low]]);
});

it('gives a band that is configured no longer the settings of its template, and takes new ones in', () => {
  const { bands, options, added } = makeRegistry(10, {
    bands: [
      { priority: 1, ...limited(3) },
      { priority: -1, ...limited(4) },
    ],
  });
  const { version } = bands;
  const [kept, negative] = [bands.get(1), bands.get(-1)] as [PriorityBand, PriorityBand];
  const next = [
    { priority: 1, ...limited(5) },
    { priority: 9, ...limited(6) },
  ];
  bands.configure({ ...options, bands: next, defaultNegativeBand: limited(8) }, 50);
  expect(bands.version).toBeGreaterThan(version);
  expect(added).toEqual([1, -1, 9]);
  expect([kept, negative, bands.get(9)].map((band) => band?.isConfigured)).toEqual([true, false, true]);
  expect([9, 1, -1].map((priority) => bands.get(priority)?.settings.limits.maxRequests)).toEqual([6, 5, 8]);
});

it.each([
  ['an order of bands that asks for the oldest', { bandOrder: { needsOldest: true } }, [true, true], false],
  ['displacement', { overflow: 'displace' }, [false, true], false],
  ['fair overflow', { overflow: 'fair' }, [false, false], true],
  ['none of them', {}, [false, false], false],
] as const)(
  'keeps arrivals and longest queues for %s, from the beginning and when it comes later',
  (_, own, keepsArrivals, keepsCrowd) => {
    const stateOf = (bands: BandRegistry) => {
      const [high, low] = [bands.bandOf(0, 0), bands.bandOf(-1, 0)] as [PriorityBand, PriorityBand];
      const waits = [high, low].map((band) => {
        const item = { sequence: 1, byteSize: 1, tokens: 0, isWaiting: true, request: {} } as WaitingItem;
        band.add(item, bands.flows.flowOf(band, { fairnessId: 'a', requestClass: undefined }, 0));
        return [band.arrivals?.last() === item, band.longestQueues?.most('requests') !== undefined];
      });
      return waits;
    };
    const expected = keepsArrivals.map((keeps) => [keeps, keepsCrowd]);
    expect(stateOf(makeRegistry(10, own).bands)).toEqual(expected);
    const later = makeRegistry(10);
    for (const priority of [0, -1]) later.bands.bandOf(priority, 0);
    later.bands.configure({ ...later.options, ...own }, 0);
    expect(stateOf(later.bands)).toEqual(expected);
    later.bands.configure(later.options, 0);
    expect(
      [0, -1].map((priority) => [
        later.bands.get(priority)?.arrivals?.last(),
        later.bands.get(priority)?.longestQueues,
      ]),
    ).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
  },
);

it('lists every waiting request in the order of arrival, whatever its band', () => {
  const { bands } = makeRegistry(10);
  const sequences = [1, 5, 2, 3];
  for (const [i, sequence] of sequences.entries()) {
    const band = bands.bandOf(i % 2, 0) as PriorityBand;
    if (band.waiting === 0) bands.activated(band);
    const item = { sequence, byteSize: 1, tokens: 0, isWaiting: true, request: {} } as WaitingItem;
    band.add(item, bands.flows.flowOf(band, { fairnessId: 'a', requestClass: undefined }, 0));
  }
  expect(bands.waitingItems().map(({ sequence }) => sequence)).toEqual([1, 2, 3, 5]);
});

it('guarantees shares as soon as a band, or a template for bands to come, has one', () => {
  const shared = { ...settings, minShare: 0.3 };
  expect(makeRegistry(10).bands.shares.isUsed).toBe(false);
  for (const own of [
    { bands: [{ priority: 1, ...shared }] },
    { defaultBand: shared },
    { defaultNegativeBand: shared },
  ]) {
    const { bands, options } = makeRegistry(10, own);
    expect(bands.shares.isUsed).toBe(true);
    bands.configure({ ...options, bands: [], defaultBand: settings, defaultNegativeBand: settings }, 0);
    expect(bands.shares.isUsed).toBe(false);
    bands.configure(options, 0);
    expect(bands.shares.isUsed).toBe(true);
  }
});

it('adds up the reports that fairness policies ignored, those of bands that are gone too', () => {
  const { bands } = makeRegistry(2);
  for (const [priority, count] of [
    [1, 2],
    [2, 3],
  ] as const) {
    Object.defineProperty(bands.bandOf(priority, priority)?.policies as object, 'ignoredReports', { value: count });
  }
  expect(bands.ignoredReports).toBe(5);
  bands.bandOf(3, 10);
  expect([bands.get(1), bands.ignoredReports]).toEqual([undefined, 5]);
});

it('forgets the flows of a band with it, and tells of each', () => {
  const { bands, removedFlows } = makeRegistry(1);
  const band = bands.bandOf(1, 0) as PriorityBand;
  bands.flows.flowOf(band, { fairnessId: 'a', requestClass: undefined }, 0);
  bands.bandOf(2, 0);
  expect([removedFlows, bands.flows.size]).toEqual([['a'], 0]);
});

it('has ceilings computed anew when a band that is not configured gets its first request, or loses its last', () => {
  const { bands } = makeRegistry(10, { bands: [{ priority: 1, ...settings }] });
  const risesBy = (priority: number): number[] => {
    const band = bands.bandOf(priority, 0) as PriorityBand;
    const { version } = bands;
    bands.activated(band);
    const risen = bands.version - version;
    bands.deactivated(band);
    return [risen, bands.version - version];
  };
  expect(risesBy(1)).toEqual([0, 0]);
  expect(risesBy(2)).toEqual([1, 2]);
});
