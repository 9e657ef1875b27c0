/**
 * Flows that always have requests waiting, served with a number of slots: how far apart does what they received come?
 */
import type { FlowFairnessPolicy } from '../../../../src/index.js';
import { Random } from '../../../property/random.js';
import { FakeBand, type Running, usage } from './fake-band.js';

export interface Setup {
  readonly weights: readonly number[];
  readonly slots: number;
  readonly seed: number;
  /** What a request is predicted to cost, given what it will. */
  readonly estimate: (cost: number, random: Random) => number;
  readonly dispatches?: number;
  /** Costs of requests before they are drawn from. */
  readonly costs?: readonly number[];
  /** Whether predictions are charged at dispatch; otherwise nothing is. */
  readonly isCharged?: boolean;
  /** Whether the policy knows the weights. */
  readonly knowsWeights?: boolean;
}

export interface Spread {
  /** The largest |A_f / w_f − A_g / w_g| over all intervals and pairs. */
  readonly range: number;
  /** Its bound: E_f + E_g + 2 (D⁺ + D⁻), with the errors that occurred. */
  readonly bound: number;
  /** What each flow received, not divided by weights. */
  readonly shares: readonly number[];
  /** Largest cost. */
  readonly largest: number;
}

interface Slot extends Running {
  readonly endsAtMs: number;
  readonly cost: number;
  readonly charged: number;
}

export function spreadOf(policy: FlowFairnessPolicy, setup: Setup): Spread {
  const { weights, slots, seed, estimate, dispatches = 6000, costs = [1, 2, 5, 10, 50, 100] } = setup;
  const { isCharged = true, knowsWeights = true } = setup;
  const random = new Random(seed);
  const names = weights.map((_, i) => `f${i}`);
  const told = Object.fromEntries(weights.map((weight, i) => [`f${i}`, knowsWeights ? weight : 1]));
  const band = new FakeBand(policy, { weights: told });
  const known = new Map<number, number>();
  const send = (name: string): void => {
    const cost = random.pick(costs);
    known.set(band.add(name, { tokens: estimate(cost, random) }).sequence, cost);
  };
  for (const name of names) for (let i = 0; i < 2; i++) send(name);
  const received = weights.map(() => 0);
  const errors = weights.map(() => 0);
  const least = weights.map(() => weights.map(() => 0));
  const most = weights.map(() => weights.map(() => 0));
  let range = 0;
  let dPlus = 0;
  let dMinus = 0;
  const largestEstimate = weights.map(() => 0);
  const running: Slot[] = [];
  const noteError = (flow: number, amount: number): void => {
    errors[flow] = (errors[flow] as number) + amount / (weights[flow] as number);
    dPlus = Math.max(dPlus, errors[flow] as number);
    dMinus = Math.max(dMinus, -(errors[flow] as number));
  };
  for (let n = 0; n < dispatches; n++) {
    while (running.length >= slots) {
      running.sort((a, b) => a.endsAtMs - b.endsAtMs);
      const done = running.shift() as Slot;
      band.nowMs = Math.max(band.nowMs, done.endsAtMs);
      noteError(names.indexOf(done.flow.fairnessId), done.charged - done.cost);
      band.settle(done, usage(done.cost));
    }
    const next = band.serve();
    if (next === undefined) throw new Error('nothing was picked');
    const { flow, item } = next;
    const index = names.indexOf(flow.fairnessId);
    const weight = weights[index] as number;
    const cost = known.get(item.sequence) as number;
    const charged = isCharged ? item.tokens : 0;
    largestEstimate[index] = Math.max(largestEstimate[index] as number, charged / weight);
    noteError(index, cost - charged);
    running.push({ flow, item, cost, charged, endsAtMs: band.nowMs + cost * (0.5 + 1.5 * random.next()) });
    received[index] = (received[index] as number) + cost / weight;
    send(flow.fairnessId);
    for (let other = 0; other < weights.length; other++) {
      if (other === index) continue;
      const difference = (received[index] as number) - (received[other] as number);
      const [f, g, signed] = index < other ? [index, other, difference] : [other, index, -difference];
      const low = least[f] as number[];
      const high = most[f] as number[];
      low[g] = Math.min(low[g] as number, signed);
      high[g] = Math.max(high[g] as number, signed);
      range = Math.max(range, (high[g] as number) - (low[g] as number));
    }
  }
  const [first = 0, second = 0] = [...largestEstimate].sort((a, b) => b - a);
  return {
    range,
    bound: first + second + 2 * (dPlus + dMinus),
    largest: Math.max(...costs),
    shares: received.map((amount, i) => amount * (weights[i] as number)),
  };
}

/** Options under which a request costs what its prompt has, and is predicted to cost its `tokens`. */
export const byPrompt = {
  workOf: ({ tokens }: { tokens: number }) => ({ promptTokens: tokens, completionTokens: 0 }),
};
