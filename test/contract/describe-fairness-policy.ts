/** What every fairness policy must keep, looked at from outside: through a controller that uses it. */
import { describe, expect, it } from 'vitest';
import { type FairnessPolicy, globalStrict, type Lease } from '../../src/index.js';
import { Random } from '../property/random.js';
import { dial, key, makeFlow, request } from '../support/flow.js';

interface Run {
  /** The requests by number, in the order in which they went. */
  readonly order: number[];
  /** The flow of each request, by number. */
  readonly flows: string[];
  readonly errors: number;
  readonly left: number;
}

/** A random history in two bands under the policy; in the end the gate stays open until all have gone. */
function live(policy: FairnessPolicy, seed: number): Run {
  const random = new Random(seed);
  const detector = dial(1, true);
  const bands = [5, 0].map((priority) => ({ priority, fairness: policy }));
  const { flow, clock } = makeFlow({ saturationDetector: detector, bands, defaultRequestTtl: 0, flowIdleTimeout: 500 });
  const order: number[] = [];
  const flows: string[] = [];
  const running: Lease[] = [];
  let credit = 0;
  flow.on('dispatched', ({ item, lease }) => {
    if (item.request !== request) order.push(item.byteSize);
    running.push(lease);
    credit--;
    if (credit <= 0) detector.value = 1;
  });
  const serve = (count: number): void => {
    credit = count;
    detector.turnTo(0);
    detector.value = 1;
  };
  const abort = new AbortController();
  for (let step = 0; step < 400; step++) {
    const name = `f${random.int(8)}`;
    const priority = random.pick([5, 0]);
    const dice = random.next();
    if (dice < 0.5) {
      const signal = random.chance(0.05) ? abort.signal : undefined;
      void flow.enqueue({ byteSize: flows.length, tokens: random.int(50), signal }, key(name, priority));
      flows.push(`${name} of ${priority}`);
    } else if (dice < 0.75) serve(1 + random.int(3));
    else if (dice < 0.9 && running.length > 0) {
      const [lease] = running.splice(random.int(running.length), 1) as [Lease];
      if (random.chance(0.7)) lease.report({ promptTokens: random.int(100), completionTokens: random.int(100) });
      lease.release();
    } else clock.advance(random.int(300));
    if (step === 250) abort.abort();
  }
  serve(1e6);
  for (const lease of running) lease.release();
  const { waiting, pluginErrors, inFlight } = flow.stats();
  return { order, flows, errors: pluginErrors, left: waiting + inFlight };
}

export function describeFairnessPolicy(name: string, make: () => FairnessPolicy): void {
  describe(`fairness policy ${name}`, () => {
    it('has a type', () => {
      expect(make().type).toMatch(/^[a-z][a-z0-9-]*$/);
    });

    it('lets every request go once, picks nothing but active flows, and leaves nobody behind', () => {
      for (let seed = 1; seed <= 10; seed++) {
        const { order, errors, left } = live(make(), seed);
        expect({ errors, left, twice: order.length - new Set(order).size }).toEqual({ errors: 0, left: 0, twice: 0 });
        expect(order.length).toBeGreaterThan(100);
      }
    });

    it('leaves the order inside a flow to the ordering policy', () => {
      for (let seed = 11; seed <= 20; seed++) {
        const { order, flows } = live(make(), seed);
        const last = new Map<string, number>();
        for (const number of order) {
          const flow = flows[number] as string;
          expect(number).toBeGreaterThan(last.get(flow) ?? -1);
          last.set(flow, number);
        }
      }
    });

    it('decides alike on like histories', () => {
      for (let seed = 21; seed <= 25; seed++) expect(live(make(), seed).order).toEqual(live(make(), seed).order);
    });

    it('may come to and go from a queue that is in use', async () => {
      const detector = dial(1, true);
      const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness: globalStrict() }] });
      const served: string[] = [];
      flow.on('dispatched', ({ item, lease }) => {
        served.push(item.fairnessId);
        detector.value = 1;
        queueMicrotask(() => lease.release());
      });
      const names = Array.from({ length: 24 }, (_, i) => `f${i % 5}`);
      for (const each of names) void flow.enqueue(request, key(each));
      for (const fairness of [make(), globalStrict(), make(), make(), globalStrict()]) {
        flow.reconfigure({ bands: [{ priority: 0, fairness }] });
        for (let i = 0; i < 4; i++) detector.turnTo(0);
      }
      for (let i = 0; i < names.length; i++) detector.turnTo(0);
      expect([...served].sort()).toEqual([...names].sort());
      await flow.close();
      expect(flow.stats()).toMatchObject({ waiting: 0, pluginErrors: 0 });
    });
  });
}
