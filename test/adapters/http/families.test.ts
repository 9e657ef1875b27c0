import { describe, expect, it } from 'vitest';
import { type AdapterGate, families, type PlacementHints } from '../../../src/adapters/http/index.js';
import type { FlowRequest, Outcome } from '../../../src/index.js';
import { FlowController, hierarchical, sessionLimit } from '../../../src/index.js';
import { ManualClock, orderingPolicyContract } from '../../../src/testing/index.js';

interface Call extends FlowRequest, PlacementHints {
  readonly req?: { readonly headers: Record<string, string> };
}

const acme = { fairnessId: 'acme' };

function table(options: Parameters<typeof families>[0] = {}) {
  const clock = new ManualClock();
  const agents = families({ clock, ...options });
  const of = (sessionId?: string, parentSessionId?: string, fairnessId = 'acme') =>
    agents.flowKey({ fairnessId }, { sessionId, parentSessionId }).fairnessId;
  return { clock, agents, of };
}

/** A controller by family, on a clock that stands still. */
function controller(options: ConstructorParameters<typeof FlowController<Call>>[0] = {}) {
  const clock = new ManualClock();
  const agents = families({ clock });
  const levels = ['virtual-token-counter' as const, 'virtual-token-counter' as const];
  const bands = [{ priority: 0, fairness: hierarchical({ levels }), ordering: agents.lastChildFirst }];
  const flow = new FlowController<Call>({ maxConcurrency: 1, bands, clock, ...options });
  const gate: AdapterGate<Call> = agents.gate(flow);
  const order: string[] = [];
  flow.on('dispatched', ({ item }) => order.push(String(item.request.sessionId)));
  const ask = (sessionId: string, parentSessionId?: string, more: Partial<Call> = {}): Promise<Outcome> =>
    gate.enqueue({ byteSize: 1, tokens: 1, sessionId, parentSessionId, ...more }, acme);
  return { agents, flow, gate, order, ask };
}

/** Each gives its seat back at once. */
async function served(...asked: Promise<Outcome>[]): Promise<void> {
  const release = (outcome: Outcome): void => {
    if (outcome.type !== 'Dispatched') throw new Error(outcome.type);
    outcome.lease.release();
  };
  await Promise.all(asked.map((each) => each.then(release)));
}

describe('families', () => {
  it('names the family after the session that began it, within its tenant', () => {
    const { of } = table();
    expect(of('root')).toBe('acme/@root');
    expect(of('child', 'root')).toBe('acme/@root');
    expect(of('grandchild', 'child')).toBe('acme/@root');
    expect(of('child')).toBe('acme/@root');
    expect(of('root', undefined, 'zeta')).toBe('zeta/@root');
    expect(of('child', undefined, 'zeta')).toBe('zeta/@child');
  });

  it('joins what came before its parent was known', () => {
    const { of } = table();
    expect(of('grandchild', 'child')).toBe('acme/@child');
    expect(of('child', 'root')).toBe('acme/@root');
    expect(of('grandchild', 'child')).toBe('acme/@root');
  });

  it('leaves requests without a session, and those that name a family already, as they are', () => {
    const { agents, of } = table();
    expect(of(undefined)).toBe('acme');
    expect(of('')).toBe('acme');
    expect(of('x'.repeat(300))).toBe('acme');
    expect(of('x'.repeat(255))).toBe('acme');
    expect(of('child', 'root', 'acme/@other')).toBe('acme/@other');
    const key = { fairnessId: 'acme', priority: 7 };
    expect(agents.flowKey(key, { sessionId: 's' })).toEqual({ fairnessId: 'acme/@s', priority: 7 });
  });

  it('lets no session into the path of another tenant', () => {
    const { of } = table();
    expect(of('x/@victim')).toBe('acme/@x%2F@victim');
    expect(of('x%2F@victim')).toBe('acme/@x%252F@victim');
  });

  it('cuts circles of parents, and tells of them', () => {
    const cycles: unknown[] = [];
    const { agents, of } = table({ onCycle: (cycle) => cycles.push(cycle) });
    expect(of('a', 'a')).toBe('acme/@a');
    of('b', 'a');
    of('c', 'b');
    expect(of('a', 'c')).toBe('acme/@a');
    expect([of('b', 'a'), of('c', 'b')]).toEqual(['acme/@a', 'acme/@a']);
    expect(agents.cycles).toBe(2);
    expect(cycles).toEqual([
      { tenant: 'acme', sessionId: 'a', parentSessionId: 'a' },
      { tenant: 'acme', sessionId: 'a', parentSessionId: 'c' },
    ]);
  });

  it('loses no request to a host that fails at being told', async () => {
    const onCycle = () => {
      throw new Error('full');
    };
    const flow = new FlowController<Call>({ maxConcurrency: 1 });
    const outcome = await families({ onCycle })
      .gate(flow)
      .enqueue({ byteSize: 1, sessionId: 'a', parentSessionId: 'a' }, acme);
    expect(outcome).toMatchObject({ type: 'Dispatched', lease: { fairnessId: 'acme' } });
  });

  it('keeps the first parent of a session', () => {
    const { agents, of } = table();
    of('child', 'root');
    expect(of('child', 'other')).toBe('acme/@root');
    expect(of('other')).toBe('acme/@other');
    expect(agents.cycles).toBe(0);
  });

  it('forgets sessions that are silent, and of too many those that were silent longest', () => {
    const { agents, clock, of } = table({ inactivity: '1m', maxSessions: 3 });
    of('child', 'root');
    clock.advance(59_999);
    of('child');
    clock.advance(1);
    of('child');
    expect(agents.sessions).toBe(1);
    // The family has its name from the session that is forgotten.
    expect(of('child')).toBe('acme/@root');
    expect(of('root')).toBe('acme/@root');
    for (const name of ['x', 'y', 'z']) of(name);
    expect(agents.sessions).toBe(3);
    expect(of('child')).toBe('acme/@child');
  });

  it('holds 100,000 children of one parent, a chain as long, and one whose parents come last', () => {
    const { agents, of } = table();
    const startedAtMs = performance.now();
    for (let i = 0; i < 100_000; i++) of(`wide-${i}`, 'root');
    expect(of('wide-99999')).toBe('acme/@root');
    for (let i = 1; i < 100_000; i++) of(`deep-${i}`, `deep-${i - 1}`);
    expect(of('deep-99999')).toBe('acme/@deep-0');
    for (let i = 99_998; i >= 0; i--) of(`up-${i + 1}`, `up-${i}`);
    expect(of('up-99999')).toBe('acme/@up-0');
    expect(agents.sessions).toBe(100_000);
    expect(performance.now() - startedAtMs).toBeLessThan(10_000);
  });

  it('says what is wrong with its options', () => {
    expect(() => families({ maxSessions: 0 })).toThrow(/maxSessions: expected .*; got 0/);
    expect(() => families({ onCycle: 'log' as never })).toThrow(/onCycle/);
  });
});

describe('a controller behind the gate of families', () => {
  it('gives a family as many turns as a single chat', async () => {
    const { order, ask } = controller();
    const children = [1, 2, 3, 4].map((i) => ask(`child-${i}`, 'root'));
    await served(...children, ask('chat'), ask('chat'));
    expect(order).toEqual(['child-1', 'chat', 'child-2', 'chat', 'child-3', 'child-4']);
  });

  it('bounds what a family runs by maxInFlightPerFlow', async () => {
    const { flow, ask } = controller({ maxConcurrency: 8, bands: [{ priority: 0, maxInFlightPerFlow: 2 }] });
    for (const name of ['child-1', 'child-2', 'child-3']) void ask(name, 'root');
    void ask('chat');
    await Promise.resolve();
    expect(flow.stats()).toMatchObject({ inFlight: 3, waiting: 1 });
  });

  it('counts a family as one session of sessionLimit, and a request without one as none', async () => {
    const agents = families();
    const limit = sessionLimit({ by: agents.familyOf, maxSessions: 1 });
    const flow = new FlowController<Call>({ maxConcurrency: 8, constraints: [limit] });
    const gate = agents.gate(flow);
    for (const sessionId of ['child-1', 'child-2', 'chat'])
      void gate.enqueue({ byteSize: 1, sessionId, parentSessionId: sessionId === 'chat' ? undefined : 'root' }, acme);
    void gate.enqueue({ byteSize: 1 }, acme);
    await Promise.resolve();
    expect(limit.residentSessions(0)).toBe(1);
    expect(flow.stats()).toMatchObject({ inFlight: 3, waiting: 1 });
  });

  it('reads the headers of a request that names no session', async () => {
    const { flow, gate } = controller();
    const headers = { 'x-session-id': 'child', 'x-parent-session-id': 'root' };
    const outcome = await gate.enqueue({ byteSize: 1, req: { headers } }, acme);
    expect(outcome).toMatchObject({ type: 'Dispatched', lease: { fairnessId: 'acme/@root' } });
    const hostile = Object.defineProperty({ byteSize: 1 }, 'req', {
      get: () => {
        throw new Error('no request');
      },
    });
    void gate.enqueue(hostile, acme);
    await Promise.resolve();
    expect(flow.stats().waiting).toBe(1);
  });

  it('leaves it to the controller to say what is wrong with a call', async () => {
    const { gate } = controller();
    await expect(gate.enqueue(undefined as never, acme)).rejects.toThrow(/enqueue/);
    await expect(gate.enqueue({ byteSize: 1 }, undefined as never)).rejects.toThrow(/enqueue/);
  });
});

describe('lastChildFirst', () => {
  it('keeps to the contract of its kind', async () => {
    for (const { run } of orderingPolicyContract(() => families().lastChildFirst)) await run();
  });

  it('lets the last of a group go first', async () => {
    const { order, ask } = controller();
    const group = { id: 'g', of: 2 };
    const other = { group: { id: 'h', of: 3 } };
    await served(
      ask('a-1', 'root', { group }),
      ask('b-1', 'root', other),
      ask('b-2', 'root', other),
      ask('a-2', 'root', { group }),
    );
    expect(order).toEqual(['a-1', 'a-2', 'b-1', 'b-2']);
  });

  it('without a group lets the child go first whose parent is idle and whose siblings have ended', async () => {
    const { agents, order, ask } = controller();
    for (const sessionId of ['x', 'y']) agents.flowKey(acme, { sessionId, parentSessionId: 'root' });
    await served(
      ask('z', 'root'),
      ask('x-1', 'x'),
      ask('x-2', 'x'),
      ask('y-1', 'y'),
      ask('x', 'root'),
      ask('y', 'root'),
    );
    // x and y wait themselves, so that nobody waits for their children. Then y has one child, and x has two.
    expect(order.slice(0, 3)).toEqual(['z', 'x', 'y']);
    expect(order.indexOf('y-1')).toBeLessThan(order.indexOf('x-2'));
  });
});
