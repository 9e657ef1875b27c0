/** Bands that use groups of endpoints one after the other: own servers first, paid ones after. */
import { describe, expect, it } from 'vitest';
import {
  type BandOptions,
  concurrencyDetector,
  EndpointPool,
  explainWait,
  type FlowControllerOptions,
  type FlowRequest,
  globalStrict,
  type Lease,
  type Outcome,
  quotaDetector,
  resolveOptions,
  virtualTokenCounter,
} from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { Random } from '../../property/random.js';
import { dropOf, key, makeFlow, turns } from '../../support/flow.js';

const paidLater = ['own', { group: 'paid', after: 200 }] as const;
const bands: BandOptions[] = [
  { priority: 100, endpoints: paidLater },
  { priority: -10, endpoints: ['own'] },
];

/** Two own servers of one seat each, and one paid of two. */
function ownAndPaid(options: Partial<FlowControllerOptions> = {}) {
  const pool = new EndpointPool();
  pool.add('own-0', { labels: { group: 'own' } });
  pool.add('own-1', { labels: { group: 'own' } });
  pool.add('paid-0', { labels: { group: 'paid' }, weight: 2 });
  const made = makeFlow({ pool, bands, saturationDetector: concurrencyDetector({ maxConcurrency: 1 }), ...options });
  const went: string[] = [];
  const leases = new Map<string, Lease>();
  const outcomes = new Map<string, Outcome>();
  /** Sends a request; its name, and the endpoint it went to, stand in `went`. */
  function send(name: string, priority = 100, fairnessId = 'x', more: Partial<FlowRequest> = {}): FlowRequest {
    const request = { byteSize: 1, ...more };
    void made.flow.enqueue(request, key(fairnessId, priority)).then((outcome) => {
      outcomes.set(name, outcome);
      if (outcome.type !== 'Dispatched') return void went.push(`${name}: ${outcome.type}`);
      leases.set(name, outcome.lease);
      went.push(`${name} to ${outcome.lease.endpoint?.id}`);
    });
    return request;
  }
  async function passed(ms: number): Promise<string[]> {
    await turns(10);
    made.clock.advance(ms);
    await turns(10);
    expect(audit(made.flow).violations).toEqual([]);
    return went.splice(0);
  }
  return { ...made, pool, send, passed, leases, outcomes };
}

describe('a band that names groups of endpoints', () => {
  it('uses the first while that has room, and the next once a request has waited for it', async () => {
    const { send, passed } = ownAndPaid();
    for (const name of ['a', 'b', 'c']) send(name);
    expect(await passed(199)).toEqual(['a to own-0', 'b to own-1']);
    expect(await passed(1)).toEqual(['c to paid-0']);
  });

  it('is looked at again when that instant comes, and not before', async () => {
    const detector = concurrencyDetector({ maxConcurrency: 1 });
    let reads = 0;
    const saturation: typeof detector.saturation = (...asked) => {
      reads++;
      return detector.saturation(...asked);
    };
    const { send, passed } = ownAndPaid({ saturationDetector: { ...detector, saturation } });
    for (const name of ['a', 'b', 'c']) send(name);
    await passed(0);
    const before = reads;
    for (let i = 0; i < 199; i++) await passed(1);
    expect(reads).toBe(before);
    expect(await passed(1)).toEqual(['c to paid-0']);
  });

  it('prefers the first also to a request that may use the next', async () => {
    const { send, passed, leases } = ownAndPaid();
    for (const name of ['a', 'b', 'c', 'd', 'e']) send(name);
    await passed(300);
    leases.get('a')?.release();
    leases.get('c')?.release();
    expect(await passed(0)).toEqual(['e to own-0']);
  });

  it('uses the next at once when no endpoint of the first is available', async () => {
    const { send, passed, pool } = ownAndPaid();
    for (const name of ['a', 'b', 'c']) send(name);
    await passed(50);
    pool.update('own-0', { state: 'ill' });
    expect(await passed(0)).toEqual([]);
    pool.markOverloaded('own-1', 1000);
    expect(await passed(0)).toEqual(['c to paid-0']);
    send('d');
    expect(await passed(0)).toEqual(['d to paid-0']);
  });

  it('keeps a band that names the first alone from the next, also when the first is gone', async () => {
    const { send, passed, pool, outcomes } = ownAndPaid();
    for (const name of ['a', 'b', 'batch']) send(name, -10, 'x', { ttlMs: 5000 });
    expect(await passed(4000)).toEqual(['a to own-0', 'b to own-1']);
    for (const id of ['own-0', 'own-1']) pool.update(id, { state: 'ill' });
    expect(await passed(999)).toEqual([]);
    expect(await passed(1)).toEqual(['batch: EvictedTTL']);
    expect(dropOf(outcomes.get('batch')).reason).toBe('ttl-expired');
  });

  it('waits for a second group no longer than from one to the next, and skips one that is gone', async () => {
    const spare = { group: 'spare', after: '1s' };
    const { send, passed, pool } = ownAndPaid({
      bands: [{ priority: 100, endpoints: [...paidLater, spare] }],
    });
    pool.add('spare-0', { labels: { group: 'spare' } });
    for (const name of ['a', 'b', 'c', 'd', 'e']) send(name);
    await passed(999);
    expect(await passed(1)).toEqual(['e to spare-0']);
    for (const id of ['own-0', 'own-1', 'paid-0']) pool.update(id, { state: 'draining' });
    pool.add('spare-1', { labels: { group: 'spare' } });
    send('f');
    expect(await passed(0)).toEqual(['f to spare-1']);
  });

  it('goes to the next group at once where it has no after', async () => {
    const { send, passed } = ownAndPaid({ bands: [{ priority: 100, endpoints: ['own', 'paid'] }] });
    for (const name of ['a', 'b', 'c']) send(name);
    expect(await passed(0)).toEqual(['a to own-0', 'b to own-1', 'c to paid-0']);
  });

  it('never sends a request to an endpoint that stands in no group of it', async () => {
    const { send, passed, pool } = ownAndPaid();
    pool.add('stray');
    pool.add('other', { labels: { group: 'other' } });
    for (const name of ['a', 'b', 'c', 'd', 'e']) send(name);
    expect((await passed(10_000)).map((each) => each.slice(5))).toEqual(['own-0', 'own-1', 'paid-0', 'paid-0']);
    send('anywhere', 0);
    expect(await passed(0)).toEqual(['anywhere to stray']);
  });

  it('keeps within the quota of the group, and waits there for room', async () => {
    const paid = {
      by: 'label' as const,
      label: 'group',
      is: 'paid',
      quotas: [{ unit: 'requests' as const, limit: 1 }],
    };
    const { send, passed, leases } = ownAndPaid({ constraints: [quotaDetector({ groups: [paid], travel: 0 })] });
    for (const name of ['a', 'b', 'c', 'd']) send(name, 100, 'x', { ttlMs: 0 });
    await passed(0);
    expect(await passed(200)).toEqual(['c to paid-0']);
    leases.get('c')?.release();
    expect(await passed(59_000)).toEqual([]);
    expect(await passed(1000)).toEqual(['d to paid-0']);
  });

  it('applies new groups to what waits', async () => {
    const { send, passed, flow } = ownAndPaid();
    for (const name of ['a', 'b']) send(name);
    send('batch', -10);
    await passed(1000);
    flow.reconfigure({ bands: [{ priority: -10, endpoints: ['own', 'paid'] }] });
    expect(await passed(0)).toEqual(['batch to paid-0']);
    flow.reconfigure({ bands: [] });
    send('c', 7);
    expect(await passed(0)).toEqual(['c to paid-0']);
  });
});

describe('what waits behind a request that waits for the next group', () => {
  /** Own servers are full; a flow `young` has waited 50 ms when `old` may use paid. */
  async function youngAndOld(options: Partial<FlowControllerOptions> = {}) {
    const made = ownAndPaid(options);
    for (const name of ['a', 'b']) made.send(name, 100, 'running');
    await made.passed(0);
    return made;
  }

  it.each([
    ['turns', {}],
    ['one queue', { fairness: globalStrict() }],
    ['cost', { fairness: virtualTokenCounter() }],
  ])('is not another flow that may go there already, whichever comes first by %s', async (_, more) => {
    const { send, passed, leases } = await youngAndOld({ bands: [{ ...(bands[0] as BandOptions), ...more }] });
    for (const name of ['fill-0', 'fill-1']) send(name, 100, 'fill');
    await passed(200);
    send('old', 100, 'old');
    await passed(150);
    send('young', 100, 'young');
    await passed(60);
    leases.get('fill-0')?.release();
    leases.get('fill-1')?.release();
    expect(await passed(0)).toEqual(['old to paid-0']);
    expect(await passed(139)).toEqual([]);
    expect(await passed(1)).toEqual(['young to paid-0']);
  });

  it('is the next request of its own flow', async () => {
    const { send, passed } = await youngAndOld();
    send('first');
    await passed(100);
    send('second');
    expect(await passed(100)).toEqual(['first to paid-0']);
    expect(await passed(100)).toEqual(['second to paid-0']);
  });

  it('is no lower band that may use another group', async () => {
    const { send, passed } = await youngAndOld({
      bands: [...bands, { priority: 1, endpoints: ['paid'] }],
    });
    send('high');
    send('low', 1);
    expect(await passed(0)).toEqual(['low to paid-0']);
    expect(await passed(200)).toEqual(['high to paid-0']);
  });

  it('is no higher band: one that may use own servers alone holds nobody back', async () => {
    const { send, passed } = await youngAndOld();
    send('batch', -10);
    await passed(500);
    send('high');
    expect(await passed(199)).toEqual([]);
    expect(await passed(1)).toEqual(['high to paid-0']);
  });

  it('gets no seat that a higher band may use', async () => {
    const { send, passed, leases } = await youngAndOld();
    send('batch', -10);
    await passed(100);
    send('high');
    leases.get('a')?.release();
    expect(await passed(0)).toEqual(['high to own-0']);
    leases.get('b')?.release();
    expect(await passed(0)).toEqual(['batch to own-1']);
  });

  it('is everything below with holBlocking band', async () => {
    const { send, passed } = await youngAndOld({
      holBlocking: 'band',
      bands: [...bands, { priority: 1, endpoints: ['paid'] }],
    });
    send('high', 100, 'y');
    send('low', 1);
    expect(await passed(199)).toEqual([]);
    expect(await passed(1)).toEqual(['high to paid-0', 'low to paid-0']);
  });

  it('is nothing, in any history: a free seat is left only by what may not use it', async () => {
    for (let seed = 0; seed < 60; seed++) {
      const random = new Random(seed);
      const { send, passed, leases, flow, clock, pool } = ownAndPaid({
        bands: [
          { priority: 100, endpoints: paidLater, ...(random.chance(0.3) ? { fairness: globalStrict() } : {}) },
          { priority: 50, endpoints: ['paid', { group: 'own', after: 100 }] },
          { priority: -10, endpoints: ['own'] },
        ],
        ...(random.chance(0.3) ? { holBlocking: 'none' } : {}),
      });
      const waiting = new Map<string, { priority: number; fairnessId: string; sinceMs: number }>();
      for (let i = 0; i < 120; i++) {
        const priority = random.pick([100, 50, -10]);
        const fairnessId = `t${random.int(5)}`;
        waiting.set(`r${i}`, { priority, fairnessId, sinceMs: clock.now() });
        send(`r${i}`, priority, fairnessId, { ttlMs: 0 });
        for (const [name, lease] of leases) if (random.chance(0.2) && leases.delete(name)) lease.release();
        for (const each of await passed(random.pick([0, 3, 40, 120]))) {
          const [name = '', , endpoint = ''] = each.split(' ');
          const { priority: of, sinceMs } = waiting.get(name) ?? { priority: 0, sinceMs: 0 };
          waiting.delete(name);
          const group = endpoint.split('-')[0];
          if (of === -10) expect(group, `seed ${seed}: ${name}`).toBe('own');
          if (of === 100 && group === 'paid') expect(clock.now() - sinceMs).toBeGreaterThanOrEqual(200);
          if (of === 50 && group === 'own') expect(clock.now() - sinceMs).toBeGreaterThanOrEqual(100);
        }
        const seats = { own: 2, paid: 2 };
        for (const { labels, inFlightRequests } of pool.endpoints)
          seats[labels.group as 'own' | 'paid'] -= inFlightRequests;
        const heads = new Map(
          [...waiting.values()].reverse().map((each) => [`${each.priority} ${each.fairnessId}`, each]),
        );
        for (const { priority: of, sinceMs } of heads.values()) {
          const waitedMs = clock.now() - sinceMs;
          const mayOwn = of !== 50 || waitedMs >= 100;
          const mayPaid = of === 50 || (of === 100 && waitedMs >= 200);
          const isLeft = (mayOwn && seats.own > 0) || (mayPaid && seats.paid > 0);
          expect(
            isLeft,
            `seed ${seed}, step ${i}: band ${of} waits ${waitedMs} ms beside ${JSON.stringify(seats)}`,
          ).toBe(false);
        }
      }
      expect(flow.stats().pluginErrors).toBe(0);
    }
  });
});

describe('a reader of groups', () => {
  it('is told what a request waits for, and what it may use when', async () => {
    const { send, passed, flow } = ownAndPaid();
    for (const name of ['a', 'b']) send(name);
    const waits = send('c', 100, 'y');
    await passed(80);
    expect(explainWait(flow, waits)).toMatchObject({
      decidedBy: 'endpoints',
      text: expect.stringMatching(/^band 100 waits for own; may use paid in 120 ms/),
    });
    const batch = send('batch', -10);
    await passed(0);
    expect(explainWait(flow, batch)?.text).toMatch(/^band -10: the endpoints it may go to are full/);
  });

  it('is told the same where the band is blocked by its head', async () => {
    const { send, passed, flow } = ownAndPaid({ holBlocking: 'band' });
    for (const name of ['a', 'b']) send(name);
    const waits = send('c', 100, 'y');
    await passed(80);
    expect(explainWait(flow, waits)?.text).toMatch(/^band 100 waits for own; may use paid in 120 ms/);
  });

  it('sees what went to each group, and what went there because own servers had no room', async () => {
    const { send, passed, flow, pool } = ownAndPaid();
    expect(makeFlow().flow.figures().groups).toEqual([]);
    for (const name of ['a', 'b', 'c']) send(name);
    await passed(200);
    pool.update('own-1', { state: 'ill' });
    expect(flow.figures().groups).toEqual([
      { group: 'own', available: 1, inFlight: 2, dispatched: 2, overflowed: 0 },
      { group: 'paid', available: 1, inFlight: 1, dispatched: 1, overflowed: 1 },
    ]);
    flow.reconfigure({ bands: [{ priority: 100, endpoints: ['paid'] }] });
    expect(flow.figures().groups).toMatchObject([{ group: 'paid', dispatched: 1, overflowed: 1 }]);
  });
});

describe('groups of endpoints in options', () => {
  const saturationDetector = concurrencyDetector();
  const pool = new EndpointPool();
  const issuesOf = (options: object): unknown => {
    try {
      resolveOptions({ saturationDetector, pool, ...options });
      return [];
    } catch (error) {
      return (error as { issues: { path: string; expected: string; got: string }[] }).issues.map(
        ({ path, expected, got }) => `${path}: ${expected}; got ${got}`,
      );
    }
  };

  it('have room of their own, and hold flows back by themselves', () => {
    const { headroom, holBlocking, bands: resolved } = resolveOptions({ saturationDetector, pool, bands });
    expect([headroom, holBlocking]).toEqual(['required', 'flow']);
    expect(resolved.map(({ endpoints }) => endpoints)).toEqual([
      [
        { group: 'own', afterMs: 0 },
        { group: 'paid', afterMs: 200 },
      ],
      undefined,
      [{ group: 'own', afterMs: 0 }],
    ]);
  });

  it.each([
    [[], ['bands[0].endpoints: at least one group of endpoints; got an empty list']],
    [
      [{ group: 'own', after: 5 }],
      ['bands[0].endpoints[0].after: no after, because the first group is used at once; got 5 (number)'],
    ],
    [['own', 'own'], ['bands[0].endpoints[1]: a group that does not stand before; got "own"']],
    [['own', ''], ['bands[0].endpoints[1]: the name of a group of endpoints; got "" (string)']],
    [
      ['own', { group: 'a', after: 9 }, { group: 'b', after: 5 }],
      ['bands[0].endpoints[2].after: at least the 9 ms of the group before it; got 5 (number)'],
    ],
    [
      ['own', { group: 'a', after: 'soon' }],
      ['bands[0].endpoints[1].after: ms from 0 up, Infinity, or a duration like "200ms"; got "soon" (string)'],
    ],
    ['own', ['bands[0].endpoints: an array; got "own" (string)']],
  ])('%j is an error', (endpoints, issues) => {
    expect(issuesOf({ bands: [{ priority: 1, endpoints }] })).toEqual(issues);
  });

  it('need a pool, and servers with room', () => {
    expect(issuesOf({ pool: undefined, headroom: 'preferred', defaultBand: { endpoints: ['own'] } })).toEqual([
      'headroom: "required", because bands name groups of endpoints; got "preferred"',
      'pool: an EndpointPool, for the groups of endpoints that bands name; got nothing',
    ]);
  });
});
