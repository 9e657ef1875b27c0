import { describe, expect, it } from 'vitest';
import type { ItemView } from '../../../src/index.js';
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

  it('is nothing after a dispatch that needed no waiting', () => {
    const { flow } = makeFlow();
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
    const admission = { type: 'hears', admit: () => 'admit' as const, released: (payload: unknown) => ended.push(payload) };
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
});
