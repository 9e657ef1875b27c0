/** The clients that a host may bring are recognized before they are connected. No store is needed. */

import * as ioredis from 'ioredis';
import * as iovalkey from 'iovalkey';
import { createClient } from 'redis';
import { describe, expect, it } from 'vitest';
import { readBy } from '../../../src/base/schema/element.js';
import { storeSchema } from '../../../src/redis/store/redis-store.js';

type Constructor = new (options: object) => { disconnect(): void };

/** Old versions have the class as their default export only. */
function classOf(module: { default: unknown }): Constructor {
  const { Redis } = module as { Redis?: unknown };
  const candidate = Redis ?? module.default;
  return (typeof candidate === 'function' ? candidate : (candidate as { default: unknown }).default) as Constructor;
}

const makers: Readonly<Record<string, () => { client: unknown; end(): void }>> = {
  redis: () => ({ client: createClient({ url: 'redis://127.0.0.1:1' }), end() {} }),
  ioredis: () => made(classOf(ioredis)),
  iovalkey: () => made(classOf(iovalkey)),
};

function made(Client: Constructor): { client: unknown; end(): void } {
  const client = new Client({ lazyConnect: true, host: '127.0.0.1', port: 1 });
  return { client, end: () => client.disconnect() };
}

describe.each(Object.keys(makers))('a client of %s', (name) => {
  it('is recognized, calls scripts and tells its errors', () => {
    const { client, end } = makers[name]!();
    const problems: string[] = [];
    const accepted = readBy(storeSchema, client, (expected) => void problems.push(expected))!;
    expect(problems).toEqual([]);
    const heard: unknown[] = [];
    const stop = accepted.onError((error) => heard.push(error));
    (client as { emit(event: 'error', error: unknown): void }).emit('error', 'lost');
    expect(heard).toEqual(['lost']);
    stop();
    end();
  });
});
