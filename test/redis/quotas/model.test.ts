/** The script of the quotas against the window of one process, operation by operation. */
import { expect, it } from 'vitest';
import { GcraWindow } from '../../../src/base/gcra-window.js';
import { rounding, type Taking } from '../../../src/base/quota-window.js';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { quotaScript } from '../../../src/redis/buckets/bucket-script.js';
import { withVirtualTime } from '../support/virtual-world.js';
import { describeWithClient } from '../support/with-store.js';
import { withoutExpiry } from './quota-world.js';

const operations = 100_000;
const batch = 1_000;
const limit = 600;
const perMs = 60_000;
const burst = 120;

interface Expected {
  readonly args: readonly string[];
  readonly end: number;
  readonly sold: number;
  readonly level: number;
}

interface Bought {
  readonly taking: Taking;
  readonly end: number;
}

describeWithClient('the script of the quotas', { timeout: 180_000 }, (redis) => {
  it(`sells, charges and takes back ${operations} times as a window of one process does`, async () => {
    const random = seededRandom(7);
    const upTo = (most: number): number => Math.min(most, Math.floor(random() * (most + 1)));
    const startMs = Date.now() + 86_400_000;
    const epoch = String(startMs * 1_000);
    const window = new GcraWindow(limit, perMs, burst);
    let nowMs = startMs;
    let taken = 0;
    let bought: Bought[] = [];

    function draw(): Expected {
      nowMs += upTo(800);
      const back: string[] = [];
      for (let returns = upTo(2); returns > 0 && bought.length > 0; returns--) {
        const { taking, end } = bought.splice(upTo(bought.length - 1), 1)[0]!;
        const amount = upTo(taking.amount);
        window.settle(taking, taking.amount - amount, nowMs);
        back.push(epoch, String(end), String(amount));
      }
      const charge = random() < 0.1 ? upTo(20) : 0;
      window.take(charge, nowMs);
      const floor = random() < 0.05 ? upTo(burst) : 0;
      const raised = Math.max(0, floor - window.used(nowMs));
      window.take(raised, nowMs);
      taken += charge + raised;
      const most = upTo(30);
      const least = upTo(most);
      const room = Math.max(0, burst - window.used(nowMs));
      // Rounding decides nothing.
      const sold = room < least - burst * rounding ? 0 : Math.max(Math.min(most, room), least);
      taken += sold;
      const taking = window.take(sold, nowMs);
      if (sold > 0) bought = [...bought.slice(-50), { taking, end: taken }];
      const clock = [String(Math.floor(nowMs / 1_000)), String((nowMs % 1_000) * 1_000)];
      const args = [limit / (perMs * 1_000), burst, charge, floor, least, most].map(String);
      return { args: [...args, ...back, ...clock], end: taken, sold, level: window.used(nowMs) };
    }

    const text = withVirtualTime(withoutExpiry(quotaScript));
    const digest = (await redis().script('LOAD', text)) as string;
    // The bucket is there from the beginning, so that its name is known.
    await redis().hset('model', { e: epoch, t: '0', l: '0', a: String(startMs * 1_000) });
    const mismatches: unknown[] = [];
    let none = 0;
    let some = 0;
    for (let done = 0; done < operations; done += batch) {
      const drawn = Array.from({ length: batch }, draw);
      const pipeline = redis().pipeline();
      for (const { args } of drawn) pipeline.evalsha(digest, 1, 'model', ...args);
      const replies = (await pipeline.exec()) ?? [];
      for (const [index, { end, sold, level }] of drawn.entries()) {
        const [error, reply] = replies[index] ?? [];
        if (error) throw error;
        const [, hisEnd, hisSold, hisLevel] = (reply as string[]).map(Number) as [number, number, number, number];
        const isSame = [hisEnd - end, hisSold - sold, hisLevel - level].every(
          (difference) => Math.abs(difference) < 1e-3,
        );
        if (!isSame) mismatches.push({ at: done + index, end, sold, level, reply });
        if (sold > 0) some++;
        else none++;
      }
    }
    expect(mismatches.slice(0, 3)).toEqual([]);
    // Some were sold and some were not: the comparison had something to compare.
    expect(some).toBeGreaterThan(operations * 0.2);
    expect(none).toBeGreaterThan(operations * 0.2);
  });
});
