import { describe, expect, it } from 'vitest';
import type { SessionClaim } from '../../../src/constraints/sessions/session-sharing.js';
import { type EndpointView, FlowConfigError, sessionLimit } from '../../../src/index.js';
import type { SeatView, SessionLimitOptions } from '../../../src/types/index.js';
import { fakeEndpoint } from '../../support/fake-pool.js';
import { fakeSeat } from '../../support/fake-seat.js';

const [a, b] = [fakeEndpoint('a'), fakeEndpoint('b')];
const inactivity = 1000;

/** A limit that is shared with whoever notes what it tells. */
function shared(limits: SessionLimitOptions = { maxSessions: 5 }) {
  const told: string[] = [];
  const limit = sessionLimit({
    inactivity,
    by: ({ request }) => String(Reflect.get(request as object, 'session')),
    ...limits,
  });
  let announced = 0;
  limit.subscribe?.(() => announced++);
  const sharing = limit.share({
    nameOf: (key) => `<${key}>`,
    held: ({ key, endpoint, tokens, prefix }, isNew) => {
      const shown = prefix === undefined ? '' : ` with ${prefix.id} of ${prefix.tokens}`;
      told.push(`${key} at ${endpoint}: ${tokens}${shown}${isNew ? ', new' : ''}`);
    },
    ended: ({ key }, isUnsent) => told.push(`${key} ended${isUnsent ? ', unsent' : ''}`),
  });
  const begin = (
    session: string,
    endpoint: EndpointView = a,
    nowMs = 0,
    tokens = 10,
    seat: Partial<SeatView> = {},
  ): SeatView => {
    const taken = fakeSeat({ request: { session }, tokens }, seat);
    limit.dispatched?.(endpoint, nowMs, taken);
    return taken;
  };
  const room = (session: string, endpoints = [a, b], tokens = 10): string[] =>
    (limit.withRoomFor?.(endpoints, fakeSeat({ request: { session }, tokens }).item, 0) ?? []).map(({ id }) => id);
  const take = (): string[] => told.splice(0);
  return { limit, sharing, begin, room, take, figures: () => limit.sessions([], 0), heard: () => announced };
}

const claim = (name: string, more: Partial<SessionClaim> = {}): SessionClaim => ({
  name: `<${name}>`,
  endpoint: 'a',
  tokens: 50,
  prefix: undefined,
  forMs: 1000,
  ...more,
});

describe('a limit that is shared', () => {
  it('says how long its sessions stay and how many there may be, and is shared once', () => {
    const { limit, sharing } = shared({ maxSessions: 7 });
    expect([sharing.inactivityMs, sharing.maxSessions]).toEqual([1000, 7]);
    expect(shared({ footprint: 100 }).sharing.maxSessions).toBe(Number.POSITIVE_INFINITY);
    const again = (): unknown => limit.share({ nameOf: String, held: () => {}, ended: () => {} });
    expect(again).toThrow(FlowConfigError);
    expect(again).toThrow('sessionLimit: share: expected a limit that is shared once; got one that is shared');
  });

  it('tells of each turn, move and growth of a session, and of its first turn that it is new', () => {
    const { limit, begin, take } = shared();
    const seat = begin('s');
    begin('s', a, 0, 30);
    expect(take()).toEqual(['<s> at a: 10, new', '<s> at a: 30']);
    limit.dispatched?.(b, 0, seat);
    expect(take()).toEqual(['<s> at b: 30']);
    const grown = { ...seat, usage: { promptTokens: 40, completionTokens: 2 } };
    limit.reported?.(b, 0, Object.assign(seat, grown));
    expect(take()).toEqual(['<s> at b: 42']);
    limit.reported?.(a, 0, seat);
    expect(take()).toEqual([]);
  });

  it('tells of the end of a session, and whether nothing of it was sent', () => {
    const { limit, begin, take } = shared();
    limit.released?.(a, 0, begin('unsent', a, 0, 10, { isUnsent: true }));
    const last = begin('last');
    limit.released?.(a, 0, last);
    const leaving = begin('leaving');
    take();
    limit.sessionEnded?.(a, 0, last);
    expect(take()).toEqual(['<last> ended']);
    limit.sessionEnded?.(a, 0, leaving);
    expect(take()).toEqual([]);
    limit.released?.(a, 0, leaving);
    expect(take()).toEqual(['<leaving> ended']);
    limit.released?.(a, 0, begin('unsent', a, 0, 10, { isUnsent: true }));
    expect(take()).toEqual(['<unsent> at a: 10, new', '<unsent> ended, unsent']);
  });

  it('does not tell of sessions that stay idle for their time: the others count it by themselves', () => {
    const { limit, begin, take } = shared();
    limit.released?.(a, 0, begin('s'));
    take();
    expect([limit.residentSessions(1000), take()]).toEqual([0, []]);
  });

  it('names shared prefixes as it names sessions', () => {
    const { begin, take } = shared({ footprint: 1000, sharedPrefix: () => ({ id: 'system', tokens: 4 }) });
    begin('s');
    expect(take()).toEqual(['<s> at a: 10 with <system> of 4, new']);
  });

  it('keeps its names when it is shared no longer, and tells nothing', () => {
    const { limit, sharing, begin, take } = shared();
    const seat = begin('s');
    take();
    sharing.stop();
    begin('s', b);
    expect(limit.residentSessions(0)).toBe(1);
    limit.sessionEnded?.(a, 0, seat);
    limit.released?.(b, 0, seat);
    expect(take()).toEqual([]);
    expect(sharing.own(0).map(([{ key }]) => key)).toEqual(['<s>']);
  });
});

describe('a session from elsewhere', () => {
  it('counts, and goes on where it was', () => {
    const { limit, sharing, room, figures, heard, begin, take } = shared({ maxSessions: 1 });
    expect(sharing.adopt(claim('s', { endpoint: 'b' }), 0)).toBe(true);
    expect(figures()).toMatchObject({ resident: 1, elsewhere: 1, idle: 0, tokens: 50 });
    expect([limit.tokensAt(b, 0), heard()]).toEqual([50, 1]);
    expect([room('s'), room('s', [a]), room('t')]).toEqual([['b'], ['a'], []]);
    begin('s', b);
    expect([figures().elsewhere, take(), room('s')]).toEqual([0, ['<s> at b: 50, new'], ['a', 'b']]);
  });

  it('is moved and grows as it is told of, without a word to those that wait', () => {
    const { limit, sharing, heard } = shared({ footprint: 1000 });
    const prefix = { id: '<system>', tokens: 20 };
    sharing.adopt(claim('s', { prefix }), 0);
    sharing.adopt(claim('s', { endpoint: 'b', tokens: 70, prefix }), 0);
    expect([limit.tokensAt(a, 0), limit.tokensAt(b, 0), heard()]).toEqual([0, 70, 1]);
    sharing.adopt(claim('t', { endpoint: 'b', prefix }), 0);
    expect(limit.tokensAt(b, 0)).toBe(70 + 30);
  });

  it('stays this replica’s own while a turn runs here', () => {
    const { sharing, begin, figures } = shared();
    begin('s');
    expect(sharing.adopt(claim('s', { endpoint: 'b' }), 0)).toBe(false);
    expect(figures()).toMatchObject({ resident: 1, elsewhere: 0 });
  });

  it('stays this replica’s own where its last turn here ended later', () => {
    const { limit, sharing, begin, figures, room } = shared();
    limit.released?.(a, 0, begin('s'));
    // Idle for 400 of 1000 ms.
    expect(sharing.adopt(claim('s', { endpoint: 'b', forMs: 599 }), 400)).toBe(false);
    expect([figures().elsewhere, room('s')]).toEqual([0, ['a', 'b']]);
    expect(sharing.adopt(claim('s', { endpoint: 'b', forMs: 600 }), 400)).toBe(true);
    expect([figures().elsewhere, room('s')]).toEqual([1, ['b']]);
    // It is nobody's own here any more: whatever is told of it is newer.
    expect(sharing.adopt(claim('s', { endpoint: 'a', forMs: 1 }), 400)).toBe(true);
    expect(room('s')).toEqual(['a']);
  });

  it('is forgotten by this replica’s own clock before it is looked for', () => {
    const { limit, sharing, begin, heard } = shared();
    limit.released?.(a, 0, begin('s'));
    const before = heard();
    sharing.adopt(claim('s'), 1000);
    expect([limit.sessions([], 1000).expired, heard() - before]).toEqual([1, 1]);
  });
});

describe('a session that ended elsewhere', () => {
  it('ends here, and whoever waits is told', () => {
    const { limit, sharing, begin, heard, take } = shared();
    limit.released?.(a, 0, begin('idle'));
    sharing.adopt(claim('there'), 0);
    take();
    const before = heard();
    expect([
      sharing.release('<idle>', false),
      sharing.release('<there>', false),
      sharing.release('<stranger>', false),
    ]).toEqual([true, true, false]);
    expect([limit.residentSessions(0), heard() - before, take()]).toEqual([0, 2, []]);
  });

  it('with a turn here ends with that, and is resident for the others until then', () => {
    const { limit, sharing, begin, heard, take } = shared();
    const seat = begin('s');
    take();
    const before = heard();
    expect(sharing.release('<s>', false)).toBe(false);
    expect([limit.residentSessions(0), heard() - before, take()]).toEqual([1, 0, ['<s> at a: 10, new']]);
    limit.released?.(a, 0, seat);
    expect([limit.residentSessions(0), take()]).toEqual([0, ['<s> ended']]);
  });

  it('because nothing of it was sent is left alone where it has, or had, a turn', () => {
    const { limit, sharing, begin, take } = shared();
    const seat = begin('running');
    limit.released?.(a, 0, begin('idle'));
    sharing.adopt(claim('there'), 0);
    take();
    const ended = ['<running>', '<idle>', '<there>'].map((name) => sharing.release(name, true));
    expect([ended, limit.residentSessions(0)]).toEqual([[false, false, true], 2]);
    // The others are told that it is resident, and it does not end with this turn.
    expect(take()).toEqual(['<running> at a: 10, new']);
    limit.released?.(a, 0, seat);
    expect([limit.residentSessions(0), take()]).toEqual([2, []]);
  });
});

describe('the sessions of a replica’s own', () => {
  it('are those that run here for their whole time, and those that are idle for what is left of it', () => {
    const { limit, sharing, begin } = shared();
    begin('running');
    limit.released?.(a, 0, begin('expired'));
    limit.released?.(a, 100, begin('idle'));
    sharing.adopt(claim('there'), 0);
    expect(sharing.own(1000).map(([{ key, endpoint, tokens }, forMs]) => [key, endpoint, tokens, forMs])).toEqual([
      ['<running>', 'a', 10, 1000],
      ['<idle>', 'a', 10, 100],
    ]);
  });
});
