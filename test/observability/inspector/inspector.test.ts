import { describe, expect, it, vi } from 'vitest';
import type { Engine } from '../../../src/core/engine/engine.js';
import { engineOf } from '../../../src/core/inspect/engine-of.js';
import {
  EndpointPool,
  FlowConfigError,
  type FlowRequest,
  quotaDetector,
  roundRobin,
  sessionLimit,
  shadow,
} from '../../../src/index.js';
import {
  basicLogin,
  type InspectedShares,
  type InspectorFrame,
  type InspectorOptions,
  inspector,
} from '../../../src/observability/inspector/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { CountingClock } from '../../support/clocks.js';
import { dial, key, makeFlow, request, runNow } from '../../support/flow.js';

const bands = [{ priority: 0, fairness: roundRobin() }];
const limits = { maxRequests: 1e6, maxBytes: 1e9 };

/** A controller with one request running, and its inspector on a clock of its own. */
function setUp(options: Partial<InspectorOptions> = {}) {
  const clock = new CountingClock();
  const { flow, clock: flowClock } = makeFlow({ limits, bands: [{ ...bands[0]!, limits }] });
  const looks = vi.spyOn(engineOf(flow) as Engine, 'figures');
  const page = inspector(flow, { authorize: () => true, clock, history: false, ...options });
  const get = (query = '', init: RequestInit = {}) => page.fetch(new Request(`http://gateway/inspector${query}`, init));
  runNow(flow);
  return { flow, flowClock, clock, page, get, looks: () => looks.mock.calls.length };
}

/** One event of a stream, as its frame. */
async function next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<InspectorFrame> {
  const { value } = await reader.read();
  const text = new TextDecoder().decode(value);
  expect(text).toMatch(/^data: .*\n\n$/);
  return JSON.parse(text.slice(6)) as InspectorFrame;
}

const readerOf = async (response: Promise<Response>) => (await response).body!.getReader();

describe('one of several processes', () => {
  it('shows the frame of all, and looks for a request in all', async () => {
    const asked: unknown[] = [];
    const { get, page } = setUp({
      async together(view, id) {
        asked.push([view, id]);
        return { of: 'all', alone: JSON.parse(page.alone(view, id)) };
      },
    });
    const frame = await (await get('?view=json')).json();
    expect(frame).toMatchObject({ of: 'all', alone: { inFlight: 1 } });
    expect(await (await get('?view=find&id=a')).json()).toEqual({ of: 'all', alone: { isWaiting: false } });
    const reader = await readerOf(get('?view=events'));
    expect(await next(reader)).toMatchObject({ of: 'all', alone: { inFlight: 1 } });
    expect(asked).toEqual([
      ['frame', ''],
      ['find', 'a'],
      ['frame', ''],
    ]);
    await reader.cancel();
    await expect.poll(() => page.watchers).toBe(0);
  });
});

describe('shadow mode', () => {
  it('is told in every frame, with what would have been', async () => {
    const shadowOf = async (get: ReturnType<typeof setUp>['get']) =>
      ((await (await get('?view=json')).json()) as InspectorFrame).shadow;
    expect(await shadowOf(setUp().get)).toBeNull();
    const { flow, get } = setUp();
    flow.reconfigure({ mode: shadow(), limits: { maxRequests: 1 } });
    for (const id of ['a', 'b', 'c']) flow.tryEnqueue(request, key(id));
    expect(await shadowOf(get)).toEqual({
      passed: 3,
      running: 3,
      wouldHaveWaited: 1,
      wouldHaveBeenDropped: 2,
      wouldHaveBeenEvicted: 0,
    });
  });
});

describe('who may look', () => {
  it('is nobody unless the host says so', async () => {
    const { flow } = makeFlow();
    for (const query of ['', '?view=json', '?view=events']) {
      const response = await inspector(flow).fetch(new Request(`http://gateway/${query}`));
      expect([response.status, await response.json()]).toEqual([403, { error: expect.stringContaining('authorize') }]);
    }
  });

  it('is nobody who asks for the page by another name, so that a page of a stranger cannot give a name of its own to it', async () => {
    const { page, looks } = setUp({ hosts: ['inspector.internal', '127.0.0.1', '[::1]'] });
    const status = async (url: string, headers: Record<string, string> = {}): Promise<number> =>
      (await page.fetch(new Request(url, { headers }))).status;
    expect(await status('http://inspector.internal:9090/?view=json')).toBe(200);
    expect(await status('http://127.0.0.1/?view=json')).toBe(200);
    expect(await status('http://[::1]:80/?view=json')).toBe(200);
    const before = looks();
    expect(await status('http://evil.example/?view=json')).toBe(421);
    expect(await status('http://127.0.0.1.evil.example/?view=json')).toBe(421);
    expect(await status('http://inspector.internal/?view=json', { host: 'evil.example' })).toBe(421);
    expect(looks()).toBe(before);
  });

  it.each([false, undefined, 'yes'])('is nobody when authorize answers %s', async (answer) => {
    const { get, looks } = setUp({ authorize: () => answer as boolean });
    expect((await get('?view=json')).status).toBe(403);
    expect(looks()).toBe(0);
  });

  it('is decided by the request, before anything else', async () => {
    const seen: string[] = [];
    const { get } = setUp({
      authorize: async ({ method, url, headers }) => {
        seen.push(`${method} ${url} ${(headers as Headers).get('x-operator')}`);
        return false;
      },
    });
    expect((await get('?view=nonsense', { method: 'POST', headers: { 'x-operator': 'ann' } })).status).toBe(403);
    expect(seen).toEqual(['POST http://gateway/inspector?view=nonsense ann']);
  });

  it('is nobody when authorize throws', async () => {
    const { get } = setUp({
      authorize: () => {
        throw new Error('no directory');
      },
    });
    await expect(get()).rejects.toThrow('no directory');
  });
});

describe('answers', () => {
  it('are a page under a policy that runs nothing but what has the nonce', async () => {
    const { get } = setUp();
    const response = await get();
    const text = await response.text();
    const policy = response.headers.get('content-security-policy') ?? '';
    const nonce = /script-src 'nonce-([^']+)'/.exec(policy)?.[1];
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    expect(text.match(/<(?:script|style)\b[^>]*>/g)).toEqual([`<style nonce="${nonce}">`, `<script nonce="${nonce}">`]);
    expect(text).not.toMatch(/ style=| on\w+=|https?:\/\/(?!www\.w3\.org\/2000\/svg)/);
    expect([response.headers.get('cache-control'), response.headers.get('x-content-type-options')]).toEqual([
      'no-store',
      'nosniff',
    ]);
    expect((await get()).headers.get('content-security-policy')).not.toBe(policy);
  });

  it('change nothing, and say so', async () => {
    const { get } = setUp();
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const response = await get('', { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    }
    const head = await get('', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect((await get('?view=nonsense')).status).toBe(404);
  });

  it('are one frame as JSON: bands, flows, waits and why', async () => {
    const { flow, flowClock, get } = setUp();
    void flow.enqueue(request, key('a'));
    flowClock.advance(500);
    for (const id of ['a', 'b']) void flow.enqueue(request, key(id));
    flowClock.advance(1000);
    const frame = (await (await get('?view=json')).json()) as InspectorFrame;
    expect(frame).toMatchObject({ waiting: 3, inFlight: 1, saturation: 1, gate: 'full', state: 'open' });
    expect(frame.bands).toMatchObject([
      {
        priority: 0,
        waiting: 3,
        gate: 'full',
        inFlight: 1,
        flows: [
          { name: 'a', waiting: 2 },
          { name: 'b', waiting: 1 },
        ],
      },
    ]);
    expect(frame.slowest).toMatchObject([
      { flow: 'a', waitedMs: 1500, ahead: 0, decidedBy: 'gate' },
      { flow: 'b', waitedMs: 1000 },
    ]);
    expect(frame.slowest[0]?.why).toContain('band 0 gated: saturation 1.00 ≥ ceiling 1.00');
  });

  it('tell quotas, sessions, and the caps of tenants', async () => {
    const { flow } = makeFlow({
      constraints: [
        quotaDetector({
          travel: 0,
          groups: [
            {
              name: 'account a',
              quotas: [
                { unit: 'requests', limit: 10, window: 'sliding' },
                { unit: 'tokens', limit: 100, window: 'sliding' },
              ],
            },
          ],
        }),
        sessionLimit({ by: 'fairnessId', maxSessions: 2 }),
      ],
      bands: [{ priority: 0, maxInFlightPerFlow: { requests: 2, tokens: 1_000 } }],
    });
    const page = inspector(flow, { authorize: () => true });
    const look = async () =>
      (await (await page.fetch(new Request('http://gateway/?view=json'))).json()) as InspectorFrame;
    const tokens = { byteSize: 1, tokens: 40 };
    for (let i = 0; i < 2; i++) void flow.enqueue(tokens, key('a'));
    void flow.enqueue({ byteSize: 1 }, key('a'));
    for (const id of ['b', 'c']) void flow.enqueue({ byteSize: 1, tokens: 30 }, key(id));
    const frame = await look();
    expect(frame.quotas).toEqual({
      rows: ['requests', 'tokens'].map((unit) => ({
        group: 'account a',
        unit,
        limit: unit === 'requests' ? 10 : 100,
        perMs: 60_000,
        used: 0,
        reserved: unit === 'requests' ? 2 : 80,
        resetsInMs: 60_000,
        waitMs: 0,
        restsForMs: 0,
        isLearnt: false,
      })),
      others: 0,
      refusals: 0,
      unreported: 0,
      ignored: 0,
    });
    expect(frame.sessions).toEqual({ resident: 1, idle: 0, maxSessions: 2, waiting: 2, tokens: 40, expired: 0 });
    const [capped] = frame.tenants.filter(({ name }) => name === 'a');
    expect(capped?.cap).toEqual({ requests: 2, maxRequests: 2, tokens: 80, maxTokens: 1_000, isReached: true });
    page.close();
  });

  it('tell what is held of shared limits, and how the store does', async () => {
    const { flow } = makeFlow();
    const store = { calls: 10, misses: 2, isBreakerOpen: false, latencyMs: 0.8123 };
    const lease = {
      pool: 'chat',
      endpoint: undefined,
      unit: 'requests' as const,
      limit: 64,
      cap: 20,
      granted: 20,
      safeShare: 16,
      replicas: 4,
      held: 60,
      inFlight: 18,
      leaseAgeMs: 700.4,
      isExpired: false,
      isLearning: false,
      overAdmission: 0,
      epochChanges: 1,
      store,
    };
    let shares: () => InspectedShares = () => ({ leases: [lease] });
    const clock = new ManualClock();
    const page = inspector(flow, { authorize: () => true, clock, shared: () => shares() });
    const look = async (): Promise<InspectorFrame['shared']> => {
      clock.advance(1_000);
      return ((await (await page.fetch(new Request('http://gateway/?view=json'))).json()) as InspectorFrame).shared;
    };
    const row = { name: 'chat', unit: 'requests', cap: 20, inFlight: 18, others: 40, limit: 64, safeShare: 16 };
    expect(await look()).toEqual({
      rows: [{ ...row, state: 'held', ageMs: 700, overAdmission: 0 }],
      otherRows: 0,
      replicas: 4,
      overAdmission: 0,
      epochChanges: 1,
      quotas: null,
      store: { latencyMs: 0.81, calls: 10, misses: 2, isBreakerOpen: false, problem: null },
    });
    const away = { ...store, isBreakerOpen: true, problem: { message: `pool "chat": ${'x'.repeat(400)}` } };
    shares = () => ({
      leases: [
        { ...lease, endpoint: 'a', isExpired: true, overAdmission: 2, store: away },
        { ...lease, endpoint: 'b', isLearning: true },
        { ...lease, endpoint: 'c', leaseAgeMs: Number.POSITIVE_INFINITY, isExpired: true, overAdmission: 3 },
      ],
      quotas: { status: [{ isLocal: true }, { isLocal: false }], store: { ...store, calls: 5, misses: 0 } },
    });
    const told = await look();
    expect(told?.rows.map(({ name, state, ageMs }) => [name, state, ageMs])).toEqual([
      ['a', 'expired', 700],
      ['b', 'learning', 700],
      ['c', 'none yet', null],
    ]);
    expect(told).toMatchObject({
      overAdmission: 5,
      quotas: { drawn: 2, local: 1 },
      store: { calls: 15, misses: 2, isBreakerOpen: true },
    });
    expect(told?.store.problem).toHaveLength(300);
    // Only quotas are shared; many endpoints; nothing at all; a function that throws.
    shares = () => ({ leases: [], quotas: { status: [{ isLocal: false }], store } });
    expect(await look()).toMatchObject({ rows: [], replicas: null, quotas: { drawn: 1, local: 0 } });
    shares = () => ({ leases: Array.from({ length: 30 }, (_, i) => ({ ...lease, endpoint: `e${i}`, inFlight: i })) });
    expect(await look()).toMatchObject({ otherRows: 6, rows: [{ name: 'e29' }, ...new Array(23).fill({})] });
    shares = () => ({ leases: [] });
    expect(await look()).toBeNull();
    shares = () => {
      throw new Error('no');
    };
    expect(await look()).toBeNull();
    page.close();
  });

  it('bound the quotas that are shown, and tell how many there are', async () => {
    const pool = new EndpointPool();
    for (let i = 0; i < 40; i++) pool.add(`key-${i}-${'x'.repeat(200)}`);
    const { flow } = makeFlow({
      pool,
      constraints: [quotaDetector({ groups: [{ by: 'endpoint', quotas: [{ unit: 'requests', limit: 1 }] }] })],
    });
    for (let i = 0; i < 5; i++) runNow(flow);
    const page = inspector(flow, { authorize: () => true });
    const { quotas } = (await (await page.fetch(new Request('http://gateway/?view=json'))).json()) as InspectorFrame;
    expect(quotas?.rows.map(({ waitMs }) => waitMs > 0)).toEqual([
      ...new Array(5).fill(true),
      ...new Array(19).fill(false),
    ]);
    expect(quotas?.others).toBe(16);
    expect(quotas?.rows.every(({ group }) => group.length === 64)).toBe(true);
    page.close();
  });

  it('show no payload, no header and, when asked, no fairness ID', async () => {
    const { flow, get } = setUp({ fairnessIds: 'hidden' });
    for (const id of ['sk-secret', 'sk-secret', 'sk-other'])
      void flow.enqueue({ byteSize: 1, prompt: 'private words' } as never, key(id));
    const text = await (await get('?view=json')).text();
    expect(text).not.toMatch(/sk-|private/);
    const frame = JSON.parse(text) as InspectorFrame;
    expect(frame.bands[0]?.flows.map(({ name }) => name)).toEqual(['flow 1', 'flow 2']);
    expect(frame.slowest.map(({ flow: name }) => name)).toEqual(['flow 1', 'flow 2']);
  });

  it('stay small whatever the load and however long names are', async () => {
    const { flow, get } = setUp();
    for (let i = 0; i < 20_000; i++) void flow.enqueue({ byteSize: 1 }, key(`${i}-${'x'.repeat(240)}`, i % 200));
    const text = await (await get('?view=json')).text();
    expect(text.length).toBeLessThan(64 * 1024);
    const frame = JSON.parse(text) as InspectorFrame;
    expect(frame.bands).toHaveLength(32);
    expect(frame.otherBands).toBeGreaterThan(0);
    expect(frame.bands.every(({ flows, otherFlows }) => flows.length === 8 && otherFlows > 0)).toBe(true);
  });
});

describe('the stream', () => {
  it('begins with a frame and goes on with one every interval', async () => {
    const { flow, flowClock, get, clock } = setUp();
    const reader = await readerOf(get('?view=events'));
    expect((await next(reader)).waiting).toBe(0);
    void flow.enqueue(request, key());
    flowClock.advance(500);
    clock.advance(500);
    expect((await next(reader)).waiting).toBe(1);
    await reader.cancel();
  });

  it('costs one look for all who watch, and none when nobody does', async () => {
    const { page, get, clock, looks } = setUp();
    expect(clock.timersSet).toBe(0);
    const readers = await Promise.all([1, 2, 3].map(() => readerOf(get('?view=events'))));
    for (const reader of readers) await next(reader);
    expect([page.watchers, looks()]).toEqual([3, 1]);
    clock.advance(500);
    for (const reader of readers) await next(reader);
    expect(looks()).toBe(2);
    for (const reader of readers) await reader.cancel();
    const { timersSet } = clock;
    clock.advance(60_000);
    expect([page.watchers, looks(), clock.timersSet]).toEqual([0, 2, timersSet]);
  });

  it('drops frames for whoever does not take them, and does not even make them', async () => {
    const { flow, flowClock, get, clock, looks } = setUp();
    const reader = await readerOf(get('?view=events'));
    for (let i = 0; i < 100; i++) {
      void flow.enqueue(request, key());
      flowClock.advance(500);
      clock.advance(500);
    }
    expect(looks()).toBe(1);
    expect((await next(reader)).waiting).toBe(0);
    clock.advance(500);
    expect((await next(reader)).waiting).toBe(100);
    await reader.cancel();
  });

  it('is rejected beyond the number of pages that may watch', async () => {
    const { get } = setUp({ maxWatchers: 1 });
    const reader = await readerOf(get('?view=events'));
    expect((await get('?view=events')).status).toBe(503);
    await reader.cancel();
    const again = await get('?view=events');
    expect(again.status).toBe(200);
    await again.body?.cancel();
  });

  it('ends with close, and breaks off when the controller cannot be looked at', async () => {
    const { page, get } = setUp();
    const reader = await readerOf(get('?view=events'));
    await next(reader);
    page.close();
    expect(await reader.read()).toEqual({ done: true, value: undefined });

    const clock = new ManualClock();
    const { flow } = makeFlow();
    const broken = inspector(flow, { authorize: () => true, clock, history: false });
    const other = await readerOf(broken.fetch(new Request('http://gateway/?view=events')));
    await next(other);
    vi.spyOn(engineOf(flow) as Engine, 'figures').mockImplementation(() => {
      throw new Error('cannot look');
    });
    clock.advance(500);
    await expect(other.read()).rejects.toThrow('cannot look');
    expect(broken.watchers).toBe(0);
  });
});

describe('the limits', () => {
  const frameOf = async (get: ReturnType<typeof setUp>['get']) =>
    (await (await get('?view=json')).json()) as InspectorFrame;
  const tiny = { maxRequests: 1, maxBytes: 1e9 };

  it('of the whole queue stand beside those of the bands, and the one that drops says how much', async () => {
    const { flow, clock, get } = setUp({ history: true });
    expect((await frameOf(get)).whole).toEqual({ waiting: 0, maxRequests: 1e6, bytes: 0, maxBytes: 1e9, dropped: 0 });
    flow.reconfigure({ limits: { maxRequests: 2, maxBytes: 100 } });
    for (const id of ['a', 'b', 'c', 'd']) void flow.enqueue({ byteSize: 30 }, key(id));
    void flow.enqueue({ byteSize: 80 }, key('e'));
    clock.advance(500); // the next frame
    const { whole, bands } = await frameOf(get);
    expect(whole).toEqual({ waiting: 2, maxRequests: 2, bytes: 60, maxBytes: 100, dropped: 3 });
    expect(bands.map(({ dropped }) => dropped)).toEqual([0]);
  });

  it('of a band and of its flows are its own', async () => {
    const { flow, get } = setUp({ history: true });
    flow.reconfigure({ bands: [{ ...bands[0]!, limits: { maxRequests: 2, maxBytes: 1e9 }, flowLimits: tiny }] });
    for (const id of ['a', 'a', 'b', 'c']) void flow.enqueue(request, key(id));
    const frame = await frameOf(get);
    expect([frame.whole.dropped, frame.bands[0]?.dropped]).toEqual([0, 2]);
  });

  it('that are none are null', async () => {
    const { flow, get } = setUp();
    flow.reconfigure({ limits: { maxRequests: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY } });
    expect((await frameOf(get)).whole).toMatchObject({ maxRequests: null, maxBytes: null });
  });
});

describe('the reasons of drops', () => {
  it('are told, most frequent first, for five minutes', async () => {
    const { flow, flowClock, clock, get } = setUp({ history: true });
    const reasons = async () => ((await (await get('?view=json')).json()) as InspectorFrame).outcomes.reasons;
    expect(await reasons()).toEqual([]);
    flow.reconfigure({ limits: { maxRequests: 1, maxBytes: 1e9 } });
    void flow.enqueue({ ...request, ttlMs: 5_000 }, key('a'));
    for (let i = 0; i < 2; i++) await flow.enqueue(request, key('b'));
    flowClock.advance(5_000);
    clock.advance(5_000);
    expect(await reasons()).toEqual([
      { reason: 'global-max-requests', requests: 2 },
      { reason: 'ttl-expired', requests: 1 },
    ]);
    flowClock.advance(300_000);
    for (let i = 0; i < 60; i++) clock.advance(5_000);
    expect(await reasons()).toEqual([]);
  });
});

describe('the last minutes', () => {
  const rejected = { byteSize: 1, signal: AbortSignal.abort() };

  it('are kept while nobody looks, by spans of five seconds, at one timer', async () => {
    const { flow, flowClock, clock, get } = setUp({ history: true });
    const pass = (ms: number): void => {
      flowClock.advance(ms);
      clock.advance(ms);
    };
    expect(clock.timersSet).toBe(1);
    await flow.enqueue(rejected, key());
    pass(5_000);
    for (let i = 0; i < 2; i++) await flow.enqueue(rejected, key());
    void flow.enqueue(request, key());
    pass(5_000);
    await flow.enqueue(rejected, key());
    const { outcomes } = (await (await get('?view=json')).json()) as InspectorFrame;
    expect([outcomes.buckets.length, outcomes.waiting.length, outcomes.bucketMs]).toEqual([60, 60, 5_000]);
    expect(outcomes.buckets.slice(-4)).toEqual([null, [1, 1, 0], [0, 2, 0], [0, 1, 0]]);
    expect(outcomes.waiting.slice(-4)).toEqual([null, 0, 1, 1]);
    expect(clock.pendingTimers).toBe(1);
  });

  it('stay five minutes, however long it goes on', async () => {
    const { flowClock, clock, get } = setUp({ history: true });
    for (let index = 0; index < 200; index++) {
      flowClock.advance(5_000);
      clock.advance(5_000);
    }
    const { outcomes } = (await (await get('?view=json')).json()) as InspectorFrame;
    expect(outcomes.buckets).toHaveLength(60);
    expect(outcomes.buckets.every((bucket) => bucket !== null)).toBe(true);
  });

  it('end with close', () => {
    const { clock, page } = setUp({ history: true });
    page.close();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('the table of tenants', () => {
  it('shows who is served and who is rejected, and marks who starves while another one has everything', async () => {
    const { flow, clock: flowClock } = makeFlow({
      saturationDetector: dial(0),
      bands: [
        { priority: 1, fairness: roundRobin() },
        { priority: 0, fairness: roundRobin(), flowLimits: { maxRequests: 1 }, saturationDetector: dial(1) },
      ],
    });
    const clock = new ManualClock();
    const page = inspector(flow, { authorize: () => true, clock });
    for (let second = 0; second < 20; second++) {
      void flow.enqueue(request, key('starved'));
      runNow(flow, { fairnessId: 'hog', priority: 1 }).release();
      flowClock.advance(1_000);
      clock.advance(1_000);
    }
    runNow(flow, { fairnessId: 'hog', priority: 1 });
    const frame = (await (await page.fetch(new Request('http://gateway/?view=json'))).json()) as InspectorFrame;
    const [first] = frame.tenants;
    expect(first).toMatchObject({ name: 'starved', priority: 0, isStarving: true });
    expect(first?.droppedPerSecond).toBeGreaterThan(0.5);
    expect(frame.tenants.find(({ name }) => name === 'hog')).toMatchObject({ isStarving: false });
  });

  it('tells shares by weight and by requests where the policy keeps no account', async () => {
    const { flow, flowClock, clock, get } = setUp({ history: true });
    flow.reconfigure({ saturationDetector: () => 0, flows: { big: { weight: 3 } } });
    for (const id of ['big', 'small', 'small', 'small']) runNow(flow, { fairnessId: id });
    flow.reconfigure({ saturationDetector: () => 2 });
    for (const id of ['big', 'small']) void flow.enqueue(request, key(id));
    flowClock.advance(6_000);
    clock.advance(6_000);
    const { tenants } = (await (await get('?view=json')).json()) as InspectorFrame;
    const shares = tenants.map(({ name, receivedShare, owedShare, isStarving }) => [
      name,
      receivedShare,
      owedShare,
      isStarving,
    ]);
    expect(shares).toEqual([
      ['big', 0.2, 0.6, true],
      ['small', 0.6, 0.2, false],
      ['running', 0.2, 0.2, false],
    ]);
  });

  it('counts tenants that are not listed in what the others are owed', async () => {
    const { flow, clock, get } = setUp({ history: true, bounds: { flows: 1 } });
    flow.reconfigure({ saturationDetector: () => 0 });
    for (const id of ['a', 'b', 'c']) runNow(flow, { fairnessId: id }).release();
    runNow(flow, { fairnessId: 'running' }).release();
    clock.advance(1000);
    const { tenants } = (await (await get('?view=json')).json()) as InspectorFrame;
    expect(tenants.map(({ name, receivedShare, owedShare }) => [name, receivedShare, owedShare])).toEqual([
      ['running', 0.4, 0.25],
    ]);
  });
});

describe('what the page says about fullness', () => {
  it('is one state for each band, and for the gate that of the highest that waits', async () => {
    const pool = new EndpointPool();
    const bands = [{ priority: 5 }, { priority: 0 }];
    const { flow } = makeFlow({ pool, bands, saturationDetector: dial(0.5) });
    const page = inspector(flow, { authorize: () => true, history: false, clock: new ManualClock(), intervalMs: 100 });
    const states = async (): Promise<unknown> => {
      const fresh = inspector(flow, { authorize: () => true, history: false });
      const frame = (await (await fresh.fetch(new Request('http://gateway/?view=json'))).json()) as InspectorFrame;
      return [frame.gate, ...frame.bands.map(({ gate }) => gate)];
    };
    expect(page.watchers).toBe(0);
    expect(await states()).toEqual(['no-endpoints', 'no-endpoints', 'no-endpoints']);
    pool.add('e1');
    expect(await states()).toEqual(['open', 'open', 'open']);
    flow.reconfigure({ saturationDetector: dial(1) });
    void flow.enqueue(request, key('a', 0));
    expect(await states()).toEqual(['full', 'full', 'full']);
  });

  it('is "growing" while more arrives than leaves', async () => {
    const { flow, flowClock, get } = setUp();
    for (let second = 0; second < 3; second++) {
      for (let index = 0; index < 10; index++) void flow.enqueue(request, key());
      flowClock.advance(1_000);
    }
    expect(((await (await get('?view=json')).json()) as InspectorFrame).isGrowing).toBe(true);
  });
});

describe('the search for a request', () => {
  it.each([
    ['its own id', { id: 'r-7' }],
    ['the header of its HTTP request', { req: { headers: { 'x-request-id': 'r-7' } } }],
  ])('finds it by %s, and says why it waits', async (_, named) => {
    const { flow, flowClock, get } = setUp();
    void flow.enqueue(request, key());
    void flow.enqueue({ ...request, ...named } as FlowRequest, key());
    flowClock.advance(2_000);
    const found = await (await get('?view=find&id=r-7')).json();
    expect(found).toMatchObject({
      isWaiting: true,
      priority: 0,
      waitedMs: 2_000,
      why: expect.stringContaining('1 ahead in this flow'),
    });
    expect(await (await get('?view=find&id=r-8')).json()).toEqual({ isWaiting: false });
    expect((await get('?view=find')).status).toBe(400);
  });
});

describe('a login', () => {
  const login = basicLogin({ password: 'right: one', realm: 'ops "1"' });
  const ask = (authorization?: string) =>
    setUp({ authorize: login }).get('?view=json', authorization === undefined ? {} : { headers: { authorization } });

  it('is asked for with a challenge, and needs the password under any name', async () => {
    const dropped = await ask();
    expect([dropped.status, dropped.headers.get('www-authenticate')]).toEqual([
      401,
      'Basic realm="ops 1", charset="UTF-8"',
    ]);
    for (const wrong of ['Basic !', 'Bearer x', `Basic ${btoa('ann:wrong')}`, `Basic ${btoa('no colon')}`]) {
      expect((await ask(wrong)).status).toBe(401);
    }
    expect((await ask(`Basic ${btoa('ann:right: one')}`)).status).toBe(200);
    expect(() => basicLogin({ password: '' })).toThrow(FlowConfigError);
  });

  it('may be any answer of the host, such as the way to its own login', async () => {
    const { get } = setUp({ authorize: () => new Response(null, { status: 302, headers: { location: '/login' } }) });
    const response = await get();
    expect([response.status, response.headers.get('location')]).toEqual([302, '/login']);
  });
});

describe('options', () => {
  it('are checked, every problem at once', () => {
    const { flow } = makeFlow();
    const wrong = {
      authorize: 1,
      intervalMs: 5,
      fairnessIds: 'some',
      bounds: { flows: 1000 },
    } as unknown as InspectorOptions;
    expect(() => inspector(flow, wrong)).toThrow(FlowConfigError);
    expect(() => inspector(flow, wrong)).toThrow(/authorize[\s\S]*fairnessIds[\s\S]*intervalMs[\s\S]*bounds\.flows/);
  });
});
