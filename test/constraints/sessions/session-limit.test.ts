import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  FlowConfigError,
  FlowController,
  type FlowControllerOptions,
  type FlowRequest,
  type Lease,
  overviewOf,
  sessionLimit,
} from '../../../src/index.js';
import { audit, ManualClock } from '../../../src/testing/index.js';
import type { SessionLimitOptions } from '../../../src/types/index.js';
import { fakeEndpoint } from '../../support/fake-pool.js';
import { fakeSeat } from '../../support/fake-seat.js';
import { turns } from '../../support/flow.js';

interface Turn extends FlowRequest {
  readonly sessionId?: string;
}

interface Sent {
  readonly name: string;
  readonly abort: () => void;
}

function setUp(limits: SessionLimitOptions, options: Partial<FlowControllerOptions> = {}, endpoints = ['a']) {
  const clock = new ManualClock();
  const pool = new EndpointPool();
  for (const id of endpoints) pool.add(id);
  const limit = sessionLimit(limits);
  const seats = { saturationDetector: concurrencyDetector({ maxConcurrency: 100 }), constraints: [limit] };
  const flow = new FlowController({ clock, pool, ...seats, defaultRequestTtl: 0, ...options });
  const running = new Map<string, Lease>();
  const order: string[] = [];
  /** A turn of `session`; its lease is under `name` while it runs. */
  const send = (
    session: string | undefined,
    name: string,
    { fairnessId = 'tenant', priority = 0, tokens = 0 } = {},
  ): Sent => {
    const abort = new AbortController();
    const request: Turn = {
      byteSize: 1,
      tokens,
      signal: abort.signal,
      ...(session !== undefined && { sessionId: session }),
    };
    void flow.enqueue(request, { fairnessId, priority }).then((outcome) => {
      if (outcome.type !== 'Dispatched') return;
      order.push(name);
      running.set(name, outcome.lease);
    });
    return { name, abort: () => abort.abort() };
  };
  const end = (name: string, isLast = false): void => {
    const lease = running.get(name);
    if (isLast) lease?.endSession();
    lease?.release();
  };
  const resident = (): number => limit.residentSessions(clock.now());
  return { clock, pool, flow, limit, running, order, send, end, resident };
}

describe('sessions that are resident', () => {
  it('lets turns of resident sessions pass, and turns of new ones wait until one ended', async () => {
    const { send, end, order, resident, flow } = setUp({ maxSessions: 2 });
    send('s1', 's1.1');
    send('s2', 's2.1');
    send('s3', 's3.1');
    await turns();
    end('s1.1');
    send('s1', 's1.2');
    await turns();
    expect(order).toEqual(['s1.1', 's2.1', 's1.2']);
    expect(audit(flow).violations).toEqual([]);
    end('s1.2', true);
    await turns();
    expect(order).toEqual(['s1.1', 's2.1', 's1.2', 's3.1']);
    expect(resident()).toBe(2);
    expect(audit(flow).violations).toEqual([]);
  });

  it('lets a resident turn that waited for a seat pass the new session before it in its own flow', async () => {
    const limit = sessionLimit({ maxSessions: 1 });
    const saturationDetector = concurrencyDetector({ maxConcurrency: 1 });
    const constraints = [limit];
    const { send, end, order } = setUp({ maxSessions: 1 }, { saturationDetector, constraints });
    send('s1', 's1.1');
    await turns();
    send('s2', 's2.1');
    send('s1', 's1.2');
    await turns();
    end('s1.1');
    await turns();
    expect(order).toEqual(['s1.1', 's1.2']);
    end('s1.2', true);
    await turns();
    expect(order).toEqual(['s1.1', 's1.2', 's2.1']);
  });

  it('lets resident turns of a lower band pass new sessions of a higher one', async () => {
    const { send, order } = setUp({ maxSessions: 1 });
    send('s1', 's1.1', { priority: -1 });
    send('s2', 's2.1', { priority: 5 });
    await turns();
    send('s1', 's1.2', { priority: -1 });
    await turns();
    expect(order).toEqual(['s1.1', 's1.2']);
  });

  it('takes in the sessions that were held back longest first, over all tenants', async () => {
    const { send, end, order, clock } = setUp({ maxSessions: 1 });
    send('s0', 's0');
    for (const [session, fairnessId] of [
      ['s1', 'x'],
      ['s2', 'x'],
      ['s3', 'y'],
      ['s4', 'x'],
      ['s5', 'z'],
    ] as const) {
      clock.advance(10);
      send(session, session, { fairnessId });
    }
    for (const session of ['s0', 's1', 's2', 's3', 's4']) {
      await turns();
      end(session, true);
    }
    await turns();
    expect(order).toEqual(['s0', 's1', 's2', 's3', 's4', 's5']);
  });

  it('lets requests without a session pass', async () => {
    const { send, order } = setUp({ maxSessions: 1 });
    send('s1', 's1');
    send('s2', 's2');
    send(undefined, 'alone');
    await turns();
    expect(order).toEqual(['s1', 'alone']);
  });

  it('tells the sessions of tenants apart that chose the same name', async () => {
    const { send, order } = setUp({ maxSessions: 1 });
    send('s', 'x', { fairnessId: 'x' });
    send('s', 'y', { fairnessId: 'y' });
    await turns();
    expect(order).toEqual(['x']);
  });

  it('takes the fairness ID, or what a function says, for the session', async () => {
    const byTenant = setUp({ maxSessions: 1, by: 'fairnessId' });
    byTenant.send(undefined, 'x', { fairnessId: 'x' });
    byTenant.send(undefined, 'y', { fairnessId: 'y' });
    const byFunction = setUp({ maxSessions: 1, by: ({ priority }) => `p${priority}` });
    byFunction.send(undefined, 'p1', { priority: 1 });
    byFunction.send(undefined, 'p2', { priority: 2 });
    byFunction.send(undefined, 'p1 again', { priority: 1, fairnessId: 'other' });
    await turns();
    expect([byTenant.order, byFunction.order]).toEqual([['x'], ['p1', 'p1 again']]);
  });
});

describe('the end of a session', () => {
  it('comes at the very instant at which its inactivity lease is over, counted from the end of its last turn', async () => {
    const { send, end, order, clock } = setUp({ maxSessions: 1, inactivity: '30m' });
    send('s1', 's1.1');
    send('s2', 's2.1');
    clock.advance(3_600_000);
    await turns();
    expect(order).toEqual(['s1.1']);
    end('s1.1');
    clock.advance(1_799_999);
    await turns();
    expect(order).toEqual(['s1.1']);
    clock.advance(1);
    await turns();
    expect(order).toEqual(['s1.1', 's2.1']);
  });

  it('comes with the last of its running turns where it is told before', async () => {
    const { send, end, order, running } = setUp({ maxSessions: 1 });
    send('s1', 's1.1');
    send('s1', 's1.2');
    send('s2', 's2.1');
    await turns();
    running.get('s1.1')?.endSession();
    end('s1.1');
    await turns();
    expect(order).toEqual(['s1.1', 's1.2']);
    end('s1.2');
    await turns();
    expect(order).toEqual(['s1.1', 's1.2', 's2.1']);
  });

  it('may be told after the lease was released, and a late word does not end a session of the same name', async () => {
    const { send, end, order, running, resident } = setUp({ maxSessions: 1 });
    send('s1', 'first');
    send('s2', 's2');
    await turns();
    end('first');
    running.get('first')?.endSession();
    await turns();
    end('s2', true);
    send('s1', 'second');
    await turns();
    expect(order).toEqual(['first', 's2', 'second']);
    end('second');
    running.get('first')?.endSession();
    expect(resident()).toBe(1);
  });

  it('comes at once for a session of which nothing reached a server', async () => {
    const { send, end, order, running } = setUp({ maxSessions: 1 });
    send('s1', 's1');
    send('s2', 's2');
    await turns();
    running.get('s1')?.unsent();
    end('s1');
    await turns();
    expect(order).toEqual(['s1', 's2']);
  });

  it('gives everything back, so that no pause lasts for ever', async () => {
    const { send, end, order, limit, pool, clock } = setUp({ footprint: 1000 });
    for (let round = 0; round < 50; round++) {
      send(`s${round}`, `s${round}`, { tokens: 600 });
      await turns();
      end(`s${round}`, round % 2 === 0);
      if (round % 2 === 1) clock.advance(1_800_000);
      await turns();
    }
    expect(order).toHaveLength(50);
    expect(limit.tokensAt(pool.get('a')!, clock.now())).toBe(0);
  });
});

describe('the footprint of sessions', () => {
  it('holds new sessions back where those of the endpoint, idle ones too, would exceed its cache', async () => {
    const { send, end, order } = setUp({ footprint: 1000 }, {}, ['a', 'b']);
    send('s1', 's1', { tokens: 600 });
    send('s2', 's2', { tokens: 600 });
    send('s3', 's3', { tokens: 600 });
    send('s4', 's4', { tokens: 400 });
    await turns();
    end('s1');
    await turns();
    expect(order).toEqual(['s1', 's2', 's4']);
    end('s2', true);
    await turns();
    expect(order).toEqual(['s1', 's2', 's4', 's3']);
  });

  it('counts the largest context of a session once, as far as the host reports it', async () => {
    const { send, running, limit, pool, clock } = setUp({ footprint: 1000 });
    const tokens = (): number => limit.tokensAt(pool.get('a')!, clock.now());
    send('s1', 's1.1', { tokens: 300 });
    send('s1', 's1.2', { tokens: 200 });
    await turns();
    expect(tokens()).toBe(300);
    running.get('s1.2')?.report({ promptTokens: 500, completionTokens: 250 });
    expect(tokens()).toBe(750);
  });

  it('counts a prefix that sessions share once, until the last of them ended', async () => {
    const { send, end, order, limit, pool, clock } = setUp({
      footprint: 1000,
      sharedPrefix: () => ({ id: 'system', tokens: 500 }),
    });
    const tokens = (): number => limit.tokensAt(pool.get('a')!, clock.now());
    send('s1', 's1', { tokens: 700 });
    send('s2', 's2', { tokens: 800 });
    send('s3', 's3', { tokens: 600 });
    await turns();
    expect([order, tokens()]).toEqual([['s1', 's2'], 1000]);
    end('s1', true);
    await turns();
    expect([order, tokens()]).toEqual([['s1', 's2', 's3'], 900]);
    end('s2', true);
    end('s3', true);
    expect(tokens()).toBe(0);
  });

  it('lets a session that is larger than the whole cache go where there is no other', async () => {
    const { send, end, order } = setUp({ footprint: 1000 });
    send('s1', 's1', { tokens: 100 });
    send('giant', 'giant', { tokens: 5000 });
    await turns();
    expect(order).toEqual(['s1']);
    end('s1', true);
    await turns();
    expect(order).toEqual(['s1', 'giant']);
  });

  it('lets a resident session go on when its server is gone, and moves its tokens along with it', async () => {
    const { send, end, running, limit, pool, clock } = setUp({ footprint: 1000 }, {}, ['a', 'b']);
    send('s1', 's1.1', { tokens: 900 });
    send('s2', 's2.1', { tokens: 900 });
    await turns();
    end('s1.1');
    pool.remove(running.get('s1.1')!.endpoint!.id);
    send('s1', 's1.2', { tokens: 900 });
    await turns();
    const { endpoint } = running.get('s1.2')!;
    expect(limit.tokensAt(endpoint!, clock.now())).toBe(1800);
    running.get('s2.1')?.release();
    pool.add('c');
    running.get('s1.2')?.bind('c');
    expect([limit.tokensAt(endpoint!, clock.now()), limit.tokensAt(pool.get('c')!, clock.now())]).toEqual([900, 900]);
  });
});

describe('the detector of sessions', () => {
  const [small, large] = [fakeEndpoint('small'), fakeEndpoint('large', { weight: 3 })];
  const turnOf = (sessionId: unknown, tokens = 0) => fakeSeat({ request: { sessionId }, tokens });

  it.each([
    ['number', 7],
    ['nothing', undefined],
    ['empty text', ''],
  ])('takes a request whose session is %s for one without', (_, sessionId) => {
    const limit = sessionLimit({ maxSessions: 1 });
    for (let i = 0; i < 2; i++) limit.dispatched?.(small, 0, turnOf(sessionId));
    expect(limit.residentSessions(0)).toBe(0);
    const byFunction = sessionLimit({ maxSessions: 1, by: () => sessionId as string });
    byFunction.dispatched?.(small, 0, turnOf('s'));
    expect(byFunction.residentSessions(0)).toBe(0);
  });

  it('has room by the weight of an endpoint', () => {
    const limit = sessionLimit({ footprint: 100 });
    for (const endpoint of [small, large]) limit.dispatched?.(endpoint, 0, turnOf(endpoint.id, 90));
    const roomy = (tokens: number) =>
      limit.withRoomFor?.([small, large], turnOf('new', tokens).item, 0).map(({ id }) => id);
    expect([10, 11, 210, 211].map(roomy)).toEqual([['small', 'large'], ['large'], ['large'], []]);
  });

  it('keeps a resident session where it is, though that is full, and lets it move where there is room', () => {
    const limit = sessionLimit({ footprint: 100 });
    limit.dispatched?.(small, 0, turnOf('s', 60));
    limit.dispatched?.(small, 0, turnOf('t', 40));
    const roomy = (tokens: number) =>
      limit.withRoomFor?.([small, large], turnOf('s', tokens).item, 0).map(({ id }) => id);
    expect([roomy(90), roomy(500)]).toEqual([
      ['small', 'large'],
      ['small', 'large'],
    ]);
    limit.dispatched?.(large, 0, turnOf('u', 250));
    expect(roomy(90)).toEqual(['small']);
  });

  it.each([
    [null],
    ['system'],
    [{ id: 7, tokens: 5 }],
    [{ id: 'x', tokens: -1 }],
    [{ id: 'x', tokens: Number.POSITIVE_INFINITY }],
    [{ id: 'x' }],
  ])('counts no prefix that is %j', (prefix) => {
    const limit = sessionLimit({ footprint: 1000, sharedPrefix: () => prefix as never });
    for (const name of ['s', 't']) limit.dispatched?.(small, 0, turnOf(name, 100));
    expect(limit.tokensAt(small, 0)).toBe(200);
  });

  it('says when the next idle session ends', () => {
    const limit = sessionLimit({ maxSessions: 1, inactivity: 1000 });
    const seat = turnOf('s');
    limit.dispatched?.(small, 0, seat);
    const wait = (nowMs: number) => limit.waitOf?.([small], turnOf('t').item, nowMs);
    expect(wait(5)).toEqual({ atMs: Number.POSITIVE_INFINITY, notBeforeMs: 5, missing: 'another session to end' });
    limit.released?.(small, 100, seat);
    expect([wait(200)?.atMs, wait(5000)?.atMs]).toEqual([1100, 5000]);
  });

  it('announces what may let others pass: a first turn, the end of a turn, the end of a session', () => {
    const limit = sessionLimit({ footprint: 1000 });
    let heard = 0;
    const stop = limit.subscribe?.(() => heard++);
    const [first, second] = [turnOf('s', 10), turnOf('s', 20)];
    limit.dispatched?.(small, 0, first);
    expect(heard).toBe(1);
    limit.dispatched?.(small, 0, second);
    expect(heard).toBe(1);
    limit.released?.(small, 0, first);
    expect(heard).toBe(2);
    limit.sessionEnded?.(small, 0, second);
    expect(heard).toBe(3);
    limit.sessionEnded?.(small, 0, turnOf('stranger'));
    limit.released?.(small, 0, turnOf('stranger'));
    expect(heard).toBe(3);
    stop?.();
    limit.released?.(small, 0, second);
    expect(heard).toBe(3);
  });

  it('does not end a turn by the seat that it left behind, nor count what is reported for that', () => {
    const limit = sessionLimit({ footprint: 1000 });
    const seat = fakeSeat(
      { request: { sessionId: 's' }, tokens: 10 },
      { usage: { promptTokens: 100, completionTokens: 50 }, isReported: true },
    );
    limit.dispatched?.(small, 0, seat);
    limit.dispatched?.(large, 0, seat);
    limit.released?.(small, 0, seat);
    limit.reported?.(small, 0, seat);
    expect([limit.residentSessions(1e9), limit.tokensAt(small, 0), limit.tokensAt(large, 0)]).toEqual([1, 0, 10]);
    limit.reported?.(large, 0, seat);
    expect(limit.tokensAt(large, 0)).toBe(150);
    limit.released?.(large, 0, seat);
    expect(limit.residentSessions(1e9)).toBe(0);
  });
});

describe('the figures of sessions', () => {
  it('tell what is resident, idle, held back, held in tokens and expired, to every reader alike', async () => {
    const { clock, flow, send, end } = setUp({ maxSessions: 2, inactivity: '10m' });
    const figures = () => flow.figures().sessions;
    expect(figures()).toEqual({ resident: 0, idle: 0, maxSessions: 2, waiting: 0, tokens: 0, expired: 0 });
    for (const name of ['red', 'blue', 'green', 'gold']) send(name, `${name} 1`, { tokens: 100 });
    send('gold', 'gold 2', { tokens: 150 });
    await turns();
    end('red 1');
    expect(figures()).toEqual({ resident: 2, idle: 1, maxSessions: 2, waiting: 2, tokens: 200, expired: 0 });
    expect(overviewOf(flow).sessions).toEqual(figures());
    clock.advance(600_000);
    await turns();
    expect(figures()).toEqual({ resident: 2, idle: 0, maxSessions: 2, waiting: 1, tokens: 200, expired: 1 });
  });

  it('forget a new session whose client left, and count a prefix of several once at an endpoint', async () => {
    const { flow, send } = setUp({ maxSessions: 2, sharedPrefix: () => ({ id: 'system', tokens: 80 }) });
    for (const name of ['red', 'blue']) send(name, `${name} 1`, { tokens: 100 });
    const waiting = send('green', 'green 1');
    await turns();
    expect(flow.figures().sessions).toMatchObject({ waiting: 1, tokens: 120 });
    waiting.abort();
    expect(flow.figures().sessions).toMatchObject({ waiting: 0 });
  });

  it('are absent where nothing limits sessions', () => {
    const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
    expect([flow.figures().sessions, overviewOf(flow).sessions]).toEqual([undefined, undefined]);
  });
});

describe('options', () => {
  it('are rejected where they bound nothing, or cannot be right', () => {
    expect(() => sessionLimit()).toThrow(FlowConfigError);
    expect(() => sessionLimit({ maxSessions: 0 })).toThrow(/maxSessions/);
    expect(() => sessionLimit({ maxSessions: 1, inactivity: 0 })).toThrow(/inactivity/);
    expect(() => sessionLimit({ maxSessions: 1, by: 'cookie' as never })).toThrow(/by/);
  });

  it('do not go with a holBlocking that lets a new session block a resident one', () => {
    const constraints = [sessionLimit({ maxSessions: 1 })];
    expect(() => new FlowController({ constraints, holBlocking: 'flow' })).toThrow(/holBlocking: expected "none"/);
    expect(() => new FlowController({ constraints, holBlocking: 'none' })).not.toThrow();
  });

  it('work without a pool', async () => {
    const { send, order, end } = setUp({ maxSessions: 1 }, { pool: undefined });
    send('s1', 's1');
    send('s2', 's2');
    await turns();
    expect(order).toEqual(['s1']);
    end('s1', true);
    await turns();
    expect(order).toEqual(['s1', 's2']);
  });
});
