import { describe, expect, it } from 'vitest';
import { FlowConfigError, sessionLimit } from '../../../src/index.js';
import { type SharedSessionsOptions, sharedSessions } from '../../../src/redis/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import type { SessionLimitOptions } from '../../../src/types/index.js';
import { turns } from '../../support/flow.js';
import { messageStore } from '../../support/message-channel.js';
import { MessageChannel, SessionReplica } from '../../support/session-replica.js';

const channelName = 'headgate:{chat}:sessions';

async function setUp(limits: SessionLimitOptions, options: Partial<SharedSessionsOptions> = {}) {
  const clock = new ManualClock();
  const channel = new MessageChannel();
  const make = (): SessionReplica =>
    new SessionReplica(clock, channel.connect(), { inactivity: '10m', ...limits }, options);
  const [one, two] = [make(), make()];
  const settle = async (): Promise<void> => {
    await turns();
    channel.deliver();
    await turns();
  };
  await settle();
  clock.advance(1_000);
  return { clock, channel, one, two, settle, make };
}

describe('sessions of several replicas', () => {
  it('count together: a new one waits while others fill the limit elsewhere, and goes when one of them ends', async () => {
    const { one, two, settle } = await setUp({ maxSessions: 2 });
    one.send('s1');
    one.send('s2');
    await settle();
    expect([one.resident, two.resident]).toEqual([
      [2, 0],
      [2, 2],
    ]);
    two.send('s3');
    await settle();
    expect(two.running.has('s3')).toBe(false);
    one.end('s1', true);
    await settle();
    expect(two.running.has('s3')).toBe(true);
    expect([one.resident, two.resident]).toEqual([
      [2, 1],
      [2, 1],
    ]);
  });

  it('leave the place of one that ended to those that wait in the same replica', async () => {
    const { one, two, settle } = await setUp({ maxSessions: 1 });
    one.send('s1');
    await settle();
    one.send('s2');
    two.send('s3');
    await settle();
    one.end('s1', true);
    await settle();
    expect([one.running.has('s2'), two.running.has('s3')]).toEqual([true, false]);
  });

  it('stay resident everywhere when they end and begin anew at once', async () => {
    const { one, two, settle } = await setUp({ maxSessions: 1 });
    one.send('s1', 'first');
    await settle();
    one.end('first', true);
    one.send('s1', 'second');
    await settle();
    expect([one.running.has('second'), two.resident]).toEqual([true, [1, 1]]);
  });

  it('stay resident while a turn runs in another replica than the one that ended them', async () => {
    const { one, two, settle } = await setUp({ maxSessions: 5 });
    one.send('s1');
    two.send('s1');
    await settle();
    one.end('s1', true);
    await settle();
    expect([one.resident, two.resident]).toEqual([
      [1, 1],
      [1, 0],
    ]);
    two.end('s1');
    await settle();
    expect([one.resident, two.resident]).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  it('pass as resident in the other replica, go to their endpoint there, and are its own from then on', async () => {
    const { clock, one, two, settle } = await setUp({ maxSessions: 1, footprint: 1_000 });
    for (const [name, there] of [
      ['one', 'b'],
      ['two', 'a'],
    ] as const) {
      one.pool.markOverloaded(there === 'b' ? 'a' : 'b', 1_000);
      one.send('s1', name, 300);
      await settle();
      expect([one.where(name), two.tokensAt(there)]).toEqual([there, 300]);
      two.send('s1', `${name} again`, 10);
      await settle();
      expect(two.where(`${name} again`)).toBe(there);
      one.end(name);
      two.end(`${name} again`);
      clock.advance(1_000);
    }
    expect([one.resident, two.resident]).toEqual([
      [1, 0],
      [1, 0],
    ]);
  });

  it('count at their endpoint by their tokens: when they begin, move and grow, a shared prefix once', async () => {
    const { one, two, settle } = await setUp({ footprint: 1_000, sharedPrefix: () => ({ id: 'agent', tokens: 100 }) });
    one.pool.markOverloaded('a', 1_000_000);
    one.send('s1', 's1', 300);
    one.send('s2', 's2', 200);
    await settle();
    expect([two.tokensAt('a'), two.tokensAt('b')]).toEqual([0, 400]);
    one.running.get('s1')?.report({ promptTokens: 310, completionTokens: 0 });
    await settle();
    expect(two.tokensAt('b')).toBe(400);
    one.running.get('s1')?.report({ promptTokens: 700, completionTokens: 0 });
    await settle();
    expect(two.tokensAt('b')).toBe(800);
    two.pool.markOverloaded('a', 1_000_000);
    two.send('s3', 's3', 350);
    await settle();
    expect(two.running.has('s3')).toBe(false);
    one.end('s1', true);
    await settle();
    expect([two.where('s3'), two.tokensAt('b'), one.tokensAt('b')]).toEqual(['b', 450, 450]);
  });

  it('stay while they are at work, and run out elsewhere when they do here', async () => {
    const { clock, channel, one, two, settle } = await setUp({ maxSessions: 5 });
    channel.isInstant = true;
    one.send('s1');
    await settle();
    for (let minute = 0; minute < 30; minute++) {
      clock.advance(60_000);
      await settle();
      expect(two.resident).toEqual([1, 1]);
    }
    one.end('s1');
    clock.advance(599_000);
    await settle();
    expect([one.resident, two.resident]).toEqual([
      [1, 0],
      [1, 1],
    ]);
    clock.advance(1_100);
    expect([one.resident, two.resident]).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  it('let a request go at the instant at which the time of one from elsewhere is over', async () => {
    const { clock, channel, one, settle } = await setUp({ maxSessions: 1 });
    const lost = { name: 'x', endpoint: 'a', tokens: 1, forMs: 5_000 };
    channel.inject(channelName, JSON.stringify({ kind: 'held', from: 'dead', sessions: [lost] }));
    one.send('s1');
    await settle();
    clock.advance(4_999);
    await settle();
    expect(one.running.has('s1')).toBe(false);
    clock.advance(1);
    await settle();
    expect(one.running.has('s1')).toBe(true);
  });

  it('end with a first turn of which nothing was sent, except where they had turns before', async () => {
    const { one, two, settle } = await setUp({ maxSessions: 5 });
    one.send('s1');
    await settle();
    one.running.get('s1')?.unsent();
    one.end('s1');
    await settle();
    expect(two.resident).toEqual([0, 0]);
    two.send('s2');
    await settle();
    two.end('s2');
    one.send('s2');
    await settle();
    one.running.get('s2')?.unsent();
    one.end('s2');
    await settle();
    expect([one.resident[0], two.resident[0]]).toEqual([1, 1]);
  });

  it('are told to a replica that starts, and again when a message was lost', async () => {
    const { clock, channel, one, two, settle, make } = await setUp({ maxSessions: 500 });
    channel.loses = () => true;
    for (let i = 0; i < 250; i++) one.send(`s${i}`);
    await settle();
    channel.loses = () => false;
    expect(two.resident).toEqual([0, 0]);
    clock.advance(150_000);
    await settle();
    expect(two.resident).toEqual([250, 250]);
    const three = make();
    await settle();
    clock.advance(100);
    await settle();
    expect(three.resident).toEqual([250, 250]);
  });

  it('are not sent on, and are told seldom', async () => {
    const { channel, one, two, settle } = await setUp({ maxSessions: 5 });
    one.pool.markOverloaded('a', 1_000_000);
    const [before, sentByTwo] = [channel.log.length, two.shared.sent];
    for (let turn = 0; turn < 10; turn++) {
      one.send('s1');
      await settle();
      one.end('s1');
      await settle();
    }
    expect([channel.log.length - before, two.shared.sent]).toEqual([1, sentByTwo]);
    one.send('s1', 's1', 1_000);
    await settle();
    expect(channel.log.length - before).toBe(2);
  });

  it('count no more than `maxElsewhere`, whatever others say, and no longer than the inactivity here', async () => {
    const { clock, channel, two } = await setUp({ maxSessions: 5 }, { maxElsewhere: 3 });
    for (let i = 0; i < 50; i++) {
      const sessions = [{ name: `x${i}`, endpoint: 'a', tokens: 1, forMs: 1e12 }];
      channel.inject(channelName, JSON.stringify({ kind: 'held', from: 'liar', sessions }));
    }
    expect(two.resident).toEqual([3, 3]);
    expect(two.shared.refused).toBe(47);
    clock.advance(600_000);
    expect([two.resident, two.tokensAt('a')]).toEqual([[0, 0], 0]);
  });

  it('survive messages that are none', async () => {
    const { channel, one } = await setUp({ maxSessions: 5 });
    const { received } = one.shared;
    const session = { name: 'x', endpoint: 'a', tokens: 1, forMs: 1 };
    const odd = [
      '',
      'null',
      '{}',
      '[]',
      '{"kind":"held","from":"x"}',
      '{"kind":"ended","from":"x"}',
      '{"kind":"new","from":7}',
      '{"kind":"more","from":"x"}',
    ];
    for (const text of odd) channel.inject(channelName, text);
    expect(one.shared.received).toBe(received);
    const wrong = [
      null,
      7,
      { ...session, name: '' },
      { ...session, name: 'x'.repeat(300) },
      { ...session, endpoint: 1 },
    ];
    const wrongNumbers = [
      { ...session, tokens: -1 },
      { ...session, tokens: 1e300 },
      { ...session, forMs: 0 },
      { ...session, forMs: 'long' },
    ];
    channel.inject(channelName, JSON.stringify({ kind: 'held', from: 'x', sessions: [...wrong, ...wrongNumbers] }));
    channel.inject(channelName, JSON.stringify({ kind: 'ended', from: 'x', name: 'nobody' }));
    expect(one.resident).toEqual([0, 0]);
    channel.inject(
      channelName,
      JSON.stringify({ kind: 'held', from: 'x', sessions: [{ ...session, prefix: { id: 1 } }] }),
    );
    expect(one.resident).toEqual([1, 1]);
  });

  it('keep their names to themselves with `hashKeys`, and hash names that are long', async () => {
    for (const [options, name] of [
      [{ hashKeys: true }, 'secret'],
      [{}, 'long'.repeat(100)],
    ] as const) {
      const { channel, one, two, settle } = await setUp(
        { maxSessions: 1, sharedPrefix: () => ({ id: name, tokens: 1 }) },
        options,
      );
      one.send(name);
      await settle();
      two.send(name);
      two.send('other');
      await settle();
      expect([...two.running.keys()]).toEqual([name]);
      expect(channel.log.join()).not.toContain(name);
    }
  });

  it('cost nothing but themselves when the publisher fails, throws or never answers', async () => {
    for (const publish of [
      () => Promise.reject(new Error('down')),
      () => {
        throw new Error('down');
      },
      () => new Promise(() => {}),
    ]) {
      const clock = new ManualClock();
      const { subscriber } = new MessageChannel().connect();
      const replica = new SessionReplica(clock, { publisher: { publish }, subscriber }, { maxSessions: 1_000 });
      for (let i = 0; i < 400; i++) replica.send(`s${i}`);
      await turns();
      expect(replica.running.size).toBe(400);
      expect(replica.shared.sent + replica.shared.skipped).toBe(401);
      await replica.shared.close();
    }
  });

  it('hold no more than 256 messages that nobody answered', async () => {
    const { subscriber } = new MessageChannel().connect();
    const publisher = { publish: () => new Promise(() => {}) };
    const replica = new SessionReplica(new ManualClock(), { publisher, subscriber }, { maxSessions: 1_000 });
    for (let i = 0; i < 400; i++) replica.send(`s${i}`);
    await turns();
    expect([replica.shared.sent, replica.shared.skipped]).toEqual([256, 145]);
  });

  it('are listened for again when the subscription failed', async () => {
    const clock = new ManualClock();
    const channel = new MessageChannel();
    const { publisher, subscriber } = channel.connect();
    let failures = 3;
    const flaky = {
      unsubscribe: (name: string) => subscriber.unsubscribe(name),
      subscribe: (name: string, listener: (message: string) => void) =>
        failures-- > 0 ? Promise.reject(new Error('down')) : subscriber.subscribe(name, listener),
    };
    const replica = new SessionReplica(clock, { publisher, subscriber: flaky }, { maxSessions: 5 });
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(channel.listening).toBe(0);
      await turns();
      clock.advance(1_000);
    }
    await turns();
    expect(channel.listening).toBe(1);
    await replica.shared.close();
    expect([channel.listening, failures]).toEqual([0, -1]);
  });

  it('are those of one replica again after `close`, which leaves no timer and says no more', async () => {
    const { clock, channel, one, two, settle } = await setUp({ maxSessions: 2 });
    one.send('s1');
    two.send('s2');
    await settle();
    await two.shared.close();
    await two.shared.close();
    expect([two.resident, channel.listening]).toEqual([[1, 0], 1]);
    const { length } = channel.log;
    two.send('s3');
    await settle();
    expect([two.running.has('s3'), channel.log.length]).toEqual([true, length]);
    await one.shared.close();
    for (const { flow } of [one, two]) {
      for (const lease of [...one.running.values(), ...two.running.values()]) lease.release();
      await flow.close();
    }
    expect(clock.pendingTimers).toBe(0);
  });

  it('asks for a limit of sessions that is not shared yet, and for a name', () => {
    const connection = messageStore(new MessageChannel().connect());
    const limit = sessionLimit({ maxSessions: 1 });
    expect(() => sharedSessions(connection, {} as never, { name: 'chat' })).toThrow(FlowConfigError);
    expect(() => sharedSessions(connection, limit, { name: 'a b' })).toThrow(/name/);
    expect(() => sharedSessions(connection, limit, { name: 'chat', maxElsewhere: 0 })).toThrow(/maxElsewhere/);
    const shared = sharedSessions(connection, limit, { name: 'chat' });
    expect(() => sharedSessions(connection, limit, { name: 'chat' })).toThrow(/shared once/);
    return shared.close();
  });
});
