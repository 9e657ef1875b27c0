/** How far what two flows received per weight may come apart, while both keep requests waiting. */
import { expect, it } from 'vitest';
import { deficitRoundRobin, type FlowFairnessPolicy, roundRobin, startTimeFairQueueing, virtualTokenCounter } from '../../../src/index.js';
import { byPrompt, type Setup, spreadOf } from '../../tiers/2-fairness/by-cost/backlogged.js';

interface Row {
  readonly w: readonly number[];
  readonly K: number;
  readonly policy: string;
  readonly range: number;
  readonly bound: number | null;
}

const exact: Setup['estimate'] = (cost) => cost;
const noisy: Setup['estimate'] = (cost, random) => cost * (0.5 + random.next());

/** The policies that a row's words stand for. */
function policiesOf(words: string): (() => FlowFairnessPolicy)[] {
  const charge = words.includes('post-charge') ? 'settle' : 'predict';
  const quantum = Number(/Q=(\d+)/.exec(words)?.[1] ?? Number.NaN);
  if (/^(DRR|SRR)/.test(words)) return [() => deficitRoundRobin({ ...byPrompt, quantum, charge })];
  if (words.startsWith('VTC')) {
    const vtc = (): FlowFairnessPolicy => virtualTokenCounter({ ...byPrompt, charge });
    return words.includes('SFQ') ? [vtc, () => startTimeFairQueueing({ ...byPrompt, charge })] : [vtc];
  }
  if (words.startsWith('RR')) return [roundRobin];
  throw new Error(`nobody knows the policy "${words}"`);
}

export function bounds({ rows }: { readonly rows: readonly Row[] }): void {
  it.each(rows)('$policy, weights $w, $K slots: within $bound', ({ w: weights, K: slots, policy, range, bound }) => {
    const estimate = policy.includes('noisy') ? noisy : exact;
    for (const make of policiesOf(policy)) {
      const ranges = [1, 2, 3, 4, 5].map((seed) => {
        const setup = { weights, slots, seed, estimate, isCharged: !policy.includes('post-charge') };
        return spreadOf(make(), setup).range;
      });
      const worst = Math.max(...ranges);
      // The control has no bound: it must come as far apart as it did there.
      if (bound === null) expect(worst).toBeGreaterThan(range / 2);
      else expect(worst).toBeLessThanOrEqual(bound + 1e-6);
    }
  });
}
