/** A store in the memory of a process does what a server does. */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { FlowConfigError } from '../../../src/index.js';
import { exchangeScript } from '../../../src/redis/fairness/exchange-script.js';
import { localStore, redisStore, type StoreScript, sharedMarks } from '../../../src/redis/index.js';
import { leaseScript } from '../../../src/redis/leases/lease-script.js';
import { ManualClock } from '../../../src/testing/index.js';
import { SessionReplica } from '../../support/session-replica.js';
import { withVirtualTime } from '../support/virtual-world.js';
import { describeWithClient, until } from '../support/with-store.js';
import { parts } from '../topologies/every-part.js';

describe('a store of one process', () => {
  it.each(Object.keys(parts))('has %s', (part) => parts[part]!(localStore(), `local-${part.replaceAll(' ', '-')}`));

  it('counts sessions of all', async () => {
    const clock = new ManualClock();
    const store = localStore({ clock });
    const [one, two] = [0, 1].map(() => new SessionReplica(clock, store, { maxSessions: 1 })) as [
      SessionReplica,
      SessionReplica,
    ];
    await until(() => one.shared.received + two.shared.received > 0);
    one.send('s1');
    await until(() => two.resident[1] === 1);
    two.send('s2');
    one.end('s1', true);
    await until(() => two.running.has('s2'));
    await Promise.all([one.shared.close(), two.shared.close()]);
  });

  it('is one for each call, and takes a clock', async () => {
    const other = localStore();
    const told = await exchange(localStore(), '5');
    expect([told, await exchange(other, '2'), await exchange(other, '3')]).toEqual([['5'], ['2'], ['5']]);
    expect(() => localStore({ clock: {} as never })).toThrow(FlowConfigError);
  });

  it('forgets what has come to its end', async () => {
    const clock = new ManualClock();
    const store = localStore({ clock });
    await exchange(store, '5');
    clock.advance(999);
    expect(await exchange(store, '5')).toEqual(['10']);
    clock.advance(1_000);
    expect(await exchange(store, '5')).toEqual(['5']);
  });

  it('does not stand in for marks where a client cannot listen', () => {
    const client = { evalsha: async () => [], eval: async () => [] };
    expect(() => sharedMarks(redisStore(client), {} as never, { name: 'a' })).toThrow(
      /redisStore\(client, subscriber\)/,
    );
  });
});

function exchange(store: ReturnType<typeof localStore>, cost: string): Promise<unknown> {
  return store.run(exchangeScript, ['served', 'heard'], ['1000', '1', 'flow', cost]);
}

const calls = 30_000;
const batch = 1_000;

describeWithClient('a script', { timeout: 180_000 }, (redis) => {
  /** Draws the arguments of `calls` calls at instants of virtual time; both forms must answer the same. */
  async function compare(
    script: StoreScript,
    keys: readonly string[],
    draw: (random: () => number, nowMs: number, last: readonly string[] | undefined) => readonly string[],
  ): Promise<{ differences: unknown[]; answers: Set<string> }> {
    const random = seededRandom(5);
    const memory = {};
    const digest = (await redis().script('LOAD', withVirtualTime(script.text))) as string;
    let nowMs = Date.now() + 86_400_000;
    let last: readonly string[] | undefined;
    const differences: unknown[] = [];
    const answers = new Set<string>();
    for (let done = 0; done < calls; done += batch) {
      const drawn = Array.from({ length: batch }, () => {
        nowMs += Math.floor(random() * 40);
        const args = draw(random, nowMs, last);
        last = script.local(memory, keys, args, nowMs * 1_000);
        return { args, nowMs, expected: last };
      });
      const pipeline = redis().pipeline();
      for (const { args, nowMs: atMs } of drawn) {
        const clock = [String(Math.floor(atMs / 1_000)), String((atMs % 1_000) * 1_000)];
        pipeline.evalsha(digest, keys.length, ...keys, ...args, ...clock);
      }
      const replies = (await pipeline.exec()) ?? [];
      for (const [index, { args, expected }] of drawn.entries()) {
        const [error, reply] = replies[index] ?? [];
        if (error) throw error;
        answers.add(expected.join(' '));
        if (JSON.stringify(reply) !== JSON.stringify(expected)) differences.push({ args, reply, expected });
      }
    }
    return { differences, answers };
  }

  it('of leases answers the same in both of its forms', async () => {
    const keys = ['l:a', 'l:b'];
    const sequences = new Map<string, number>();
    const remembered = new Map<string, readonly [epoch: string, birth: string]>();
    const { differences, answers } = await compare(leaseScript, keys, (random, _nowMs, last) => {
      const upTo = (most: number): number => Math.floor(random() * (most + 1));
      if (last !== undefined) remembered.set(last[0]!, [last[4]!, last[12]!]);
      // Names are used again by other incarnations, and sometimes by two at a time.
      const name = upTo(6);
      const incarnation = `r${name}.${random() < 0.97 ? Math.floor(sequences.size / 8) : upTo(3)}`;
      // Some calls are late duplicates, some say that the store has lost writes.
      const sequence = (sequences.get(incarnation) ?? 0) + (random() < 0.9 ? 1 : 0);
      sequences.set(incarnation, sequence);
      const [epoch = '0', birth = '0'] = remembered.get(incarnation) ?? [];
      const weight = name < 4 ? 1 : name - 2;
      const ofKey = (): number[] => {
        const acknowledged = random() < 0.005 ? sequence + 1 : Math.max(0, sequence - 1 - upTo(1));
        const memory = [random() < 0.05 ? 1 : Number(epoch), upTo(9), random() < 0.02 ? 1 : Number(birth)];
        const limit = random() < 0.1 ? 40 : random() < 0.3 ? 4 : 64;
        const [cap, inFlight, wants, safe] = [upTo(30), upTo(20), upTo(random() < 0.3 ? 0 : 60), upTo(9)];
        return [sequence, acknowledged, limit, weight, cap, inFlight, wants, safe, ...memory, upTo(70)];
      };
      const operation = random() < 0.03 ? 'leave' : 'call';
      const spans = ['40', '200', '150', '400'];
      const isNamed = String(Number(name < 3));
      return [`r${name}`, incarnation, isNamed, ...spans, operation, ...[...ofKey(), ...ofKey()].map(String)];
    });
    expect(differences.slice(0, 2)).toEqual([]);
    expect(answers.size).toBeGreaterThan(calls / 4);
  });

  it('of fairness answers the same in both of its forms', async () => {
    const { differences, answers } = await compare(exchangeScript, ['f:served', 'f:heard'], (random) => {
      const flows = Array.from({ length: 1 + Math.floor(random() * 4) }, () => `t${Math.floor(random() * 60)}`);
      const told = [...new Set(flows)].flatMap((flow) => [flow, String(Math.floor(random() * 1_000))]);
      return ['1000', String(told.length / 2), ...told];
    });
    expect(differences.slice(0, 2)).toEqual([]);
    expect(answers.size).toBeGreaterThan(calls / 4);
  });
});
