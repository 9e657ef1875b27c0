/** Flows that are held back go in the order that tier 2 would give them if nobody were held back. */
import { describe, expect, it } from 'vitest';
import {
  deficitRoundRobin,
  type FairnessPolicy,
  type FlowControllerOptions,
  globalStrict,
  hierarchical,
  leastService,
  programAware,
  quotaDetector,
  roundRobin,
  type SaturationDetector,
  sessionLimit,
  shuffleSharded,
  startTimeFairQueueing,
  virtualTokenCounter,
} from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { Random } from '../../property/random.js';
import { key, leaseOf, makeFlow, turns } from '../../support/flow.js';

/** Lets as many requests go as it is told, and judges each by itself. */
class Valve implements SaturationDetector {
  readonly type = 'valve';
  private room = 0;
  private open: () => void = () => {};

  saturation(): number {
    return 0;
  }

  withRoomFor<E>(endpoints: readonly E[]): readonly E[] {
    return this.room > 0 ? endpoints : [];
  }

  dispatched(): void {
    this.room--;
  }

  subscribe(listener: () => void): () => void {
    this.open = listener;
    return () => {};
  }

  let(count: number): void {
    this.room = count;
    this.open();
  }
}

const workOf = ({ tokens }: { tokens: number }) => ({ promptTokens: tokens, completionTokens: 0 });
const policies: readonly (readonly [string, () => FairnessPolicy])[] = [
  ['roundRobin', roundRobin],
  ['globalStrict', globalStrict],
  ['virtualTokenCounter', () => virtualTokenCounter({ workOf })],
  ['virtualTokenCounter as the paper lifts', () => virtualTokenCounter({ workOf, lift: 'vtc' })],
  ['startTimeFairQueueing', () => startTimeFairQueueing({ workOf })],
  ['leastService', () => leastService({ workOf })],
  ['hierarchical', () => hierarchical({ workOf, weights: { a: 50, b: 50, c: 50, y: 2 } })],
  ['programAware', () => programAware()],
  ['programAware by turns', () => programAware({ strategy: 'turn-priority' })],
  ['shuffleSharded', () => shuffleSharded({ workOf, queues: 8, handSize: 2 })],
  ['deficitRoundRobin', () => deficitRoundRobin({ workOf, quantum: 40 })],
];
const names = ['x/a/1', 'x/b/1', 'y/a/1', 'y/a/2', 'z'];
const flows = { 'x/a/1': { weight: 3 }, z: { weight: 2 } };

/** What went, in order. Flows come and go, all requests wait for the same. */
async function order(fairness: FairnessPolicy, holBlocking: 'band' | 'flow' | 'none', seed: number): Promise<string[]> {
  const random = new Random(seed);
  const valve = new Valve();
  const { flow, clock } = makeFlow({
    saturationDetector: valve,
    holBlocking,
    flows,
    bands: [{ priority: 0, fairness }],
  });
  const went: string[] = [];
  const running: (() => void)[] = [];
  const aborts: AbortController[] = [];
  flow.on('dispatched', ({ item, lease }) => {
    went.push(`${item.fairnessId} ${item.sequence}`);
    const completionTokens = random.int(3) * 10;
    running.push(() => {
      lease.report({ promptTokens: item.tokens, completionTokens });
      lease.release();
    });
  });
  for (let step = 0; step < 300; step++) {
    const dice = random.int(20);
    const name = random.pick(names);
    const tokens = 1 + random.int(30);
    const which = random.next();
    if (dice < 9) {
      const abort = new AbortController();
      aborts.push(abort);
      void flow.enqueue({ byteSize: 1, tokens, signal: abort.signal }, key(name));
    } else if (dice < 16) valve.let(1);
    else if (dice < 19) running.splice(Math.floor(which * running.length), 1)[0]?.();
    else if (which < 0.3) aborts.splice(random.int(aborts.length), 1)[0]?.abort();
    else clock.advance(10);
    await turns(2);
    expect(audit(flow).violations).toEqual([]);
  }
  expect(flow.stats().pluginErrors).toBe(0);
  return went;
}

/** How many requests more or fewer of one flow went than in the other order, at most. */
function apart(order: readonly string[], other: readonly string[]): number {
  const ahead = Object.fromEntries(names.map((name) => [name, 0]));
  const count = (request: string | undefined, change: number): void => {
    const name = request?.split(' ')[0] as string;
    ahead[name] = (ahead[name] as number) + change;
  };
  let most = 0;
  for (const [i, request] of order.entries()) {
    count(request, 1);
    count(other[i], -1);
    most = Math.max(most, ...Object.values(ahead));
  }
  return most;
}

describe.each(policies)('under %s, flows that are held back', (name, make) => {
  // In rounds, and between queues, it matters when a flow comes; with levels, which of equals came first below.
  const most = /roundRobin|deficit|Sharded|hierarchical|lifts/.test(name) ? 8 : 0;

  it.each(['flow', 'none'] as const)("go as they would with holBlocking 'band', with '%s'", async (holBlocking) => {
    for (let seed = 0; seed < 6; seed++) {
      const [freely, held] = [await order(make(), 'band', seed), await order(make(), holBlocking, seed)];
      expect(held).toHaveLength(freely.length);
      expect(apart(held, freely)).toBeLessThanOrEqual(most);
    }
  });
});

describe.each(['flow', 'none'] as const)(
  "weights with holBlocking '%s' under a quota at twice its limit",
  (holBlocking) => {
    const weighted = policies.filter(([name]) => !/Strict|program/.test(name));

    it.each(weighted)('count under %s', async (_, make) => {
      const sent = ['a', 'b', 'c', 'd'];
      const served: Record<string, number> = {};
      const options: Partial<FlowControllerOptions> = {
        constraints: [quotaDetector({ groups: [{ quotas: [{ unit: 'requests', limit: 2, per: '100ms' }] }] })],
        flows: { a: { weight: 50 }, b: { weight: 50 }, c: { weight: 50 } },
        bands: [{ priority: 0, fairness: make() }],
        holBlocking,
      };
      const { flow, clock } = makeFlow(options);
      const send = (name: string): void =>
        void flow.enqueue({ byteSize: 1, tokens: 10 }, key(name)).then((outcome) => {
          served[name] = (served[name] ?? 0) + 1;
          leaseOf(outcome).release();
          send(name);
        });
      for (const name of sent) for (let i = 0; i < 3; i++) send(name);
      for (let i = 0; i < 700; i++) {
        clock.advance(50);
        await turns(6);
      }
      for (const name of ['a', 'b', 'c']) expect(served[name]).toBeGreaterThan(150);
      expect(served.d).toBeLessThan(30);
      expect(served.d).toBeGreaterThan(0);
    });
  },
);

it('new sessions that wait for a place go by the weights of their tenants', async () => {
  const { flow, clock } = makeFlow({
    constraints: [
      sessionLimit({ maxSessions: 1, by: ({ request }) => (request as { id: string }).id, inactivity: 10 }),
    ],
    flows: { gold: { weight: 3 } },
    bands: [{ priority: 0, fairness: virtualTokenCounter({ workOf }) }],
  });
  const order: string[] = [];
  for (let i = 0; i < 40; i++) {
    for (const name of ['plain', 'gold']) {
      const request = { byteSize: 1, tokens: 10, id: `${name}-${i}` };
      void flow.enqueue(request, key(name)).then((outcome) => {
        order.push(name);
        leaseOf(outcome).release();
      });
    }
  }
  for (let i = 0; i < 40; i++) {
    clock.advance(20);
    await turns(6);
  }
  expect(order.slice(1, 33).filter((name) => name === 'gold')).toHaveLength(24);
});
