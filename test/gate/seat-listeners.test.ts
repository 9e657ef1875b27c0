import { describe, expect, it } from 'vitest';
import { partsOf } from '../../src/gate/parts.js';
import { seatHooks } from '../../src/gate/seat-listener.js';
import { SeatListeners } from '../../src/gate/seat-listeners.js';
import { type Constraint, FlowConfigError, quotaDetector, type SeatListener } from '../../src/index.js';
import { fakeEndpoint } from '../support/fake-pool.js';
import { fakeSeat } from '../support/fake-seat.js';
import { dial, key, leaseOf, makeFlow, request, runNow } from '../support/flow.js';

const [a, b] = [fakeEndpoint('a'), fakeEndpoint('b')];
const seat = fakeSeat();
const answer = { status: 200, headers: {} };

function listening(hooks: object) {
  const faults: string[] = [];
  const pluginFailed = (kind: string, type: string, error: unknown): void =>
    void faults.push(`${kind} ${type}: ${String(error)}`);
  const seats = new SeatListeners({ pluginFailed });
  const plugin: Constraint = { type: 'x', withRoomFor: (endpoints) => endpoints, ...hooks };
  seats.configure(partsOf(plugin), undefined, []);
  return { seats, faults };
}

const failing = (): never => {
  throw new Error('broken');
};

describe('what listeners hear', () => {
  it.each(seatHooks)('of %s reaches them, and their failure goes no further', async (hook) => {
    const told: unknown[][] = [];
    const { seats, faults } = listening({ [hook]: (...news: unknown[]) => void told.push(news) });
    seats.tell(hook, a, 7, seat, answer);
    expect([told, faults]).toEqual([[[a, 7, seat, answer]], []]);
    expect(seatHooks.map((each) => seats.hears[each])).toEqual(seatHooks.map((each) => each === hook));
    const broken = listening({ [hook]: failing });
    broken.seats.tell(hook, a, 7, seat);
    expect(broken.faults).toEqual(['constraint x: Error: broken']);
    const late = listening({ [hook]: () => Promise.reject(new Error('late')) });
    late.seats.tell(hook, a, 7, seat);
    await new Promise(setImmediate);
    expect(late.faults).toEqual(['constraint x: Error: late']);
    const deaf = listening({});
    deaf.seats.tell(hook, a, 7, seat);
    expect([deaf.faults, seatHooks.some((each) => deaf.seats.hears[each])]).toEqual([[], false]);
  });

  it('is of the endpoints that they judge, wherever they stand', () => {
    const heard: string[] = [];
    const plugin: Constraint = {
      type: 'x',
      withRoomFor: (endpoints) => endpoints,
      dispatched: ({ id }) => void heard.push(id),
    };
    const at = (endpoint: typeof a) => ({ plugin, judges: ({ id }: typeof a) => id === endpoint.id });
    const seats = new SeatListeners({ pluginFailed: () => {} });
    const composite = { type: 'y', saturation: () => 0 };
    seats.configure(partsOf({ ...composite, parts: [at(a)] } as never), undefined, []);
    for (const endpoint of [a, b]) seats.tell('dispatched', endpoint, 0, seat);
    expect(heard.splice(0)).toEqual(['a']);
    seats.configure(partsOf({ ...composite, parts: [at(a), at(b)] } as never), undefined, []);
    for (const endpoint of [a, b]) seats.tell('dispatched', endpoint, 0, seat);
    expect(heard).toEqual(['a', 'b']);
  });
});

describe('a listener of the host', () => {
  it('hears of every seat, and its faults are told as its own', () => {
    const heard: string[] = [];
    const seatListener: SeatListener = {
      dispatched: (_endpoint, _nowMs, { item }) => void heard.push(`+${item.fairnessId}`),
      released: failing,
    };
    const { flow } = makeFlow({ seatListener });
    const faults: unknown[] = [];
    flow.on('pluginError', (fault) => faults.push(fault));
    runNow(flow, { fairnessId: 'a' }).release();
    expect(heard).toEqual(['+a']);
    expect(faults).toMatchObject([{ kind: 'seatListener', type: 'seat-listener' }]);
  });

  it.each([
    [{}, 'expected an object with some of dispatched, answered, reported, released, sessionEnded; got one with none'],
    [{ dispatched: 5 }, 'seatListener.dispatched: expected a method, or nothing'],
    [{ onDispatched() {} }, 'seatListener.onDispatched: expected the name "dispatched"'],
    [null, 'expected an object with some of'],
  ])('cannot be %o', (seatListener, message) => {
    expect(() => makeFlow({ seatListener: seatListener as never })).toThrow(FlowConfigError);
    expect(() => makeFlow({ seatListener: seatListener as never })).toThrow(message);
  });
});

describe('a constraint that is replaced while requests run', () => {
  const perHour = () => quotaDetector({ travel: 0, groups: [{ quotas: [{ unit: 'tokens', limit: 100, per: '1h' }] }] });
  const reserved = (quotas: ReturnType<typeof perHour>): number | undefined => quotas.quotas(0).quotas[0]?.reserved;

  it('hears the end of those, so that another controller that shares it has their room', () => {
    const shared = perHour();
    const one = makeFlow({ constraints: [shared] }).flow;
    const other = makeFlow({ constraints: [shared] }).flow;
    const lease = leaseOf(one.tryEnqueue({ ...request, tokens: 60 }, key()));
    one.reconfigure({ constraints: [perHour()] });
    const later = leaseOf(one.tryEnqueue({ ...request, tokens: 30 }, key()));
    expect(reserved(shared)).toBe(60);
    lease.report({ promptTokens: 10 });
    lease.release();
    expect(shared.quotas(0).quotas).toMatchObject([{ used: 10, reserved: 0 }]);
    expect(other.tryEnqueue({ ...request, tokens: 90 }, key())?.type).toBe('Dispatched');
    later.release();
    expect(shared.quotas(0).quotas).toMatchObject([{ used: 10, reserved: 90 }]);
  });

  it('hears nothing of requests that came later, and of everything again when it comes back', () => {
    const heard: string[] = [];
    const listener = (name: string): SeatListener => ({
      dispatched: (_endpoint, _nowMs, { item }) => void heard.push(`${name} +${item.fairnessId}`),
      released: (_endpoint, _nowMs, { item }) => void heard.push(`${name} -${item.fairnessId}`),
    });
    const [first, second] = [listener('first'), listener('second')];
    const { flow } = makeFlow({ saturationDetector: dial(0), seatListener: first });
    const early = runNow(flow, { fairnessId: 'early' });
    flow.reconfigure({ seatListener: second });
    const late = runNow(flow, { fairnessId: 'late' });
    heard.splice(0);
    late.release();
    early.release();
    expect(heard.splice(0)).toEqual(['second -late', 'second -early', 'first -early']);
    const between = runNow(flow, { fairnessId: 'between' });
    flow.reconfigure({ seatListener: first });
    flow.reconfigure({ seatListener: second });
    flow.reconfigure({ seatListener: first });
    heard.splice(0);
    between.release();
    runNow(flow, { fairnessId: 'last' });
    expect(heard).toEqual(['first -between', 'second -between', 'first +last']);
  });
});
