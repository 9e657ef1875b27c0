/** The script of the buckets against windows of one process, two buckets in a call, operation by operation. */
import { expect, it } from 'vitest';
import { GcraWindow } from '../../../src/base/gcra-window.js';
import { rounding, type Taking } from '../../../src/base/quota-window.js';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { bucketScript } from '../../../src/redis/buckets/bucket-script.js';
import { withoutExpiry } from '../quotas/quota-world.js';
import { withVirtualTime } from '../support/virtual-world.js';
import { describeWithClient } from '../support/with-store.js';

const operations = 100_000;
const batch = 1_000;
const perMs = 60_000;
const keys = ['model:a', 'model:b'];
const terms = [
  { limit: 600, burst: 120 },
  { limit: 900, burst: 300 },
];

interface Model {
  readonly limit: number;
  readonly burst: number;
  readonly window: GcraWindow;
  taken: number;
  bought: { readonly taking: Taking; readonly end: number }[];
}

interface Expected {
  readonly args: readonly string[];
  /** Of each bucket. */
  readonly ends: readonly number[];
  readonly sold: readonly number[];
  readonly levels: readonly number[];
  /** What the form for the memory of a process answers. */
  readonly inMemory: readonly string[];
}

describeWithClient('the script of the buckets', { timeout: 180_000 }, (redis) => {
  it(`sells, charges and takes back ${operations} times as windows of one process do, from both or from none`, async () => {
    const random = seededRandom(7);
    const upTo = (most: number): number => Math.min(most, Math.floor(random() * (most + 1)));
    const startMs = Date.now() + 86_400_000;
    const epoch = String(startMs * 1_000);
    const models = terms.map(({ limit, burst }): Model => {
      const window = new GcraWindow(limit, perMs, burst);
      window.take(1, startMs);
      return { limit, burst, window, taken: 1, bought: [] };
    });
    let nowMs = startMs;
    const memory = {};
    const granted = new Set<string>();
    const ended = new Set<string>();
    let takings = 0;
    let repeated = 0;

    /** A new taking, or one that comes twice, after its end or before; or an end, also of what was never taken. */
    function drawMark() {
      const isEnd = random() < 0.4;
      const name = String(isEnd || random() < 0.3 ? Math.max(0, takings - upTo(20)) : ++takings);
      return { name, isEnd, isKnown: ended.has(name) || (!isEnd && granted.has(name)) };
    }

    /** What one bucket is asked for, and what it could sell. */
    function drawOne(
      { limit, burst, window, bought, ...model }: Model,
      at: number,
      mark?: ReturnType<typeof drawMark>,
    ) {
      const back: string[] = [];
      for (let returns = upTo(2); returns > 0 && bought.length > 0; returns--) {
        const { taking, end } = bought.splice(upTo(bought.length - 1), 1)[0]!;
        const amount = upTo(taking.amount);
        if (mark?.isKnown !== true) window.settle(taking, taking.amount - amount, nowMs);
        back.push(epoch, String(end), String(amount));
      }
      const charge = random() < 0.1 ? upTo(20) : 0;
      const floor = random() < 0.05 ? upTo(burst) : 0;
      const undo = mark?.isEnd ? upTo(20) : 0;
      if (mark?.isKnown !== true) {
        if (mark !== undefined && granted.has(mark.name)) window.giveBack(undo, nowMs);
        const raised = Math.max(0, floor - window.used(nowMs) - charge);
        window.take(charge + raised, nowMs);
        models[at]!.taken = model.taken + charge + raised;
      }
      const most = mark?.isEnd ? 0 : upTo(30);
      const least = upTo(most);
      const room = mark?.isKnown ? 0 : Math.max(0, burst - window.used(nowMs));
      // Rounding decides nothing.
      const sold = room < least - burst * rounding ? undefined : Math.max(Math.min(most, room), least);
      const args = [limit / (perMs * 1_000), burst, charge, floor, least, most, undo, back.length / 3].map(String);
      return { args: [...args, ...back], sold, least };
    }

    function draw(): Expected {
      nowMs += upTo(800);
      const mark = random() < 0.5 ? drawMark() : undefined;
      const drawn = models.map((model, at) => drawOne(model, at, mark));
      const isSold = drawn.every(({ sold }) => sold !== undefined);
      const sold = drawn.map((each) => (isSold ? each.sold! : 0));
      const isRepeated = mark !== undefined && !mark.isEnd && granted.has(mark.name) && !ended.has(mark.name);
      if (isRepeated) repeated++;
      if (mark !== undefined && !mark.isKnown && isSold) (mark.isEnd ? ended : granted).add(mark.name);
      for (const [at, model] of models.entries()) {
        model.taken += sold[at]!;
        const taking = model.window.take(sold[at]!, nowMs);
        if (sold[at]! > 0) model.bought = [...model.bought.slice(-50), { taking, end: model.taken }];
      }
      const text = mark === undefined ? '' : `${mark.isEnd ? '-' : '+'}${mark.name}`;
      const args = [text, ...drawn.flatMap((each) => each.args)];
      const inMemory = bucketScript.local(memory, keys, args, nowMs * 1_000);
      const clock = [String(Math.floor(nowMs / 1_000)), String((nowMs % 1_000) * 1_000)];
      return {
        args: [...args, ...clock],
        inMemory,
        ends: models.map(({ taken }) => taken),
        sold: isRepeated ? drawn.map(({ least }) => least) : sold,
        levels: models.map(({ window }) => window.used(nowMs)),
      };
    }

    const text = withVirtualTime(withoutExpiry(bucketScript.text));
    const digest = (await redis().script('LOAD', text)) as string;
    // The buckets are there from the beginning, with one unit taken, so that their names are known.
    const first = [
      '',
      ...terms.flatMap(({ limit, burst }) => [limit / (perMs * 1_000), burst, 1, 0, 0, 0, 0, 0].map(String)),
    ];
    bucketScript.local(memory, keys, first, startMs * 1_000);
    for (const key of keys) await redis().hset(key, { e: epoch, t: '1', l: '0', a: String(startMs * 1_000) });
    const mismatches: unknown[] = [];
    let none = 0;
    let some = 0;
    for (let done = 0; done < operations; done += batch) {
      const drawn = Array.from({ length: batch }, draw);
      const pipeline = redis().pipeline();
      for (const { args } of drawn) pipeline.evalsha(digest, 2, ...keys, ...args);
      const replies = (await pipeline.exec()) ?? [];
      for (const [index, { ends, sold, levels, inMemory }] of drawn.entries()) {
        const [error, reply] = replies[index] ?? [];
        if (error) throw error;
        const numbers = (reply as string[]).map(Number);
        const expected = ends.flatMap((end, at) => [Number(epoch), end, sold[at]!, levels[at]!]);
        const isAs = (answer: readonly number[]): boolean =>
          expected.every((number, at) => Math.abs(number - answer[at]!) < 1e-3);
        if (!isAs(numbers) || !isAs(inMemory.map(Number)))
          mismatches.push({ at: done + index, expected, reply, inMemory });
        if (sold.some((each) => each > 0)) some++;
        else none++;
      }
    }
    expect(mismatches.slice(0, 3)).toEqual([]);
    // Some were sold and some were not: the comparison had something to compare.
    expect(some).toBeGreaterThan(operations * 0.2);
    expect(none).toBeGreaterThan(operations * 0.2);
    expect(repeated).toBeGreaterThan(operations * 0.01);
  });
});
