import { expect, it } from 'vitest';
import { ManualClock } from '../../../src/testing/index.js';
import { SessionReplica } from '../../support/session-replica.js';
import { pairs } from '../support/pairs.js';
import { describeWithStores, until } from '../support/with-store.js';

describeWithStores('shared sessions', (store) => {
  it.each(Object.keys(pairs))('are counted in the other replica through %s until they end', async (client) => {
    // The clock stands still: nothing but messages changes the tables, however long they take.
    const clock = new ManualClock();
    const make = async (): Promise<SessionReplica> => {
      const pair = await pairs[client]!(store().url);
      const replica = new SessionReplica(clock, pair, { maxSessions: 1 }, { name: client });
      // It asks the others for their sessions once its subscription is in force.
      await until(() => replica.shared.sent === 1);
      return replica;
    };
    const [one, two, three] = [await make(), await make(), await make()];
    one.send('s1');
    await until(
      () => two.resident[1] === 1 && three.resident[1] === 1,
      () => [two.resident, three.resident],
    );
    two.send('s2');
    two.send('s1');
    await until(() => two.running.has('s1'));
    expect(two.running.has('s2')).toBe(false);
    await until(() => three.shared.received >= 2);
    one.end('s1');
    two.end('s1', true);
    await until(
      () => two.running.has('s2') && one.resident.every((count) => count === 1),
      () => [one.resident, two.resident],
    );
    await Promise.all([one, two, three].map(({ shared }) => shared.close()));
    const { received } = one.shared;
    two.end('s2', true);
    expect([one.resident, one.shared.received]).toEqual([[0, 0], received]);
  });
});
