/** What the gate says of itself to the engine around it, without a controller. */
import { describe, expect, it } from 'vitest';
import { AvailablePool } from '../../src/endpoints/available-pool.js';
import { Gate, type GateOptions } from '../../src/gate/gate.js';
import { EndpointPool, type PoolView, type SaturationDetector, staticUsageLimit } from '../../src/index.js';
import type { BandRegistry } from '../../src/tiers/band-registry.js';
import type { WaitingItem } from '../../src/tiers/flow.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';
import type { JudgingDetector } from '../support/constraints.js';
import { fakeItem } from '../support/fake-item.js';
import { fakeEndpoint, poolOf } from '../support/fake-pool.js';

const [a, b] = [fakeEndpoint('a'), fakeEndpoint('b')];
const item = fakeItem() as WaitingItem;
const low = { priority: 1 } as PriorityBand;

const silent = (type: string, more: Partial<JudgingDetector> = {}): SaturationDetector => ({
  type,
  saturation: () => 0,
  ...more,
});
const announcing = (type: string, more: Partial<JudgingDetector> = {}): SaturationDetector =>
  silent(type, { subscribe: () => () => {}, ...more });

/** A gate without bands, before a pool; `own` is the detector of the band of priority 1. */
function gateOf(shared: SaturationDetector, own?: SaturationDetector, pool: PoolView = poolOf(a, b)) {
  const faults: unknown[] = [];
  const options: GateOptions = {
    gate: { closeAt: 1, openAt: 1, failValue: 1, recheckIntervalMs: 10 },
    saturationDetector: shared,
    constraints: [],
    seatListener: undefined,
    usageLimitPolicy: staticUsageLimit(),
    bands: [{ priority: low.priority, saturationDetector: own }],
    defaultBand: { saturationDetector: undefined },
    defaultNegativeBand: { saturationDetector: undefined },
  };
  const bands = { version: 0, all: () => [] } as unknown as BandRegistry;
  const gate = new Gate(
    pool,
    bands,
    { pluginFailed: (_kind, _type, error) => void faults.push(error) },
    options,
    () => {},
  );
  return { gate, faults };
}

/** Sends to one endpoint alone, and says so. */
const only = (id: string): SaturationDetector =>
  announcing(`only ${id}`, {
    filter: (endpoints) => endpoints.filter((endpoint) => endpoint.id === id),
    withRoomFor: (endpoints) => endpoints.filter((endpoint) => endpoint.id === id),
    waitOf: (_endpoints, _item, nowMs) => ({ atMs: nowMs + 700, notBeforeMs: nowMs, missing: `a place at ${id}` }),
  });

describe('for no band in particular', () => {
  const { gate } = gateOf(only('a'), only('b'));

  it('the shared detector says where there is room, and what a request waits for', () => {
    expect([gate.withRoom([a, b], undefined, 0), gate.withRoom([a, b], low, 0)]).toEqual([[a], [b]]);
    expect([
      gate.constraints.withRoomFor([a, b], item, undefined, 0),
      gate.constraints.withRoomFor([a, b], item, low, 0),
    ]).toEqual([[a], [b]]);
    expect([
      gate.constraints.waitOf([b], item, undefined, 0),
      gate.constraints.waitOf([a], item, low, 0),
    ]).toMatchObject([{ missing: 'a place at a' }, { missing: 'a place at b' }]);
  });
});

describe('where there is no endpoint', () => {
  it('nobody is asked what a request waits for, or when to look again', () => {
    const { gate, faults } = gateOf(only('a'));
    expect([
      gate.constraints.waitOf([], item, undefined, 5),
      gate.constraints.withRoomFor([], item, undefined, 5),
      gate.constraints.roomAtMs,
    ]).toEqual([undefined, [], Number.POSITIVE_INFINITY]);
    expect([gate.constraints.withRoomFor([b], item, undefined, 5), gate.constraints.roomAtMs, faults]).toEqual([
      [],
      705,
      [],
    ]);
  });

  it('no timer looks at the gate again, because the pool announces its changes', () => {
    const { gate } = gateOf(silent('x'), undefined, poolOf());
    expect([gate.recheckMs, gateOf(silent('x')).gate.recheckMs]).toEqual([Number.POSITIVE_INFINITY, 10]);
  });

  it('no band is judged apart', () => {
    expect(gateOf(silent('x'), silent('y')).gate.judgesApart).toBe(true);
    expect(gateOf(silent('x'), silent('y'), poolOf()).gate.judgesApart).toBe(false);
    expect(gateOf(silent('x')).gate.judgesApart).toBe(false);
  });
});

describe('a controller without a pool', () => {
  it('has no endpoint to choose, none that comes back, and none that is missing', () => {
    const { gate } = gateOf(silent('blind', { isBlindTo: () => true }));
    expect([gate.available(0), gate.returnsAtMs(0), gate.whyUnavailable(0)]).toEqual([
      [],
      Number.POSITIVE_INFINITY,
      undefined,
    ]);
    expect(gate.measure(0)).toBe(1);
  });
});

it('nothing is missing of a pool that can be had, and the rest is named', () => {
  const pool = new EndpointPool();
  const { gate } = gateOf(
    silent('x', { isBlindTo: ({ metrics }) => metrics === undefined }),
    undefined,
    new AvailablePool(pool),
  );
  pool.add('a');
  expect(gate.whyUnavailable(0)).toBe('no server reports its load');
  pool.report('a', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
  expect(gate.whyUnavailable(0)).toBeUndefined();
});

it('the shared detector says how many requests fit at an endpoint', () => {
  expect(gateOf(silent('x', { seatsOf: () => 7 })).gate.seatsOf(a, 0)).toBe(7);
  expect(gateOf(silent('x')).gate.seatsOf(a, 0)).toBeUndefined();
});

describe('what the gate hears', () => {
  const heard = ({ gate }: ReturnType<typeof gateOf>): boolean[] => [
    gate.hearsDispatches,
    gate.seats.hears.released,
    gate.seats.hears.answered,
    gate.seats.hears.reported,
    gate.constraints.areAny,
  ];

  it('is what one of its detectors hears', () => {
    const all = { dispatched() {}, released() {}, answered() {}, reported() {}, withRoomFor: () => [] };
    expect(heard(gateOf(silent('x')))).toEqual(Array(5).fill(false));
    expect([heard(gateOf(silent('x', all))), heard(gateOf(silent('x'), silent('y', all)))]).toEqual(
      Array(2).fill(Array(5).fill(true)),
    );
  });

  it('of a dispatch is no matter for a usage-limit policy that takes no notice', () => {
    const told: unknown[] = [];
    const { gate, faults } = gateOf(silent('x', { dispatched: ({ id }) => void told.push(id) }));
    gate.dispatched(a, { item } as never, 0);
    expect([told, faults]).toEqual([['a'], []]);
  });
});

it('sessions of which no detector can tell are not told', () => {
  const { gate, faults } = gateOf(
    announcing('broken', {
      withRoomFor: () => [],
      sessions() {
        throw new Error('no figures');
      },
    }),
  );
  expect([gate.constraints.sessions(0), faults.length]).toEqual([undefined, 1]);
});
