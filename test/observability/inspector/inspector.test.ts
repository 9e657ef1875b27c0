import { describe, expect, it } from 'vitest';
import { FlowConfigError, type FlowController, roundRobin } from '../../../src/index.js';
import { type InspectorFrame, type InspectorOptions, inspector } from '../../../src/observability/inspector/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { CountingClock } from '../../support/clocks.js';
import { key, makeFlow, request, runNow } from '../../support/flow.js';

const bands = [{ priority: 0, fairness: roundRobin() }];
const limits = { maxRequests: 1e6, maxBytes: 1e9 };

/** A controller with one request running, and its inspector on a clock of its own. */
function setUp(options: Partial<InspectorOptions> = {}) {
  const clock = new CountingClock();
  const { flow, clock: flowClock } = makeFlow({ limits, bands: [{ ...bands[0]!, limits }] });
  let looks = 0;
  const overview: FlowController['overview'] = (bounds) => {
    looks++;
    return flow.overview(bounds);
  };
  const page = inspector({ overview }, { authorize: () => true, clock, ...options });
  const get = (query = '', init: RequestInit = {}) => page.fetch(new Request(`http://gateway/inspector${query}`, init));
  runNow(flow);
  return { flow, flowClock, clock, page, get, looks: () => looks };
}

/** One event of a stream, as its frame. */
async function next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<InspectorFrame> {
  const { value } = await reader.read();
  const text = new TextDecoder().decode(value);
  expect(text).toMatch(/^data: .*\n\n$/);
  return JSON.parse(text.slice(6)) as InspectorFrame;
}

const readerOf = async (response: Promise<Response>) => (await response).body!.getReader();

describe('who may look', () => {
  it('is nobody unless the host says so', async () => {
    const { flow } = makeFlow();
    for (const query of ['', '?view=json', '?view=events']) {
      const response = await inspector(flow).fetch(new Request(`http://gateway/${query}`));
      expect([response.status, await response.json()]).toEqual([403, { error: expect.stringContaining('authorize') }]);
    }
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
    expect([response.headers.get('cache-control'), response.headers.get('x-content-type-options')]).toEqual(['no-store', 'nosniff']);
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
    expect(frame).toMatchObject({ waiting: 3, inFlight: 1, saturation: 1, isGateClosed: true, state: 'open' });
    expect(frame.bands).toMatchObject([
      {
        priority: 0,
        waiting: 3,
        isGated: true,
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

  it('show no payload, no header and, when asked, no fairness ID', async () => {
    const { flow, get } = setUp({ fairnessIds: 'hidden' });
    for (const id of ['sk-secret', 'sk-secret', 'sk-other']) void flow.enqueue({ byteSize: 1, prompt: 'private words' } as never, key(id));
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

  it('is refused beyond the number of pages that may watch', async () => {
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
    let isBroken = false;
    const broken = inspector(
      {
        overview(bounds) {
          if (isBroken) throw new Error('cannot look');
          return flow.overview(bounds);
        },
      },
      { authorize: () => true, clock },
    );
    const other = await readerOf(broken.fetch(new Request('http://gateway/?view=events')));
    await next(other);
    isBroken = true;
    clock.advance(500);
    await expect(other.read()).rejects.toThrow('cannot look');
    expect(broken.watchers).toBe(0);
  });
});

describe('outcomes over time', () => {
  it('are told by spans, unknown where nobody looked', async () => {
    const { flow, flowClock, clock, get } = setUp();
    const buckets = async () => {
      const { outcomes } = (await (await get('?view=json')).json()) as InspectorFrame;
      expect(outcomes.buckets).toHaveLength(60);
      return outcomes.buckets.slice(-3);
    };
    async function pass(ms: number): Promise<void> {
      flowClock.advance(ms);
      clock.advance(ms);
    }
    expect(await buckets()).toEqual([null, null, null]);
    await pass(1000);
    await flow.enqueue({ byteSize: 1, signal: AbortSignal.abort() }, key());
    expect(await buckets()).toEqual([null, null, [0, 1, 0]]);
    await pass(5000);
    expect(await buckets()).toEqual([null, [0, 1, 0], [0, 0, 0]]);
    // Nobody looks for a while: what happens then is not heaped upon one span.
    await flow.enqueue({ byteSize: 1, signal: AbortSignal.abort() }, key());
    await pass(20_000);
    expect(await buckets()).toEqual([null, null, null]);
  });
});

describe('options', () => {
  it('are checked, every problem at once', () => {
    const { flow } = makeFlow();
    const wrong = { authorize: 1, intervalMs: 5, fairnessIds: 'some', bounds: { flows: 1000 } } as unknown as InspectorOptions;
    expect(() => inspector(flow, wrong)).toThrow(FlowConfigError);
    expect(() => inspector(flow, wrong)).toThrow(/authorize[\s\S]*fairnessIds[\s\S]*intervalMs[\s\S]*bounds\.flows/);
  });
});
