/** A store behind a channel does what the store itself does, and takes back what a worker held that is gone. */
import { EventEmitter } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { localStore, type Store, sharedConcurrency } from '../../../src/redis/index.js';
import { leaseScript } from '../../../src/redis/leases/lease-script.js';
import { type StorePort, serveStore, workerStore } from '../../../src/redis/workers/index.js';
import { until } from '../support/with-store.js';
import { parts } from '../topologies/every-part.js';

function served(store: Store = localStore()): {
  readonly store: Store;
  readonly near: MessagePort;
  readonly far: MessagePort;
} {
  const { port1: near, port2: far } = new MessageChannel();
  const stop = serveStore(store, near);
  onTestFinished(() => {
    stop();
    near.close();
  });
  return { store: workerStore(far), near, far };
}

/** A child process, as far as a store knows one. */
class Child extends EventEmitter {
  readonly sent: Record<string, unknown>[] = [];
  connected = true;
  send = (message: object): boolean => this.sent.push(message as Record<string, unknown>) > 0;

  call(id: number, sequence: number, operation = 'call'): void {
    const figures = [sequence, 0, 8, 1, 0, 0, 8, 0, 0, 0, 0, 8].map(String);
    const args = ['r', 'r1', '0', '1000', '5000', '60000', '60000', operation, ...figures];
    const question = { what: 'run', name: 'leases', keys: ['k'], args };
    this.emit('message', { headgate: 'store', from: 's', id, question });
  }
}

/** What another replica would be granted of 8 seats now. */
async function free(store: Store, replica: string): Promise<number> {
  const figures = ['1', '0', '8', '1', '0', '0', '8', '0', '0', '0', '0', '8'];
  const who = [replica, replica, '0', '1000', '5000', '60000', '60000'];
  const reply = await store.run(leaseScript, ['k'], [...who, 'call', ...figures]);
  await store.run(leaseScript, ['k'], [...who, 'leave', '2', ...figures.slice(1)]);
  return Number((reply as string[])[2]);
}

describe('a store behind a channel', () => {
  it.each(Object.keys(parts))('has %s', (part) => parts[part]!(served().store, `served-${part.replaceAll(' ', '-')}`));

  it('is one for all workers, and its owner is one of them', async () => {
    const store = localStore();
    const timing = { pool: 'p', maxConcurrency: 8, refreshInterval: '20ms', callTimeout: '1s' } as const;
    const all = [store, served(store).store, served(store).store].map((each) => sharedConcurrency(each, timing));
    await until(() => all.reduce((sum, { limit }) => sum + limit, 0) === 8 && all.every(({ limit }) => limit >= 2));
    for (const each of all) await each.close();
  });

  it('serves the first worker at once: a memory that nobody can lose need not be learnt', async () => {
    const shared = sharedConcurrency(served().store, { pool: 'p', maxConcurrency: 8, callTimeout: '1s' });
    await until(() => shared.limit === 8);
    expect(shared.status[0]).toMatchObject({ isLearning: false, granted: 8 });
    await shared.close();
  });

  it('gives the part of a worker that has exited to others at once, and does nothing that it sent before', async () => {
    const [store, child] = [localStore(), new Child()];
    serveStore(store, child as StorePort);
    child.call(1, 1);
    await until(() => child.sent.length === 1);
    expect(child.sent[0]).toMatchObject({ headgate: 'store', from: 's', id: 1, answer: expect.any(Array) });
    expect(await free(store, 'before')).toBe(0);
    child.emit('exit', 0);
    expect(await free(store, 'after')).toBe(8);
    // Node may hand over what a process has sent after it has told its end.
    child.call(2, 2);
    expect(await free(store, 'later')).toBe(8);
  });

  it('keeps the part of a child that only disconnects, because its requests may go on', async () => {
    const [store, child] = [localStore(), new Child()];
    serveStore(store, child as StorePort);
    child.call(1, 1);
    child.connected = false;
    child.emit('disconnect');
    expect(await free(store, 'other')).toBe(0);
  });

  it('takes the end of a port for the end of its thread', async () => {
    const owner = localStore();
    const { port1, port2 } = new MessageChannel();
    serveStore(owner, port1);
    const shared = sharedConcurrency(workerStore(port2), { pool: 'k', maxConcurrency: 8, callTimeout: '1s' });
    await until(() => shared.limit === 8);
    port2.close();
    const another = sharedConcurrency(owner, { pool: 'k', maxConcurrency: 8, callTimeout: '1s' });
    await until(() => another.limit === 8);
    await Promise.all([shared.close(), another.close()]);
  });

  it('rejects what is asked and what was asked when its holder is gone, and the lease falls back to its safe share', async () => {
    const { port1: near, port2: far } = new MessageChannel();
    const store = workerStore(far);
    const errors: unknown[] = [];
    store.onError((error) => errors.push(error));
    const never = store.run(leaseScript, ['k'], []);
    near.close();
    await expect(never).rejects.toThrow('the channel to the other process is closed');
    await expect(store.run(leaseScript, ['k'], [])).rejects.toThrow('closed');
    await expect(store.messages.subscribe('c', () => {})).rejects.toThrow('closed');
    expect(errors).toHaveLength(1);
    const problems: string[] = [];
    const shared = sharedConcurrency(store, { pool: 'p', maxConcurrency: 8 });
    shared.on('problem', ({ code }) => problems.push(code));
    await until(() => problems.length > 0);
    expect([problems[0], shared.limit]).toEqual(['unreachable', 0]);
    await shared.close();
  });

  it('tells a worker of another version what is missing, and leaves messages of others alone', async () => {
    const { store } = served();
    const unknown = { name: 'of the future', text: '', local: () => [] };
    await expect(store.run(unknown, [], [])).rejects.toThrow('no script "of the future" here');
    const child = new Child();
    serveStore(localStore(), child as StorePort);
    for (const message of [
      undefined,
      'x',
      { headgate: 'store' },
      { headgate: 'other', from: 's', id: 1, question: {} },
    ])
      child.emit('message', message);
    child.call(7, 1);
    await until(() => child.sent.length === 1);
    expect(child.sent[0]).toMatchObject({ id: 7 });
  });

  it('is an error for what has no channel', () => {
    expect(() => serveStore({} as never, new Child() as StorePort)).toThrow(
      /serveStore: store: expected localStore\(\)/,
    );
    expect(() => serveStore(localStore(), {} as never)).toThrow(FlowConfigError);
    expect(() => workerStore(new EventEmitter() as never)).toThrow(/expected a worker, a MessagePort, or process/);
  });
});
