import { describe, expect, it, vi } from 'vitest';
import {
  capacityLedger,
  EndpointPool,
  explainWait,
  FlowConfigError,
  FlowController,
  type FlowRequest,
  type Lease,
} from '../../../src/index.js';
import { audit, ManualClock } from '../../../src/testing/index.js';
import type { CapacityLedgerOptions } from '../../../src/types/index.js';
import { key, turns } from '../../support/flow.js';

interface Sized extends FlowRequest {
  readonly inputTokens: number;
  readonly maxOutputTokens?: number;
  readonly model?: string;
}

const sized = (inputTokens: number, maxOutputTokens?: number): Sized => ({
  byteSize: 1,
  inputTokens,
  ...(maxOutputTokens !== undefined && { maxOutputTokens }),
});

function setUp(options: CapacityLedgerOptions, endpoints: Record<string, number> = { a: 1 }) {
  const clock = new ManualClock();
  const pool = new EndpointPool();
  for (const [id, weight] of Object.entries(endpoints)) pool.add(id, { weight });
  const flow = new FlowController<Sized>({ clock, pool, constraints: [capacityLedger(options)] });
  const dispatched: Lease[] = [];
  const dropped: string[] = [];
  flow.on('dispatched', ({ lease }) => dispatched.push(lease));
  flow.on('dropped', ({ outcome }) => dropped.push(outcome.reason));
  /** Sends a request; says how many run by then. */
  const send = async (request: Sized, priority = 0, fairnessId = 'tenant'): Promise<number> => {
    void flow.enqueue(request, { fairnessId, priority });
    await turns();
    expect(audit(flow).violations).toEqual([]);
    return flow.stats().inFlight;
  };
  const report = async (lease: Lease | undefined, completionTokens: number): Promise<void> => {
    lease?.report({ promptTokens: 0, completionTokens });
    await turns();
  };
  const running = () => flow.stats().inFlight;
  /** Answers of one length, each after the other. */
  const teach = async (length: number, times = 8): Promise<void> => {
    for (let i = 0; i < times; i++) {
      await send(sized(1));
      const lease = dispatched.at(-1);
      await report(lease, length);
      lease?.release();
    }
    dispatched.length = 0;
  };
  return { clock, pool, flow, send, report, running, teach, dispatched, dropped };
}

describe('the ledger', () => {
  it('gives each request a slot, more of them to a heavier endpoint, and gives it to the next at the end', async () => {
    const { send, dispatched, running } = setUp({ slots: 1 }, { a: 1, b: 2 });
    for (const expected of [1, 2, 3, 3]) expect(await send(sized(10))).toBe(expected);
    expect(dispatched.map(({ endpoint }) => endpoint?.id).sort()).toEqual(['a', 'b', 'b']);
    dispatched[0]?.release();
    await turns();
    expect([running(), dispatched.length]).toEqual([3, 4]);
  });

  it('gives prefill back at the first token, and not before', async () => {
    const { send, dispatched, report, running } = setUp({ prefillTokens: 1000 });
    expect(await send(sized(800))).toBe(1);
    expect(await send(sized(300))).toBe(1);
    await report(dispatched[0], 0);
    expect(running()).toBe(1);
    await report(dispatched[0], 1);
    expect(running()).toBe(2);
  });

  it('takes a prompt larger than the limit of prefill where no other is in prefill', async () => {
    const { send, dispatched, report } = setUp({ prefillTokens: 1000 });
    expect(await send(sized(5000))).toBe(1);
    expect(await send(sized(10))).toBe(1);
    await report(dispatched[0], 1);
    expect(dispatched).toHaveLength(2);
  });

  it('bounds the requests without a first token', async () => {
    const { send, dispatched, report, running } = setUp({ unstarted: 2 });
    for (const expected of [1, 2, 2]) expect(await send(sized(1))).toBe(expected);
    await report(dispatched[1], 1);
    expect(running()).toBe(3);
  });

  it('judges guaranteed requests by the longest answer that they may get, and sheddable ones by the likely', async () => {
    const { send, teach } = setUp({ kvTokens: 10_000 });
    await teach(100);
    // 4 × (100 + 4000) is more than 10,000, and 4 × (100 + 100) is not.
    for (const expected of [1, 2, 2]) expect(await send(sized(100, 4000))).toBe(expected);
    const sheddable = setUp({ kvTokens: 10_000 });
    await sheddable.teach(100);
    for (const expected of [1, 2, 3, 4]) expect(await sheddable.send(sized(100, 4000), -1)).toBe(expected);
  });

  it('lets requests that end before others share room: what counts is the peak', async () => {
    const { send } = setUp({ kvTokens: 1000 });
    // The long one alone will hold 900; while the short one runs, both hold at most 100 + 100 + 2 × 20.
    expect(await send(sized(100, 800))).toBe(1);
    expect(await send(sized(100, 20))).toBe(2);
    // When a third of 410 ends, two hold 100 + 100 + 2 × 410.
    expect(await send(sized(100, 410))).toBe(2);
    expect(await send(sized(100, 400), 1)).toBe(3);
  });

  it('learns lengths for each model, and says for a long answer that it will be longer', async () => {
    const { send, teach, report, dispatched, running } = setUp({ kvTokens: 1000, defaultOutputTokens: 900 });
    expect(await send(sized(50))).toBe(1);
    expect(await send(sized(50))).toBe(1);
    dispatched[0]?.release();
    await turns();
    dispatched[1]?.release();
    await teach(100);
    for (const expected of [1, 2, 3, 4, 5, 6]) expect(await send(sized(50))).toBe(expected);
    await send({ ...sized(50), model: 'another' });
    expect(running()).toBe(6);
    await report(dispatched[0], 500);
    expect(await send(sized(50), 1)).toBe(6);
  });

  it('tells at once of a prompt that no cache holds, and of what one that waits lacks', async () => {
    const { send, dropped, flow, dispatched, clock, report } = setUp({ kvTokens: 1000 }, { 'gpu-1': 1 });
    await send({ ...sized(1000), ttlMs: 60_000 });
    expect(dropped).toEqual(['over-quota']);
    await send(sized(500, 300));
    await report(dispatched[0], 1);
    clock.advance(1000);
    await report(dispatched[0], 101);
    const waiting = sized(400, 300);
    await send(waiting);
    expect(explainWait(flow, waiting)?.text ?? explainWait(flow, waiting)).toMatch(/tokens of KV at gpu-1/);
  });

  it('keeps an endpoint for a request that waits long, so that small ones do not starve it', async () => {
    const { send, dispatched, clock, running } = setUp({ kvTokens: 1000, patience: '1s' });
    await send(sized(400, 100), 0, 'small');
    await send(sized(400, 100), 0, 'small');
    await send(sized(800, 100), 0, 'large');
    expect(running()).toBe(2);
    clock.advance(1000);
    await turns();
    dispatched[0]?.release();
    await turns();
    expect(await send(sized(100, 100), 0, 'small')).toBe(1);
    expect(await send(sized(100, 100), 1, 'above')).toBe(2);
    dispatched.find(({ priority }) => priority === 1)?.release();
    dispatched[1]?.release();
    await turns();
    expect(dispatched.at(-1)?.fairnessId).toBe('large');
  });

  it('lets the older of two go first, also when readers keep asking of the younger', async () => {
    const { send, dispatched, clock, flow } = setUp({ kvTokens: 1000, patience: '1s' });
    await send(sized(800, 100));
    const [older, younger] = [sized(300, 50), sized(400, 50)];
    await send(older);
    await send(younger);
    clock.advance(1500);
    explainWait(flow, younger);
    dispatched[0]?.release();
    await turns();
    expect(dispatched).toHaveLength(3);
    expect(explainWait(flow, older)).toBeUndefined();
  });

  it('frees an endpoint that it keeps when the request goes away', async () => {
    const { clock, flow, dispatched, send, running } = setUp({ kvTokens: 1000, patience: '1s' });
    await send(sized(800, 100), 0, 'small');
    const controller = new AbortController();
    void flow.enqueue({ ...sized(900, 50), signal: controller.signal }, key('large'));
    await turns();
    clock.advance(1500);
    controller.abort();
    dispatched[0]?.release();
    clock.advance(200);
    expect(await send(sized(10, 10), 0, 'small')).toBe(1);
    expect(running()).toBe(1);
  });

  it('counts what others run at the server, as it reports, and not what has just ended', async () => {
    const { send, pool, dispatched, clock, running } = setUp({ kvTokens: 1000, slots: 4 });
    await send(sized(100, 100));
    const load = { waitingQueueSize: 0, runningRequests: 1 };
    pool.report('a', { ...load, runningRequests: 2, kvCacheUsage: 0.9, sampledAtMs: clock.now() });
    expect(await send(sized(100, 100))).toBe(1);
    clock.advance(1);
    pool.report('a', { ...load, kvCacheUsage: 0.1, sampledAtMs: clock.now() });
    await turns();
    expect(running()).toBe(2);
    clock.advance(1);
    pool.report('a', { ...load, runningRequests: 5, kvCacheUsage: 0.2, sampledAtMs: clock.now() });
    expect(await send(sized(1, 1))).toBe(2);
    clock.advance(10);
    dispatched[0]?.release();
    dispatched[1]?.release();
    pool.report('a', { ...load, runningRequests: 2, kvCacheUsage: 0.4, sampledAtMs: clock.now() - 5 });
    await turns();
    expect(await send(sized(300, 300))).toBe(2);
  });

  it.each([
    { real: 500, told: 'less than' },
    { real: 2000, told: 'more than' },
  ])(
    'learns from reports that a cache of $real tokens is not one of 1,000, and tells it once',
    async ({ real, told }) => {
      const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
      const { send, pool, clock, dispatched, report, flow } = setUp({ kvTokens: 1000, slots: 2 });
      for (let i = 0; i < 2; i++) {
        await send(sized(100, 10));
        await report(dispatched[i], 1);
      }
      for (let i = 0; i < 100; i++) {
        clock.advance(100);
        const load = { waitingQueueSize: 0, runningRequests: 2, kvCacheUsage: 202 / real, sampledAtMs: clock.now() };
        pool.report('a', load);
        await send(sized(1)); // asks; there is no slot
      }
      expect(warn.mock.calls.flat()).toEqual([expect.stringContaining(`a fills its KV cache as if that had ${told}`)]);
      // 3 % are kept.
      expect(flow.figures().capacity[1]?.used).toBeCloseTo((1.03 * 1000 * 202) / real, -1);
      warn.mockRestore();
    },
  );

  it('takes any request whose prompt fits where nothing runs, and reports of nonsense for nothing', async () => {
    const { send, pool, clock } = setUp({ kvTokens: 1000, prefillTokens: 10, slots: 1, unstarted: 1 });
    pool.report('a', { waitingQueueSize: 99, runningRequests: 99, kvCacheUsage: 1, sampledAtMs: clock.now() });
    expect(await send(sized(999, 10_000_000))).toBe(1);
  });

  it('tells what is used of each endpoint, in the dimensions that are limited', async () => {
    const { send, flow, dispatched, report, clock } = setUp({ slots: 8, kvTokens: '1k' }, { a: 2 });
    await send(sized(100, 100));
    await report(dispatched[0], 50);
    clock.advance(20);
    expect(flow.figures().capacity).toEqual([
      { endpoint: 'a', dimension: 'slots', used: 1, limit: 16 },
      { endpoint: 'a', dimension: 'kv', used: 150, limit: 2000 },
    ]);
  });

  it('has room again for all when everything has ended', async () => {
    const { send, flow, dispatched, clock } = setUp({ slots: 4, kvTokens: 5000, prefillTokens: 500, unstarted: 3 });
    for (let i = 0; i < 40; i++) await send(sized(1 + ((i * 37) % 400), 1 + ((i * 91) % 700)), (i % 3) - 1);
    for (let i = 0; i < 40; i++) {
      const lease = dispatched[i];
      if (i % 3 > 0) lease?.report({ promptTokens: 1, completionTokens: i });
      clock.advance(20);
      lease?.release();
      await turns();
      expect(audit(flow).violations).toEqual([]);
    }
    expect(dispatched).toHaveLength(40);
    expect(flow.figures().capacity.map(({ used }) => used)).toEqual([0, 0, 0, 0]);
  });
});

it('options that cannot be right are told all at once', () => {
  const make = (options: CapacityLedgerOptions) => () => capacityLedger(options);
  expect(make({})).toThrow(/one of slots, prefillTokens, kvTokens, unstarted; got none of them/);
  expect(make({ slots: 0, kvTokens: '-5', patience: 0 })).toThrow(FlowConfigError);
  expect(make({ slots: 0, kvTokens: '-5', patience: 0 })).toThrow(/slots.*\n.*kvTokens.*\n.*patience/);
});
