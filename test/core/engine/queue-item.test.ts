import { describe, expect, it } from 'vitest';
import type { FlowController, FlowRequest, ItemView } from '../../../src/index.js';
import { key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';

describe('what the controller keeps of a request', () => {
  /** The items of all that waited, in the order of their arrival. */
  function itemsOf(flow: ReturnType<typeof makeFlow>['flow']): ItemView[] {
    const items: ItemView[] = [];
    flow.on('queued', ({ item }) => items.push(item));
    return items;
  }

  it('is the payload as long as it waits, and nothing when it is settled', async () => {
    const { flow, clock } = makeFlow();
    const items = itemsOf(flow);
    const abort = new AbortController();
    const held = runNow(flow);
    const payload = { ...request, prompt: 'long' };
    void flow.enqueue(payload, key('dispatched'));
    void flow.enqueue({ ...payload, signal: abort.signal }, key('aborted'));
    void flow.enqueue({ ...payload, ttlMs: 10 }, key('expired'));
    void flow.enqueue(payload, key('closed'));
    expect(items[0]?.request).toBe(payload);
    abort.abort();
    clock.advance(10);
    held.release();
    expect(items.map((item) => item.request === undefined)).toEqual([true, true, true, false]);
    await flow.close();
    expect(items.every((item) => item.request === undefined)).toBe(true);
  });

  it.each([
    ['as it was made', () => {}],
    ['that was given the same options anew', (flow: FlowController) => flow.reconfigure({})],
  ])('is nothing after a dispatch that needed no waiting, by a controller %s', (_, act) => {
    const { flow } = makeFlow();
    act(flow);
    let item: ItemView | undefined;
    flow.on('dispatched', (event) => {
      item = event.item;
    });
    runNow(flow);
    expect(item).toBeDefined();
    expect(item?.request).toBeUndefined();
  });

  it('is the payload until the lease is released, when somebody wants to know it at the end', async () => {
    const ended: unknown[] = [];
    const admission = {
      type: 'hears',
      admit: () => 'admit' as const,
      released: (payload: unknown) => ended.push(payload),
    };
    const { flow } = makeFlow({ admission });
    let item: ItemView | undefined;
    flow.on('dispatched', (event) => {
      item = event.item;
    });
    const lease = leaseOf(await flow.enqueue(request, key()));
    expect(item?.request).toBe(request);
    lease.release();
    expect(ended).toEqual([request]);
    expect(item?.request).toBeUndefined();
  });

  it('is the payload of one that left, while an ordering policy may compare it once more', () => {
    const seen: unknown[] = [];
    const ordering = {
      type: 'cheapest',
      compare: (a: ItemView, b: ItemView) => {
        seen.push(a.request, b.request);
        return (a.request as { cost: number }).cost - (b.request as { cost: number }).cost;
      },
    };
    const { flow } = makeFlow({ bands: [{ priority: 0, ordering }] });
    const abort = new AbortController();
    const held = runNow(flow);
    for (const cost of [5, 3, 4, 2])
      void flow.enqueue({ ...request, cost, signal: cost === 2 ? abort.signal : undefined } as never, key());
    abort.abort();
    held.release();
    expect(seen).not.toContain(undefined);
    expect(flow.stats().pluginErrors).toBe(0);
  });
});

describe('the times of a request', () => {
  async function timesOf(own: Partial<FlowRequest>, options: Parameters<typeof makeFlow>[0] = {}) {
    const { flow, clock } = makeFlow(options);
    const items: ItemView[] = [];
    flow.on('dispatched', ({ item }) => items.push(item));
    clock.advance(500);
    leaseOf(await flow.enqueue({ ...request, ...own }, key()));
    const { enqueuedAtMs, receivedAtMs, ttftDeadlineAtMs } = items[0] as ItemView;
    return { enqueuedAtMs, receivedAtMs, ttftDeadlineAtMs };
  }

  const never = Number.POSITIVE_INFINITY;

  it.each([
    ['nothing', {}, 500, never],
    ['when it was received', { receivedAtMs: 400 }, 400, never],
    ['how soon its first token is due', { sloTtftMs: 50 }, 500, 550],
    ['both', { receivedAtMs: 400, sloTtftMs: 50 }, 400, 450],
  ])('are counted from its arrival where the host says %s', async (_, own, receivedAtMs, ttftDeadlineAtMs) => {
    expect(await timesOf(own)).toEqual({ enqueuedAtMs: 500, receivedAtMs, ttftDeadlineAtMs });
  });

  it('are the same for a request of which more is kept', async () => {
    const admission = { type: 'hears', admit: () => 'admit' as const, released: () => {} };
    expect(await timesOf({}, { admission })).toEqual({ enqueuedAtMs: 500, receivedAtMs: 500, ttftDeadlineAtMs: never });
  });
});
