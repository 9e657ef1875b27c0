/** Groups of agents that their planners wait for, in virtual time: who goes first within the family. */
import { setImmediate as settled } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { families, type PlacementHints } from '../../../src/adapters/http/index.js';
import { FlowController, type FlowRequest, fcfs } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';

const turnMs = 1_000;

/** Five planners begin eight workers each, of four turns. When each group had ended, in turns. */
async function joins(isLastFirst: boolean): Promise<number[]> {
  const clock = new ManualClock();
  const agents = families({ clock });
  const ordering = isLastFirst ? agents.lastChildFirst : fcfs();
  const flow = new FlowController<FlowRequest & PlacementHints>({
    maxConcurrency: 8,
    clock,
    defaultRequestTtl: 0,
    bands: [{ priority: 0, ordering }],
  });
  const gate = agents.gate(flow);

  async function turns(count: number, sessionId: string, parentSessionId: string): Promise<void> {
    for (let i = 0; i < count; i++) {
      const outcome = await gate.enqueue({ byteSize: 1, sessionId, parentSessionId }, { fairnessId: 'acme' });
      if (outcome.type !== 'Dispatched') throw new Error(outcome.reason);
      await new Promise<void>((resolve) => clock.setTimeout(() => resolve(), turnMs));
      outcome.lease.release();
    }
  }

  async function planner(name: string): Promise<number> {
    await turns(1, name, 'root');
    await Promise.all(Array.from({ length: 8 }, (_, i) => turns(4, `${name}-${i}`, name)));
    return clock.now() / turnMs;
  }

  let ended: number[] | undefined;
  void Promise.all(['a', 'b', 'c', 'd', 'e'].map(planner)).then((all) => {
    ended = all;
  });
  for (await settled(); ended === undefined; await settled()) clock.advance(turnMs);
  return ended;
}

it('ends groups one after the other, where turns by arrival end all of them late, and the last no later', async () => {
  const [lastFirst, byArrival] = [await joins(true), await joins(false)];
  const mean = (ends: readonly number[]): number => ends.reduce((sum, end) => sum + end, 0) / ends.length;
  expect([mean(lastFirst), mean(byArrival)]).toEqual([14.6, 19]);
  expect(Math.max(...lastFirst)).toBeLessThanOrEqual(Math.max(...byArrival));
});
