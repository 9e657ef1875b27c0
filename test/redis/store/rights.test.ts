/** A user that has the rights of docs/scale-out.md, and no others, can do all that replicas share. */
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { redisStore, type Store } from '../../../src/redis/index.js';
import { describeWithStores } from '../support/with-store.js';
import { parts } from '../topologies/every-part.js';

const page = readFileSync(new URL('../../../docs/scale-out.md', import.meta.url), 'utf8');
const documented = /ACL SETUSER headgate on >PASSWORD (.*)/.exec(page)![1]!.split(' ');
const credentials = { username: 'headgate', password: 'PASSWORD' };

const clients: Readonly<Record<string, (port: number) => Promise<Store>>> = {
  async ioredis(port) {
    const [client, subscriber] = [new Redis({ port, ...credentials }), new Redis({ port, ...credentials })];
    onTestFinished(() => {
      client.disconnect();
      subscriber.disconnect();
    });
    return redisStore(client, subscriber);
  },
  async redis(port) {
    const client = createClient({ url: `redis://127.0.0.1:${port}`, ...credentials });
    const subscriber = client.duplicate();
    for (const each of [client, subscriber]) {
      each.on('error', () => {});
      await each.connect();
    }
    onTestFinished(() => {
      client.destroy();
      subscriber.destroy();
    });
    return redisStore(client, subscriber);
  },
};

describeWithStores('the documented rights', (store) => {
  async function allow(rights: readonly string[]): Promise<void> {
    const admin = new Redis(store().port);
    onTestFinished(() => admin.disconnect());
    await admin.call('ACL', 'SETUSER', 'headgate', 'reset', 'on', '>PASSWORD', ...rights);
  }

  describe.each(Object.keys(clients))('through %s', (client) => {
    it.each(Object.keys(parts))('are enough for %s', async (part) => {
      await allow(documented);
      await parts[part]!(await clients[client]!(store().port), `${client}-${part.replaceAll(' ', '-')}`);
    });
  });

  it('are no more than is needed: without TIME no script runs', async () => {
    await allow(documented.filter((right) => right !== '+time'));
    const made = await clients.ioredis!(store().port);
    await expect(parts.budgets!(made, 'without-time')).rejects.toThrow();
  });

  it('do not reach the keys of others', async () => {
    await allow(documented);
    const client = new Redis({ port: store().port, ...credentials });
    onTestFinished(() => client.disconnect());
    await expect(client.hset('others', 'a', '1')).rejects.toThrow(/NOPERM/);
  });
});
