/**
 * Random histories of queues that are full most of the time, for every ordering policy beside every other: limits hold
 * after each step, and whoever comes in while a limit is reached either makes room or is rejected.
 */
import { describe, expect, it } from 'vitest';
import {
  defaultRegistry,
  type FairnessPolicy,
  type FlowController,
  type FlowControllerOptions,
  globalStrict,
  type Lease,
  type OrderingPolicy,
  overviewOf,
  prefixOrder,
  roundRobin,
  virtualTokenCounter,
} from '../../src/index.js';
import { audit, type ManualClock } from '../../src/testing/index.js';
import { makeFlow, turns } from '../support/flow.js';
import { Random } from './random.js';

type Overflow = NonNullable<FlowControllerOptions['overflow']>;

const registry = defaultRegistry();
const orderings: readonly (readonly [string, () => OrderingPolicy])[] = [
  ...registry.types('ordering').map((type) => [type, () => registry.resolve('ordering', type)] as const),
  ['prefix scores', () => prefixOrder({ prefixScore: ({ sequence }) => sequence % 5, overtakings: 2 })],
  ['a heap', () => ({ type: 'newest', compare: (a, b) => b.sequence - a.sequence })],
];
const fairnesses: readonly (() => FairnessPolicy)[] = [roundRobin, globalStrict, virtualTokenCounter];
const priorities = [10, 0, -1, -5];
const limits = { maxRequests: 10, maxBytes: 400 };
const bandLimits = { maxRequests: 6, maxBytes: 250 };

interface World {
  readonly flow: FlowController;
  readonly clock: ManualClock;
  readonly random: Random;
  readonly leases: Lease[];
  readonly aborts: AbortController[];
}

function worldOf(seed: number, overflow: Overflow, makeOrdering: () => OrderingPolicy): World {
  const random = new Random(seed);
  const bands = priorities.map((priority) => ({
    priority,
    ordering: (random.chance(0.5) ? makeOrdering : random.pick(orderings)[1])(),
    fairness: random.pick(fairnesses)(),
    ...(random.chance(0.5) && { limits: bandLimits }),
  }));
  const { flow, clock } = makeFlow({
    overflow,
    limits,
    bands,
    holBlocking: random.pick(['band', 'flow', 'none']),
    flows: { heavy: { weight: 3 } },
    defaultRequestTtl: 50,
  });
  return { flow, clock, random, leases: [], aborts: [] };
}

/** A request that comes, counted by how many left for it. */
async function arrive({ flow, random, leases, aborts }: World): Promise<void> {
  const before = flow.stats();
  const abort = new AbortController();
  aborts.push(abort);
  const byteSize = random.pick([0, 5, 20, 120]);
  const request = { byteSize, signal: abort.signal, affinityKey: random.pick(['x', 'y']), sloTtftMs: random.int(90) };
  const priority = random.pick(priorities);
  const asked = flow.enqueue(request, { fairnessId: random.pick(['a', 'b', 'heavy']), priority });
  void asked.then((outcome) => {
    if (outcome.type === 'Dispatched') leases.push(outcome.lease);
  });
  const outcome = await Promise.race([asked, turns(8)]);
  const after = flow.stats();
  const left = after.evicted - before.evicted;
  const isWaiting = outcome === undefined;
  expect(after.waiting).toBe(before.waiting - left + (isWaiting ? 1 : 0));
  if (isWaiting && before.waiting >= limits.maxRequests) expect(left).toBeGreaterThan(0);
}

function expectLimits(flow: FlowController): void {
  const { waiting, waitingBytes } = flow.stats();
  expect(waiting).toBeLessThanOrEqual(limits.maxRequests);
  expect(waitingBytes).toBeLessThanOrEqual(limits.maxBytes);
  for (const band of overviewOf(flow, { flows: 'all' }).bands) {
    expect(band.waiting).toBeLessThanOrEqual(band.limits.maxRequests);
    expect(band.waitingBytes).toBeLessThanOrEqual(band.limits.maxBytes);
  }
  expect(audit(flow).violations).toEqual([]);
}

async function live(world: World, steps: number): Promise<void> {
  const { flow, clock, random, leases, aborts } = world;
  for (let step = 0; step < steps; step++) {
    const choice = random.int(20);
    if (choice === 0) clock.advance(random.int(40));
    else if (choice === 1) aborts.splice(random.int(aborts.length), 1)[0]?.abort();
    else if (choice < 4) leases.splice(random.int(leases.length), 1)[0]?.release();
    else await arrive(world);
    await turns();
    expectLimits(flow);
  }
}

describe.each<Overflow>(['reject', 'displace', 'fair'])("limits hold with overflow '%s'", (overflow) => {
  it.each(orderings)('under %s beside any other ordering', async (_, makeOrdering) => {
    for (let seed = 0; seed < 8; seed++) await live(worldOf(seed, overflow, makeOrdering), 60);
  });
});
