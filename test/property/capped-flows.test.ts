/**
 * Random histories of flows, some of which are at their caps: whoever is below its cap gets its turns as if the others
 * were not there, a cap is never exceeded, and nothing waits that could go.
 */
import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  deficitRoundRobin,
  type FairnessPolicy,
  FlowController,
  type FlowSettings,
  type Lease,
  leastService,
  roundRobin,
  startTimeFairQueueing,
  virtualTokenCounter,
} from '../../src/index.js';
import { audit, ManualClock } from '../../src/testing/index.js';
import { Random } from './random.js';

const free = ['a', 'b', 'c', 'd'] as const;
const capped = ['k', 'l', 'm'] as const;

interface Play {
  readonly order: string[];
  readonly violations: string[];
}

/** All flows keep requests waiting, and leases end at random. */
function play(
  seed: number,
  fairness: FairnessPolicy,
  flows: Record<string, FlowSettings>,
  who: readonly string[],
  seats: number,
): Play {
  const random = new Random(seed);
  const flow = new FlowController({
    clock: new ManualClock(),
    saturationDetector: concurrencyDetector({ maxConcurrency: seats }),
    bands: [{ priority: 0, fairness }],
    flows,
  });
  const order: string[] = [];
  const running: Lease[] = [];
  const violations: string[] = [];
  const load = new Map<string, number>();
  flow.on('dispatched', ({ lease }) => {
    order.push(lease.fairnessId);
    running.push(lease);
    load.set(lease.fairnessId, (load.get(lease.fairnessId) ?? 0) + 1);
    const cap = flows[lease.fairnessId]?.maxInFlight;
    if (typeof cap === 'number' && (load.get(lease.fairnessId) ?? 0) > cap)
      violations.push(`${lease.fairnessId} is above its cap`);
  });
  for (let i = 0; i < 120; i++)
    for (const fairnessId of who) void flow.enqueue({ byteSize: 1 }, { fairnessId, priority: 0 });
  for (let i = 0; i < 150; i++) {
    const index = random.int(running.length);
    const [lease] = running.splice(index, 1);
    if (lease === undefined) break;
    load.set(lease.fairnessId, (load.get(lease.fairnessId) ?? 0) - 1);
    lease.release();
    violations.push(...audit(flow).violations);
    const { waiting, inFlight } = flow.stats();
    const atCap = flow.figures().bands[0]?.waitingAtCap ?? 0;
    if (waiting > atCap && inFlight < seats)
      violations.push(`${waiting - atCap} wait beside ${seats - inFlight} free seats`);
  }
  return { order, violations };
}

function only(order: readonly string[], who: readonly string[]): string[] {
  return order.filter((each) => who.includes(each));
}

/** How far two counts of turns for their weights come apart over any stretch of the order. */
function widestGap(
  order: readonly string[],
  one: string,
  weightOfOne: number,
  other: string,
  weightOfOther: number,
): number {
  let [difference, least, most, widest] = [0, 0, 0, 0];
  for (const who of order) {
    if (who === one) difference += 1 / weightOfOne;
    else if (who === other) difference -= 1 / weightOfOther;
    least = Math.min(least, difference);
    most = Math.max(most, difference);
    widest = Math.max(widest, difference - least, most - difference);
  }
  return widest;
}

const policies: readonly [string, () => FairnessPolicy][] = [
  ['round robin', roundRobin],
  ['virtual token counters', virtualTokenCounter],
  ['start-time fair queueing', startTimeFairQueueing],
  ['least service', leastService],
  ['deficit round robin', deficitRoundRobin],
];

describe.each(policies)('under %s', (_, fairness) => {
  // Where rounds begin depends on how many went before there was a queue: deficit round robin has the same turns,
  // rotated.
  it.runIf(fairness !== deficitRoundRobin)(
    'flows below their caps have the very turns that they have without the capped ones',
    () => {
      for (let seed = 1; seed <= 12; seed++) {
        const random = new Random(seed);
        const seats = 6 + random.int(10);
        const flows = Object.fromEntries(capped.map((id) => [id, { maxInFlight: 1 + random.int(2) }]));
        const { order, violations } = play(seed, fairness(), flows, [...free, ...capped], seats);
        expect(violations, `seed ${seed}`).toEqual([]);
        const turns = only(order, free);
        expect(turns.length, `seed ${seed}`).toBeGreaterThan(20);
        const alone = only(play(seed, fairness(), {}, free, seats).order, free);
        const length = Math.min(turns.length, alone.length);
        expect(turns.slice(0, length), `seed ${seed}`).toEqual(alone.slice(0, length));
      }
    },
  );

  it('flows below their caps have their shares by weight, over every stretch', () => {
    for (let seed = 1; seed <= 12; seed++) {
      const random = new Random(seed);
      const weights = Object.fromEntries(free.map((id) => [id, 1 + random.int(3)]));
      const flows: Record<string, FlowSettings> = Object.fromEntries(free.map((id) => [id, { weight: weights[id] }]));
      for (const id of capped) flows[id] = { weight: 1 + random.int(3), maxInFlight: 1 + random.int(2) };
      const seats = 8 + random.int(8);
      const { order, violations } = play(seed, fairness(), flows, [...free, ...capped], seats);
      expect(violations, `seed ${seed}`).toEqual([]);
      // The first went at once, because there was room, and least service makes up for it.
      const queued = order.slice(3 * seats);
      for (const one of free) {
        for (const other of free) {
          if (one === other) continue;
          const gap = widestGap(queued, one, weights[one] ?? 1, other, weights[other] ?? 1);
          expect(gap, `seed ${seed}: ${one} against ${other}`).toBeLessThanOrEqual(2 + 1e-9);
        }
      }
    }
  });
});
