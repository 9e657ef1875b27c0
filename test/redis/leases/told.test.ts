/** What a call says is what is in flight, although requests may go while the replica is asked. */
import { expect, it } from 'vitest';
import { CapacityLease } from '../../../src/redis/leases/capacity-lease.js';
import { LeaseClient } from '../../../src/redis/leases/lease-client.js';
import { ManualClock } from '../../../src/testing/index.js';

it('a request that goes while another endpoint is asked for its demand is told, or does not go', async () => {
  const clock = new ManualClock();
  let running = 0;
  /** What was in flight beyond what each call said. */
  const untold: number[] = [];
  const run = async (_script: unknown, keys: readonly string[], args: readonly string[]): Promise<string[]> => {
    untold.push(running - Math.max(...args.slice(12, 14).map(Number)));
    // A grant of 3 at each endpoint, while others lack 2.
    return keys.flatMap(() => [args[1]!, args[8]!, ...[3, 1, 1, 0, 2, 8, 8, 6, 3, 2, 1, 0, 2].map(String)]);
  };
  const times = { refreshInterval: 1_000, leaseDuration: 5_000, drainDuration: 0, forgetAfter: 0, callTimeout: 50 };
  const who = { prefix: 'headgate', pool: 'here', weight: 1, fallback: 'safe' } as const;
  const options = { ...times, ...who, clock, random: () => 0.5 };
  const client = new LeaseClient({ run, onError: () => () => {} } as never, options, 'told');
  const a = new CapacityLease('a', () => ({ inFlight: running, wants: running }), 8, options);
  const b = new CapacityLease(
    'b',
    () => {
      if (running < a.cap(clock.now())) running++;
      return { inFlight: 0, wants: 0 };
    },
    8,
    options,
  );
  client.add(a);
  client.add(b);
  for (let step = 0; step < 40; step++) {
    clock.advance(100);
    for (let turn = 0; turn < 12; turn++) await undefined;
  }
  expect(untold.length).toBeGreaterThan(3);
  expect(Math.max(...untold)).toBeLessThanOrEqual(0);
  await client.close();
});
