import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it } from 'vitest';
import { key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';

const storage = new AsyncLocalStorage<string>();

it('every waiter goes on in its own context, whoever made it go', async () => {
  const { flow, clock } = makeFlow();
  const abort = new AbortController();
  const seen: Record<string, [string, string | undefined]> = {};
  const wait = (name: string, own: object = {}): Promise<void> =>
    storage.run(name, async () => {
      const { type } = await flow.enqueue({ ...request, ...own }, key(name));
      seen[name] = [type, storage.getStore()];
    });
  const held = storage.run('holder', () => runNow(flow));
  const all = [
    wait('released'),
    wait('closed', { ttlMs: 0 }),
    wait('aborted', { signal: abort.signal }),
    wait('expired', { ttlMs: 10 }),
  ];
  storage.run('releaser', () => held.release());
  storage.run('aborter', () => abort.abort());
  storage.run('timer', () => clock.advance(10));
  await storage.run('closer', () => flow.close());
  await Promise.all(all);
  expect(seen).toEqual({
    released: ['Dispatched', 'released'],
    closed: ['EvictedOther', 'closed'],
    aborted: ['EvictedContextCancelled', 'aborted'],
    expired: ['EvictedTTL', 'expired'],
  });
});

it('a request that was handed in from inside a listener keeps its context too', async () => {
  const { flow } = makeFlow();
  let seen: string | undefined;
  const done = new Promise<void>((resolve) => {
    flow.on('queued', () => {
      if (seen !== undefined) return;
      seen = 'pending';
      void storage.run('inner', async () => {
        leaseOf(await flow.enqueue(request, key('inner', 5))).release();
        seen = storage.getStore();
        resolve();
      });
    });
  });
  const held = storage.run('holder', () => runNow(flow));
  void storage.run('outer', () => flow.enqueue(request, key('outer')));
  storage.run('releaser', () => held.release());
  await done;
  expect(seen).toBe('inner');
});

it('work given to run runs in the context of the call', async () => {
  const { flow } = makeFlow();
  const held = runNow(flow);
  const running = storage.run('caller', () => flow.run(request, key(), () => storage.getStore()));
  storage.run('releaser', () => held.release());
  expect(await running).toBe('caller');
});
