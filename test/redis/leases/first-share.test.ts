/**
 * A replica without any answer begins with its first share, after a lease: a connection that is slow is no store that
 * is away.
 */
import { expect, it } from 'vitest';
import { sharedConcurrency } from '../../../src/redis/index.js';
import { ManualClock } from '../../../src/testing/index.js';

const leaseMs = 5_000;

async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    clock.advance(50);
    for (let turn = 0; turn < 8; turn++) await undefined;
  }
}

it('a replica takes its first share only after a lease without an answer', async () => {
  const clock = new ManualClock();
  const never = (): Promise<unknown> => new Promise(() => {});
  const client = { evalsha: never, eval: never };
  const shared = sharedConcurrency(client, { pool: 'new', maxConcurrency: 8, replicas: 2, clock, random: () => 0.5 });
  let rises = 0;
  shared.subscribe?.(() => rises++);
  await pass(clock, leaseMs - 100);
  expect(shared.status[0]!.store.misses).toBeGreaterThan(2);
  expect([shared.limit, rises]).toEqual([0, 0]);
  await pass(clock, 1_200);
  expect([shared.limit, rises]).toEqual([4, 1]);
});
