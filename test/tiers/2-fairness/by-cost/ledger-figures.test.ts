/** The ledger alone: what it notes, when it forgets, and how it divides what is owed. */
import { describe, expect, it } from 'vitest';
import { ServiceLedger } from '../../../../src/tiers/2-fairness/by-cost/service-ledger.js';
import { FakeFlow } from './fake-band.js';

const minuteMs = 60_000;
const flow = (fairnessId: string): FakeFlow => new FakeFlow(fairnessId, 1);

/** `[received, owed]` by fairness ID. */
function books(ledger: ServiceLedger, nowMs = 0): Record<string, [received: number, owed: number]> {
  return Object.fromEntries(
    ledger.figures(nowMs).flows.map(({ fairnessId, received, owed }) => [fairnessId, [received, owed]]),
  );
}

/** Names between slashes; every name above the last is asked for its weight once. */
function layered(weights: Record<string, number> = {}) {
  const asked: string[] = [];
  const ledger = new ServiceLedger(0, {
    pathOf: (fairnessId) => fairnessId.split('/'),
    weightOf: (path) => {
      asked.push(path.join('/'));
      return weights[path.join('/')] ?? 1;
    },
  });
  return { ledger, asked };
}

describe('the window of a ledger', () => {
  it('is the minute that has begun and the four before it', () => {
    const ledger = new ServiceLedger(0);
    for (let minute = 0; minute < 10; minute++) {
      const nowMs = minute * minuteMs;
      ledger.dispatched('a', 2 ** minute, nowMs, false);
      const { windowMs, flows } = ledger.figures(nowMs + 1);
      let inWindow = 0;
      for (let back = Math.max(minute - 4, 0); back <= minute; back++) inWindow += 2 ** back;
      expect([windowMs, flows]).toEqual([
        Math.min(4 * minuteMs, nowMs) + 1,
        [{ fairnessId: 'a', settled: 0, received: inWindow, owed: inWindow }],
      ]);
    }
    expect(books(ledger, 12 * minuteMs)).toEqual({ a: [2 ** 8 + 2 ** 9, 2 ** 8 + 2 ** 9] });
    expect(books(ledger, 13 * minuteMs)).toEqual({ a: [2 ** 9, 2 ** 9] });
    expect(books(ledger, 14 * minuteMs)).toEqual({});
  });

  it('begins with the ledger, whenever that is', () => {
    const ledger = new ServiceLedger(90_000);
    expect(ledger.figures(100_000).windowMs).toBe(10_000);
    expect(ledger.figures(90_000 + 10 * minuteMs).windowMs).toBe(4.5 * minuteMs);
    const early = new ServiceLedger(-90_000);
    early.dispatched('a', 5, -90_000, false);
    expect([early.figures(-80_000).windowMs, books(early, 2 * minuteMs), books(early, 3 * minuteMs)]).toEqual([
      10_000,
      { a: [5, 5] },
      {},
    ]);
  });

  it('divides at the full minute', () => {
    const ledger = new ServiceLedger(0);
    ledger.dispatched('a', 1, minuteMs - 1, false);
    ledger.dispatched('a', 2, minuteMs, false);
    expect(books(ledger, 5 * minuteMs - 1)).toEqual({ a: [3, 3] });
    expect(books(ledger, 5 * minuteMs)).toEqual({ a: [2, 2] });
  });

  it('keeps in sight who was owed something in it, though it received nothing, and forgets it then', () => {
    const ledger = new ServiceLedger(0);
    const [a, b] = [flow('a'), flow('b')];
    for (const each of [a, b]) ledger.activated(each, 1);
    ledger.dispatched('b', 10, minuteMs, true);
    for (const each of [a, b]) ledger.deactivated(each);
    expect(books(ledger, 5.5 * minuteMs)).toEqual({ a: [0, 5], b: [10, 5] });
    expect(books(ledger, 6 * minuteMs)).toEqual({});
  });

  it('keeps in sight who received something in it, though it was owed nothing', () => {
    const ledger = new ServiceLedger(0);
    ledger.activated(flow('b'), 1);
    ledger.corrected('a', 5, minuteMs);
    expect(books(ledger, 5.5 * minuteMs)).toEqual({ a: [5, 0], b: [0, 5] });
    expect(books(ledger, 6 * minuteMs)).toEqual({ b: [0, 0] });
  });

  it('keeps in sight who came in this minute, though nothing was charged', () => {
    const ledger = new ServiceLedger(0);
    const a = flow('a');
    ledger.activated(a, 1);
    ledger.deactivated(a);
    expect([books(ledger, minuteMs - 1), books(ledger, minuteMs)]).toEqual([{ a: [0, 0] }, {}]);
  });

  it('forgets a name above fairness IDs with the last of these, and not before', () => {
    const { ledger, asked } = layered();
    const held = flow('acme/search/2');
    ledger.dispatched('acme/search/1', 5, 0, false);
    ledger.activated(held, 1);
    expect(asked).toEqual(['acme', 'acme/search']);
    ledger.figures(10 * minuteMs);
    ledger.dispatched('acme/search/1', 5, 10 * minuteMs, false);
    expect(asked).toEqual(['acme', 'acme/search']);
    ledger.deactivated(held);
    expect(books(ledger, 20 * minuteMs)).toEqual({});
    ledger.dispatched('acme/search/1', 5, 20 * minuteMs, false);
    expect(asked).toEqual(['acme', 'acme/search', 'acme', 'acme/search']);
  });
});

describe('a cost', () => {
  it('is owed to all that are active when it is charged, by weight', () => {
    const ledger = new ServiceLedger(0);
    const [a, b] = [flow('a'), flow('b')];
    ledger.activated(a, 1);
    ledger.activated(b, 3);
    ledger.dispatched('a', 40, 0, true);
    ledger.deactivated(b);
    ledger.dispatched('a', 7, 0, true);
    ledger.activated(b, 1);
    ledger.dispatched('a', 10, 0, true);
    expect(books(ledger)).toEqual({ a: [57, 22], b: [0, 35] });
  });

  it('is owed to one that was the last to go as well', () => {
    const ledger = new ServiceLedger(0);
    const [a, b] = [flow('a'), flow('b')];
    for (const each of [a, b]) ledger.activated(each, 1);
    ledger.deactivated(a);
    ledger.dispatched('a', 10, 0, true);
    ledger.dispatched('b', 10, 0, true);
    expect(books(ledger)).toEqual({ a: [10, 5], b: [10, 15] });
  });

  it('is owed to itself, of a request that found nothing in its way, whoever waits', () => {
    const ledger = new ServiceLedger(0);
    ledger.activated(flow('a'), 1);
    ledger.dispatched('b', 10, 0, false);
    expect(books(ledger)).toEqual({ a: [0, 0], b: [10, 10] });
  });

  it('of several flows of a fairness ID goes to that once, with the weight of the first, until the last leaves', () => {
    const ledger = new ServiceLedger(0);
    const [first, second, other] = [flow('a'), flow('a'), flow('b')];
    ledger.activated(first, 1);
    ledger.activated(second, 5);
    ledger.activated(other, 1);
    ledger.dispatched('b', 10, 0, true);
    ledger.deactivated(first);
    ledger.dispatched('b', 10, 0, true);
    ledger.deactivated(second);
    ledger.dispatched('b', 10, 0, true);
    expect(books(ledger)).toEqual({ a: [0, 10], b: [30, 20] });
  });

  it('is not lost count of when a flow leaves that never came', () => {
    const ledger = new ServiceLedger(0);
    const [a, b] = [flow('a'), flow('b')];
    ledger.activated(a, 1);
    ledger.dispatched('b', 1, 0, false);
    ledger.deactivated(b);
    ledger.deactivated(flow('unknown'));
    ledger.dispatched('a', 10, 0, true);
    expect(books(ledger)).toEqual({ a: [10, 10], b: [1, 1] });
    ledger.corrected('b', 4, 0);
    expect(books(ledger)).toEqual({ a: [10, 14], b: [5, 1] });
  });

  it('of one that has left goes by the weight with which it came first', () => {
    const ledger = new ServiceLedger(0);
    const [first, second] = [flow('a'), flow('a')];
    ledger.activated(flow('b'), 1);
    ledger.activated(first, 1);
    ledger.activated(second, 3);
    for (const each of [first, second]) ledger.deactivated(each);
    ledger.dispatched('a', 40, 0, true);
    expect(books(ledger)).toEqual({ b: [0, 20], a: [40, 20] });
  });

  it('is divided exactly when those of odd weights have come and gone', () => {
    const ledger = new ServiceLedger(0);
    const [a, b] = [flow('a'), flow('b')];
    ledger.activated(a, 0.1);
    ledger.activated(b, 0.2);
    for (const each of [a, b]) ledger.deactivated(each);
    ledger.activated(a, 0.1);
    ledger.dispatched('a', 100, 0, true);
    expect(books(ledger).a).toEqual([100, 100]);
  });
});

describe('a correction', () => {
  it('is divided among those that are active then, or owed to its own where none is', () => {
    const ledger = new ServiceLedger(0);
    const b = flow('b');
    ledger.dispatched('a', 100, 0, false);
    ledger.corrected('a', -40, 0);
    expect(books(ledger)).toEqual({ a: [60, 60] });
    ledger.activated(b, 1);
    ledger.corrected('a', 20, 0);
    expect(books(ledger)).toEqual({ a: [80, 60], b: [0, 20] });
  });

  it('at the end of a request counts what that cost as settled', () => {
    const ledger = new ServiceLedger(0);
    ledger.dispatched('a', 100, 0, false);
    ledger.ended('a', -30, 70, 0);
    ledger.ended('a', 0, 5, 0);
    expect(ledger.figures(0).flows).toEqual([{ fairnessId: 'a', settled: 75, received: 70, owed: 70 }]);
  });

  it('of nothing makes no account', () => {
    const ledger = new ServiceLedger(0);
    ledger.corrected('a', 0, 0);
    expect(books(ledger)).toEqual({});
  });
});

describe('fairness by a ledger', () => {
  it('is that of what was received for each unit owed', () => {
    const ledger = new ServiceLedger(0);
    ledger.activated(flow('a'), 1);
    ledger.activated(flow('b'), 3);
    ledger.dispatched('a', 40, 0, true);
    ledger.dispatched('b', 80, 0, true);
    expect(books(ledger)).toEqual({ a: [40, 30], b: [80, 90] });
    // Ratios 12/9 and 8/9.
    expect(ledger.figures(0).fairnessIndex).toBeCloseTo(25 / 26);
  });

  it('takes what was more than given back for nothing received, and leaves out those that were owed nothing', () => {
    const ledger = new ServiceLedger(0);
    for (const each of [flow('a'), flow('b')]) ledger.activated(each, 1);
    ledger.dispatched('b', 100, 0, true);
    ledger.corrected('a', -50, 0);
    expect(books(ledger)).toEqual({ a: [-50, 25], b: [100, 25] });
    // Ratios 0 and 4.
    expect(ledger.figures(0).fairnessIndex).toBe(0.5);
    ledger.deactivated(flow('b'));
    ledger.activated(flow('late'), 1);
    expect(ledger.figures(0).fairnessIndex).toBe(0.5);
  });
});

describe('levels of a ledger', () => {
  it('divide from the top down, by the weights of names and of flows', () => {
    const { ledger } = layered({ acme: 3 });
    for (const [id, weight] of [
      ['acme/1', 1],
      ['acme/2', 2],
      ['globex/1', 1],
      ['short', 1],
    ] as const) {
      ledger.activated(flow(id), weight);
    }
    ledger.dispatched('short', 50, 0, true);
    expect(books(ledger)).toEqual({ 'acme/1': [0, 10], 'acme/2': [0, 20], 'globex/1': [0, 10], short: [50, 10] });
  });

  it('owe nothing to a name below which nothing is active any more, and everything again when something is', () => {
    const { ledger } = layered();
    const [one, two] = [flow('acme/1'), flow('acme/2')];
    for (const each of [one, two, flow('globex/1')]) ledger.activated(each, 1);
    ledger.deactivated(one);
    ledger.dispatched('globex/1', 10, 0, true);
    ledger.deactivated(two);
    ledger.dispatched('globex/1', 10, 0, true);
    ledger.activated(one, 1);
    ledger.dispatched('globex/1', 10, 0, true);
    expect(books(ledger)).toEqual({ 'acme/1': [0, 5], 'acme/2': [0, 5], 'globex/1': [30, 20] });
  });

  it('owe one that comes nothing of what was charged before', () => {
    const { ledger } = layered();
    ledger.activated(flow('acme/1'), 1);
    ledger.dispatched('acme/1', 10, 0, true);
    for (const id of ['acme/2', 'globex/1']) ledger.activated(flow(id), 1);
    expect(books(ledger)).toEqual({ 'acme/1': [10, 10], 'acme/2': [0, 0], 'globex/1': [0, 0] });
  });
});

describe('fairness IDs beyond the first thousand', () => {
  it('have one account, whose share is the sum of theirs', () => {
    const ledger = new ServiceLedger(0);
    for (let i = 0; i < 1000; i++) ledger.dispatched(`t${i}`, 1, 0, false);
    const [s1, s2, t0] = [flow('s1'), flow('s2'), flow('t0')];
    ledger.activated(s1, 2);
    ledger.activated(s2, 1);
    ledger.activated(t0, 1);
    const owed = (): number[] => [ledger.figures(0).others.owed, (books(ledger).t0 as [number, number])[1]];
    ledger.dispatched('t0', 40, 0, true);
    expect(owed()).toEqual([30, 11]);
    ledger.deactivated(s1);
    ledger.dispatched('t0', 40, 0, true);
    expect(owed()).toEqual([50, 31]);
    ledger.deactivated(s2);
    ledger.deactivated(s2);
    ledger.dispatched('t0', 40, 0, true);
    expect(owed()).toEqual([50, 71]);
    ledger.deactivated(t0);
    ledger.dispatched('s1', 7, 0, true);
    expect([ledger.figures(0).others, ledger.figures(0).flows.length]).toEqual([
      { settled: 0, received: 7, owed: 57 },
      1000,
    ]);
  });

  it('are told apart again as the silent are forgotten, and their account keeps to the window', () => {
    const ledger = new ServiceLedger(0);
    for (let i = 0; i < 1000; i++) ledger.dispatched(`t${i}`, 1, 0, false);
    ledger.dispatched('stray', 7, 0, false);
    expect(ledger.figures(minuteMs)).toMatchObject({ others: { settled: 0, received: 7, owed: 7 } });
    const { flows, others } = ledger.figures(5 * minuteMs);
    expect([flows, others]).toEqual([[], { settled: 0, received: 0, owed: 0 }]);
    ledger.dispatched('stray', 3, 5 * minuteMs, false);
    expect(books(ledger, 5 * minuteMs)).toEqual({ stray: [3, 3] });
  });

  it('go on being owed by the account they came into, though there is room by now', () => {
    const ledger = new ServiceLedger(0);
    for (let i = 0; i < 1000; i++) ledger.dispatched(`t${i}`, 1, 0, false);
    const [stray, late] = [flow('stray'), flow('late')];
    ledger.activated(stray, 3);
    ledger.figures(5 * minuteMs);
    ledger.activated(late, 1);
    ledger.dispatched('late', 40, 5 * minuteMs, true);
    expect([books(ledger, 5 * minuteMs), ledger.figures(5 * minuteMs).others.owed]).toEqual([{ late: [40, 10] }, 30]);
    ledger.deactivated(stray);
    ledger.dispatched('late', 40, 5 * minuteMs, true);
    expect([books(ledger, 5 * minuteMs), ledger.figures(5 * minuteMs).others.owed]).toEqual([{ late: [80, 50] }, 30]);
  });

  it('share among them by odd weights, and are owed nothing once the last has left', () => {
    const ledger = new ServiceLedger(0);
    for (let i = 0; i < 1000; i++) ledger.dispatched(`t${i}`, 1, 0, false);
    const strays = [0.1, 0.2, 0.3].map((weight, i) => ({ weight, flow: flow(`s${i}`) }));
    for (const stray of strays) ledger.activated(stray.flow, stray.weight);
    for (const stray of strays) ledger.deactivated(stray.flow);
    const t0 = flow('t0');
    ledger.activated(t0, 1);
    ledger.dispatched('t0', 100, 0, true);
    expect(ledger.figures(0).others.owed).toBe(0);
    expect(books(ledger).t0).toEqual([101, 101]);
  });
});
