/** The store's clock is set, as machines do when they hear the time again. */
import { expect, it, onTestFinished } from 'vitest';
import { type Store, sharedConcurrency } from '../../../src/redis/index.js';
import { jumpClock, withShiftedClock } from '../support/shifted-clock.js';
import { describeWithClient, until } from '../support/with-store.js';

describeWithClient('a store whose clock is set', { timeout: 60_000 }, (redis) => {
  it.each([-3_600, -2, 3_600])('by %d s goes on to share', async (seconds) => {
    const store: Store = {
      run: (script, keys, args) => redis().eval(withShiftedClock(script.text), keys.length, ...keys, ...args),
      onError: () => () => {},
    };
    const start = (waiting: number) => {
      const shared = sharedConcurrency(store, {
        pool: `clock ${seconds}`.replace(' ', '-'),
        maxConcurrency: 16,
        refreshInterval: '50ms',
        leaseDuration: '1s',
        drainDuration: '1s',
        callTimeout: '500ms',
      });
      shared.attach({ stats: () => ({ waiting }) });
      onTestFinished(() => shared.close());
      return shared;
    };
    const first = start(16);
    await until(() => first.limit === 16);
    await jumpClock(redis(), seconds);
    const second = start(16);
    const sum: number[] = [];
    await until(
      () => {
        sum.push(first.limit + second.limit);
        return first.limit === 8 && second.limit === 8;
      },
      () => [first.status, second.status],
      5_000,
    );
    // A clock that is set ahead ends all leases; one that is set back is not seen.
    if (seconds < 0) expect(Math.max(...sum)).toBeLessThanOrEqual(16);
    await second.close();
    // Who falls silent is missed in time.
    await until(
      () => first.limit === 16,
      () => first.status,
      5_000,
    );
  });
});
