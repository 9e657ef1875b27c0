/**
 * The scripts run on the oldest servers that are named: since when commands and their options exist is asked of the
 * server itself.
 */
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { bucketScript } from '../../../src/redis/buckets/bucket-script.js';
import { exchangeScript } from '../../../src/redis/fairness/exchange-script.js';
import { leaseScript } from '../../../src/redis/leases/lease-script.js';
import { describeWithStores } from '../support/with-store.js';

const scripts = { leaseScript: leaseScript.text, bucketScript: bucketScript.text, exchangeScript: exchangeScript.text };
const oldest = [6, 2, 0];

interface Call {
  readonly command: string;
  /** Words such as `PX`. */
  readonly options: readonly string[];
}

function callsOf(script: string): Call[] {
  return [...script.matchAll(/redis\.call\('([A-Z]+)'([^\n]*)/g)].map(([, command = '', rest = '']) => ({
    command,
    options: [...rest.split('redis.call')[0]!.matchAll(/'([A-Z]{2,})'/g)].map(([, word = '']) => word),
  }));
}

/** What a reply of pairs says under `name`. */
function field(pairs: readonly unknown[], name: string): unknown {
  const at = pairs.indexOf(name);
  return at < 0 ? undefined : pairs[at + 1];
}

/**
 * Since when the option exists; that of the command when nothing is said of it. Undefined when there is no such option.
 */
function optionSince(argument: readonly unknown[], word: string, since: string): string | undefined {
  const own = (field(argument, 'since') as string | undefined) ?? since;
  if (field(argument, 'token') === word) return own;
  const parts = (field(argument, 'arguments') ?? []) as readonly (readonly unknown[])[];
  for (const part of parts) {
    const found = optionSince(part, word, own);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isLater(version: string): boolean {
  const numbers = version.split('.').map(Number);
  const at = numbers.findIndex((number, index) => number !== oldest[index]);
  return at >= 0 && numbers[at]! > oldest[at]!;
}

describeWithStores('the scripts', (store) => {
  it('use no command and no option that came after Redis 6.2', async () => {
    const redis = new Redis(store().port);
    onTestFinished(() => redis.disconnect());
    for (const [name, script] of Object.entries(scripts)) {
      const calls = callsOf(script);
      expect(calls.length, name).toBeGreaterThan(1);
      for (const { command, options } of calls) {
        const [, docs] = (await redis.call('COMMAND', 'DOCS', command)) as [string, readonly unknown[]];
        const since = field(docs, 'since') as string;
        expect(isLater(since), `${command} is there since ${since}`).toBe(false);
        for (const option of options) {
          const optionIsThereSince = optionSince(docs, option, since);
          expect(optionIsThereSince, `${command} ${option}`).toBeDefined();
          expect(isLater(optionIsThereSince!), `${command} ${option} is there since ${optionIsThereSince}`).toBe(false);
        }
      }
    }
  });

  it('would be told of one that did', async () => {
    expect(callsOf("redis.call('ZADD', k, 'XX', text(1), m)\nredis.call('EXPIRE', k, 'NX')")).toEqual([
      { command: 'ZADD', options: ['XX'] },
      { command: 'EXPIRE', options: ['NX'] },
    ]);
    const redis = new Redis(store().port);
    onTestFinished(() => redis.disconnect());
    const [, docs] = (await redis.call('COMMAND', 'DOCS', 'EXPIRE')) as [string, readonly unknown[]];
    // An option of 7.0 of a command of 1.0.
    expect(isLater(optionSince(docs, 'NX', '1.0.0')!)).toBe(true);
  });

  it('call nothing of the server but commands', () => {
    for (const [name, script] of Object.entries(scripts))
      expect(new Set(script.match(/\bredis\.\w+|\bserver\.\w+/g)), name).toEqual(new Set(['redis.call']));
  });
});
