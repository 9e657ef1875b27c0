/** The script of the budgets against a token bucket, operation by operation. */
import { expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { budgetScript } from '../../../src/redis/budgets/budget-script.js';
import { withVirtualTime } from '../support/virtual-world.js';
import { describeWithClient } from '../support/with-store.js';

const operations = 100_000;
const batch = 1_000;

/** A bucket that holds spans of time, µs, and fills by one each µs. */
class Bucket {
  level: number;
  private atUs: number;
  readonly size: number;

  constructor(size: number, nowUs: number) {
    this.size = size;
    this.level = size;
    this.atUs = nowUs;
  }

  fill(nowUs: number): void {
    this.level = Math.min(this.size, this.level + nowUs - this.atUs);
    this.atUs = nowUs;
  }
}

interface Operation {
  readonly args: readonly string[];
  readonly expected: readonly string[];
}

describeWithClient('the script of the budgets', { timeout: 180_000 }, (redis) => {
  it(`decides ${operations} random operations as two token buckets do`, async () => {
    const random = seededRandom(11);
    const upTo = (most: number): number => Math.floor(random() * (most + 1));
    const startUs = (Date.now() + 86_400_000) * 1_000;
    const sizes = [6_000_000, 60_000_000];
    const buckets = sizes.map((size) => new Bucket(size, startUs));
    let nowUs = startUs;

    function draw(): Operation {
      nowUs += upTo(400_000);
      for (const bucket of buckets) bucket.fill(nowUs);
      const kind = random();
      const mode = kind < 0.75 ? 'take' : kind < 0.95 ? 'settle' : 'peek';
      const costs = [upTo(600_000), upTo(9_000_000)].map(
        (cost) => (mode === 'settle' && random() < 0.6 ? -cost : cost) + 0,
      );
      const isTaken = mode !== 'take' || buckets.every(({ level }, i) => costs[i] === 0 || level >= costs[i]!);
      const waitUs = isTaken ? 0 : Math.max(...buckets.map(({ level }, i) => (costs[i] === 0 ? 0 : costs[i]! - level)));
      if (isTaken && mode !== 'peek')
        for (const [i, bucket] of buckets.entries()) bucket.level = Math.min(bucket.size, bucket.level - costs[i]!);
      const args = [mode, ...costs.flatMap((cost, i) => [String(cost), String(sizes[i])])];
      const clock = [String(Math.floor(nowUs / 1e6)), String(nowUs % 1e6)];
      return {
        args: [...args, ...clock],
        expected: [isTaken ? '1' : '0', String(waitUs), ...buckets.map(({ level }) => String(level))],
      };
    }

    // Keys expire by the real clock, which runs more slowly here than the virtual one.
    const text = withVirtualTime(budgetScript).replace('math.ceil((tat - now) / 1000)', '86400000');
    const digest = (await redis().script('LOAD', text)) as string;
    let mismatches = 0;
    let taken = 0;
    for (let done = 0; done < operations; done += batch) {
      const drawn = Array.from({ length: batch }, draw);
      const pipeline = redis().pipeline();
      for (const { args } of drawn) pipeline.evalsha(digest, 2, 'model:a', 'model:b', ...args);
      const replies = (await pipeline.exec()) ?? [];
      for (const [index, { expected }] of drawn.entries()) {
        const [error, reply] = replies[index] ?? [];
        if (error) throw error;
        if ((reply as string[]).join(' ') !== expected.join(' ')) mismatches++;
        if (expected[0] === '1') taken++;
      }
    }
    expect(mismatches).toBe(0);
    // Neither all nor nothing was taken: the comparison had something to compare.
    expect(taken).toBeGreaterThan(operations * 0.3);
    expect(taken).toBeLessThan(operations * 0.9);
  });
});
