/** How far what two flows received per weight may come apart, while both keep requests waiting. */
import { expect, it } from 'vitest';
import {
  deficitRoundRobin,
  type FlowFairnessPolicy,
  leastService,
  roundRobin,
  startTimeFairQueueing,
  virtualTokenCounter,
} from '../../../src/index.js';
import { earliestHead } from '../../../src/tiers/2-fairness/earliest-head.js';
import { byPrompt, type Setup, spreadOf } from '../../tiers/2-fairness/by-cost/backlogged.js';

interface Row {
  readonly w: readonly number[];
  readonly K: number;
  readonly policy: string;
  readonly range: number;
  readonly bound: number | null;
}

interface Options {
  readonly charge: 'predict' | 'settle' | 'stream';
  readonly quantum?: number;
}

/** Every name that a row may give a policy. Those that count requests have no bound by cost. */
const policies: Readonly<Record<string, (options: Options) => FlowFairnessPolicy>> = {
  VTC: ({ charge }) => virtualTokenCounter({ ...byPrompt, charge }),
  SFQ: ({ charge }) => startTimeFairQueueing({ ...byPrompt, charge }),
  DRR: (options) => deficitRoundRobin({ ...byPrompt, ...options }),
  SRR: (options) => deficitRoundRobin({ ...byPrompt, ...options }),
  LAS: ({ charge }) => leastService({ ...byPrompt, charge }),
  'least service': ({ charge }) => leastService({ ...byPrompt, charge }),
  RR: roundRobin,
  WRR: roundRobin,
  FCFS: () => earliestHead('fcfs', (a, b) => a.sequence - b.sequence),
  globalStrict: () => earliestHead('globalStrict', (a, b) => a.sequence - b.sequence),
};

const exact: Setup['estimate'] = (cost) => cost;
const noisy: Setup['estimate'] = (cost, random) => cost * (0.5 + random.next());

/** What is charged when, and how well it is known before. */
const chargings: Readonly<Record<string, Options & Pick<Setup, 'estimate'>>> = {
  exact: { charge: 'predict', estimate: exact },
  noisy: { charge: 'predict', estimate: noisy },
  predicted: { charge: 'predict', estimate: noisy },
  half: { charge: 'predict', estimate: (cost) => cost / 2 },
  'post-charge': { charge: 'settle', estimate: exact },
  stream: { charge: 'stream', estimate: exact },
};

function known<T>(table: Readonly<Record<string, T>>, word: string, words: string): T {
  const entry = Object.hasOwn(table, word) ? table[word] : undefined;
  if (entry === undefined) throw new Error(`nobody knows "${word}" of the policy "${words}"`);
  return entry;
}

interface Words {
  readonly names: readonly string[];
  readonly charging: string;
  readonly quantum: number | undefined;
  readonly isControl: boolean;
}

/** Reads `NAME[/NAME…] [charging] [estimate] [Q=quantum] [(control)]`. */
function read(words: string): Words {
  const name = String.raw`(?:least service|\w+)`;
  const charging = '(?: ([a-z-]+))?(?: estimates?)?';
  const pattern = new RegExp(String.raw`^(${name}(?:/${name})*)${charging}(?: Q=([\d.]+))?( \(control\))?$`);
  const match = pattern.exec(words);
  if (match === null) throw new Error(`nobody can read the policy "${words}"`);
  const [, names = '', word = 'exact', quantum, control] = match;
  return {
    names: names.split('/'),
    charging: word,
    quantum: quantum === undefined ? undefined : Number(quantum),
    isControl: control !== undefined,
  };
}

export function bounds({ rows }: { readonly rows: readonly Row[] }): void {
  it.each(rows)('$policy, weights $w, $K slots: within $bound', (row) => {
    const { w: weights, K: slots, policy: words, range, bound } = row;
    const { names, charging, quantum, isControl } = read(words);
    const { charge, estimate } = known(chargings, charging, words);
    const options = quantum === undefined ? { charge } : { charge, quantum };
    for (const name of names) {
      const make = known(policies, name, words);
      const setup = { weights, slots, estimate, isCharged: charge !== 'settle', knowsWeights: name !== 'RR' };
      const spreads = [1, 2, 3, 4, 5].map((seed) => spreadOf(make(options), { ...setup, seed }));
      const worst = Math.max(...spreads.map((spread) => spread.range));
      if (!isControl && bound !== null) {
        expect(worst).toBeLessThanOrEqual(bound + 1e-6);
        continue;
      }
      // A control keeps no bound, the row's or that of counters by cost, and comes as far apart as it did there.
      expect(worst).toBeGreaterThan(bound ?? Math.max(...spreads.map((spread) => spread.bound)));
      expect(worst).toBeGreaterThan(range / 2);
    }
  });
}
