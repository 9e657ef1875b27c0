/** A lease that ends is told, however early or late the timer is. */
import { expect, it } from 'vitest';
import { sharedConcurrency } from '../../../src/redis/index.js';
import { EarlyClock } from '../../support/clocks.js';

it('a lease that ends is told once, although timers are early', async () => {
  const clock = new EarlyClock();
  let isAway = false;
  // keys, then name, incarnation, named, four spans, operation, and the numbers of the lease, which begin with the
  // sequence.
  const evalsha = (_script: string, keys: number, ...rest: string[]): Promise<unknown> => {
    const [, incarnation, , , , , , , sequence] = rest.slice(keys);
    const answer = [incarnation, sequence, 8, 4, 1, 0, 1, 8, 8, 0, 8, 1, 1, 0, 0];
    return isAway ? Promise.reject(new Error('connection lost')) : Promise.resolve(answer);
  };
  const shared = sharedConcurrency(
    { evalsha, eval: evalsha },
    { pool: 'a', maxConcurrency: 8, clock, random: () => 0.5 },
  );
  const ends: string[] = [];
  shared.on('expired', ({ limit }) => ends.push(`expired, ${limit} left`));
  shared.on('recovered', ({ grant }) => ends.push(`recovered, ${grant}`));
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50);
      for (let turn = 0; turn < 8; turn++) await undefined;
    }
  };
  await pass(1_000);
  expect(shared.limit).toBe(8);
  isAway = true;
  await pass(12_000);
  expect(ends).toEqual(['expired, 4 left']);
  isAway = false;
  await pass(12_000);
  expect(ends).toEqual(['expired, 4 left', 'recovered, 8']);
  await shared.close();
});
