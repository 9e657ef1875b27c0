import { describe, expect, it } from 'vitest';
import { Session, SessionTable } from '../../../src/constraints/sessions/session-table.js';
import { fakeEndpoint } from '../../support/fake-pool.js';

const [a, b] = [fakeEndpoint('a'), fakeEndpoint('b')];
const inactivityMs = 1000;

function make(): SessionTable {
  return new SessionTable(inactivityMs);
}

/** A session whose first turn runs at `a`. */
function begun(table: SessionTable, key: string, tokens = 10, prefix?: Session['prefix']): Session {
  const session = new Session(key, prefix);
  table.began(session, a, tokens);
  return session;
}

describe('a session', () => {
  it('is resident from its first turn until it has been idle for its time', () => {
    const table = make();
    const session = begun(table, 's');
    expect([table.get('s'), table.size, table.nextEndAtMs]).toEqual([session, 1, Number.POSITIVE_INFINITY]);
    table.sweep(1e9);
    expect(table.size).toBe(1);
    table.ended(session, 500, true);
    expect(table.nextEndAtMs).toBe(1500);
    table.sweep(1499);
    expect(table.size).toBe(1);
    table.sweep(1500);
    expect([table.get('s'), table.size, table.tokensAt(a)]).toEqual([undefined, 0, 0]);
  });

  it('begins its idle time anew with each turn, and ends after those that fell idle before it', () => {
    const table = make();
    const [first, second] = [begun(table, 'first'), begun(table, 'second')];
    table.ended(first, 0, true);
    table.ended(second, 100, true);
    table.began(first, a, 10);
    expect(table.nextEndAtMs).toBe(1100);
    table.ended(first, 200, true);
    table.sweep(1100);
    expect([table.get('first'), table.get('second')]).toEqual([first, undefined]);
    expect(table.nextEndAtMs).toBe(1200);
  });

  it('is not idle while another turn of it runs', () => {
    const table = make();
    const session = begun(table, 's');
    table.began(session, a, 10);
    expect([table.ended(session, 0, true), table.nextEndAtMs]).toEqual([false, Number.POSITIVE_INFINITY]);
    table.ended(session, 50, true);
    expect(table.nextEndAtMs).toBe(1050);
  });

  it('ends at once where it is told to and idle, and otherwise with its last turn', () => {
    const table = make();
    const [idle, busy] = [begun(table, 'idle'), begun(table, 'busy')];
    table.ended(idle, 0, true);
    expect([table.end(idle), table.end(busy)]).toEqual([true, false]);
    expect([table.get('idle'), table.get('busy')]).toEqual([undefined, busy]);
    expect([table.ended(busy, 0, true), table.size]).toEqual([true, 0]);
  });

  it('that was told to end lives on when it takes another turn', () => {
    const table = make();
    const session = begun(table, 's');
    table.end(session);
    table.began(session, a, 10);
    table.ended(session, 0, true);
    table.ended(session, 0, true);
    expect(table.get('s')).toBe(session);
  });

  it('of which nothing was ever sent ends with its turn, and one that was served once stays', () => {
    const table = make();
    const [never, once] = [begun(table, 'never'), begun(table, 'once')];
    table.ended(never, 0, false);
    table.ended(once, 0, true);
    table.began(once, a, 10);
    table.ended(once, 5, false);
    expect([table.get('never'), table.get('once')]).toEqual([undefined, once]);
  });

  it('that is gone takes nothing with it when it is told to end once more', () => {
    const table = make();
    const old = begun(table, 's');
    table.ended(old, 0, true);
    table.end(old);
    const young = begun(table, 's', 70);
    expect(table.end(old)).toBe(false);
    expect([table.get('s'), table.tokensAt(a)]).toEqual([young, 70]);
  });
});

describe('a session of which another replica tells', () => {
  it('is resident there until it ends, or has a turn here', () => {
    const table = make();
    const [ending, coming] = [new Session('ending', undefined), new Session('coming', undefined)];
    for (const session of [ending, coming]) table.adopt(session, a.id, 10);
    expect([table.size, table.idleSize, table.elsewhereSize, table.tokens]).toEqual([2, 0, 2, 20]);
    expect([table.end(ending), table.elsewhereSize, table.tokens]).toEqual([true, 1, 10]);
    table.began(coming, a, 10);
    expect([table.size, table.elsewhereSize]).toEqual([1, 0]);
  });

  it('was served there, and stays when nothing of its turn here is sent', () => {
    const table = make();
    const session = new Session('s', undefined);
    table.adopt(session, a.id, 10);
    table.began(session, b, 10);
    expect([table.ended(session, 0, false), table.get('s')]).toEqual([false, session]);
  });
});

describe('what an endpoint holds', () => {
  it('is the largest context of each of its sessions', () => {
    const table = make();
    const session = begun(table, 's', 100);
    begun(table, 't', 5);
    table.began(session, a, 40);
    expect(table.tokensAt(a)).toBe(105);
    table.grew(session, 90);
    expect(table.tokensAt(a)).toBe(105);
    table.grew(session, 130);
    expect([table.tokensAt(a), table.tokensAt(b)]).toEqual([135, 0]);
  });

  it('goes along with a session that goes elsewhere', () => {
    const table = make();
    const session = begun(table, 's', 100);
    table.settleAt(b.id, session, 120);
    expect([table.tokensAt(a), table.tokensAt(b), table.tokens]).toEqual([0, 120, 120]);
  });

  it('does not grow for a session that is gone', () => {
    const table = make();
    const session = begun(table, 's', 100);
    table.ended(session, 0, true);
    table.end(session);
    table.grew(session, 500);
    expect([table.tokensAt(a), table.tokens]).toEqual([0, 0]);
  });

  it('is one token at least for each session, so that those of unknown size are bounded too', () => {
    const table = make();
    begun(table, 's', 0);
    begun(table, 't', 3, { id: 'system', tokens: 50 });
    expect(table.tokensAt(a)).toBe(1 + 1 + 50);
  });

  it('counts a prefix once for all that have it, until the last of them is gone', () => {
    const table = make();
    const prefix = { id: 'system', tokens: 50 };
    const [first, second] = [begun(table, 'first', 60, prefix), begun(table, 'second', 70, { ...prefix, tokens: 40 })];
    begun(table, 'other', 30, { id: 'other', tokens: 20 });
    // 10 + 30 beside the prefix of 50, and 10 beside the one of 20.
    expect([table.tokensAt(a), table.tokens]).toEqual([120, 10 + 30 + 50 + 10 + 20]);
    for (const session of [first, second]) table.ended(session, 0, true);
    table.end(first);
    expect(table.tokensAt(a)).toBe(30 + 50 + 30);
    table.end(second);
    expect([table.tokensAt(a), table.tokens]).toEqual([30, 30]);
  });

  it('is foretold for a session that may come', () => {
    const table = make();
    const prefix = { id: 'system', tokens: 50 };
    const resident = begun(table, 'first', 60, prefix);
    expect(table.tokensWith(a, new Session('new', prefix), 80)).toBe(60 + 30);
    expect(table.tokensWith(b, new Session('new', prefix), 80)).toBe(80);
    expect(table.tokensWith(b, new Session('new', undefined), 80)).toBe(80);
    // Its own context is known by now.
    expect(table.tokensWith(b, resident, 5)).toBe(60);
  });
});
