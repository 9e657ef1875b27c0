/**
 * Fairness by tokens and by programs: the reference's virtual token counters are `virtualTokenCounter()` with the
 * paper's lift, and its program scores are `leastService()` with a cost of each turn, over one flow for each program.
 * Counters are read off the selector.
 */
import { expect } from 'vitest';
import { leastService, virtualTokenCounter } from '../../../src/index.js';
import type { CostOptions, Work } from '../../../src/tiers/2-fairness/by-cost/cost-options.js';
import type { FlowFairnessPolicy, FlowSelector } from '../../../src/tiers/2-fairness/fairness-policy.js';
import type { BandView, FlowView, ItemView, Usage } from '../../../src/tiers/views.js';
import { fakeItem } from '../../support/fake-item.js';
import { Rig } from '../support/rig.js';
import { accepted, expectNumber, type Runner, type Runners, runner } from '../support/runner.js';

/** One request waiting. */
class Flow implements FlowView {
  readonly priority = 0;
  readonly weight = 1;
  readonly waiting = 1;
  readonly waitingBytes = 0;
  readonly fairnessId: string;
  readonly head: ItemView;

  constructor(fairnessId: string, head: Partial<ItemView> = {}) {
    this.fairnessId = fairnessId;
    this.head = fakeItem({ fairnessId, ...head });
  }
}

const band: BandView = { priority: 0, waiting: 0, waitingBytes: 0, firstActive: undefined, activeFlows: () => [] };

type Counters = Readonly<Record<string, number>>;

/** Flows with the counters that a vector names, and the others, which wait for the first time. */
class CountedBand {
  readonly flows = new Map<string, Flow>();
  private readonly selector: FlowSelector;
  private readonly counters: Counters;

  constructor(
    policy: FlowFairnessPolicy,
    counters: Counters,
    queued: readonly string[] = Object.keys(counters),
    headTokens = 0,
  ) {
    this.selector = policy.createSelector(band);
    this.counters = counters;
    for (const id of [...Object.keys(counters), ...queued]) {
      if (!this.flows.has(id)) this.flows.set(id, new Flow(id, { tokens: headTokens, sequence: this.flows.size }));
    }
    for (const id of Object.keys(counters)) this.selector.flowActivated?.(this.flow(id));
    for (const [id, counter] of Object.entries(counters)) this.selector.charge?.(this.flow(id), counter);
    for (const id of queued) if (!(id in counters)) this.selector.flowActivated?.(this.flow(id));
    for (const id of Object.keys(counters)) if (!queued.includes(id)) this.selector.flowDeactivated?.(this.flow(id));
  }

  pick(): string | undefined {
    return this.selector.pick(0)?.fairnessId;
  }

  serveFurthest(): void {
    const [[id] = ['']] = Object.entries(this.counters).sort(([, a], [, b]) => b - a);
    const flow = this.flow(id);
    this.selector.dispatched?.(flow, flow.head, 0);
  }

  /** As far as the others go by it: a known counter and the distance from it. */
  counterOf(id: string): number {
    const [knownId = '', known = 0] = Object.entries(this.counters)[0] ?? [];
    return known + this.leadOf(id) - this.leadOf(knownId);
  }

  private leadOf(id: string): number {
    return this.selector.lead?.(this.flow(id)) ?? 0;
  }

  private flow(id: string): Flow {
    const flow = this.flows.get(id);
    if (flow === undefined) throw new Error(`no flow ${id}`);
    return flow;
  }
}

/** What a request is charged when it goes. */
function chargeOf(options: CostOptions, tokens: number): number {
  const selector = accepted(() => virtualTokenCounter(options)).createSelector(band);
  const flow = new Flow('a', { tokens });
  selector.dispatched?.(flow, flow.head, 0);
  return selector.received?.(flow) ?? Number.NaN;
}

/** The token counts are the host's: it has the tokens, or counts them. */
interface Cost {
  tokenIds?: number;
  tokenizedPromptTokens?: number;
  inputWeight: number;
  outputWeight: number;
  outputEstimate: number;
}

const costKeys = ['tokenIds', 'tokenizedPromptTokens', 'inputWeight', 'outputWeight', 'outputEstimate'] as const;

const cost = runner<Cost, { cost: number }>(
  { input: costKeys, expect: ['cost'] },
  ({ input, expect: expected, tolerance }) => {
    const { tokenIds, tokenizedPromptTokens, inputWeight, outputWeight, outputEstimate } = input;
    const prices = {
      promptTokenPrice: inputWeight,
      completionTokenPrice: outputWeight,
      expectedCompletionTokens: outputEstimate,
    };
    expectNumber(chargeOf(prices, tokenIds ?? tokenizedPromptTokens ?? 0), expected.cost, tolerance);
  },
);

/** What else a vector says of the request, its text or its size, says nothing of tokens here. */
const costOfAny: Runner = (vector) => {
  const told = Object.entries(vector.input).filter(([key]) => costKeys.some((known) => known === key));
  return cost({ ...vector, input: Object.fromEntries(told) });
};

/** Heads of 400 bytes are 100 tokens. */
const pick = runner<
  { counters: Counters; queued: readonly string[] },
  { pick?: string | null; counterAtLeast?: Counters }
>({ input: ['counters', 'queued'], expect: ['pick', 'counterAtLeast'] }, ({ input, expect: expected }) => {
  const counted = new CountedBand(virtualTokenCounter({ lift: 'vtc' }), input.counters, input.queued, 100);
  if (expected.pick !== undefined) expect(counted.pick() ?? null).toBe(expected.pick);
  for (const [id, least] of Object.entries(expected.counterAtLeast ?? {}))
    expect(counted.counterOf(id)).toBeGreaterThanOrEqual(least);
});

/**
 * The flow that is furthest ahead is served, at a cost of next to nothing: that is when counters are looked at. Only
 * distances can be seen.
 */
const normalize = runner<{ counters: Counters; threshold: number }, { counters: Counters }>(
  { input: ['counters', 'threshold'], expect: ['counters'] },
  ({ input, expect: expected, tolerance = 1e-6 }) => {
    const counted = new CountedBand(virtualTokenCounter({ lift: 'vtc', cost: () => 1e-9 }), input.counters);
    counted.serveFurthest();
    for (const [id, counter] of Object.entries(expected.counters))
      expectNumber(counted.counterOf(id), counter, tolerance);
  },
);

interface Weights {
  inputTokenWeight?: number;
  outputTokenWeight?: number;
}

const params = runner<{ params: Weights | null }, Required<Weights>>(
  { input: ['params'], expect: ['inputTokenWeight', 'outputTokenWeight'] },
  ({ input, expect: expected }) => {
    const { inputTokenWeight, outputTokenWeight } = input.params ?? {};
    const prices = { promptTokenPrice: inputTokenWeight, completionTokenPrice: outputTokenWeight };
    const charge = (promptTokens: number, completionTokens: number): number =>
      chargeOf({ ...prices, workOf: () => ({ promptTokens, completionTokens }) }, 0);
    expect({ inputTokenWeight: charge(1, 0), outputTokenWeight: charge(0, 1) }).toEqual(expected);
  },
);

interface Program {
  turns: number;
  tokens: number;
  enqueueMs: number;
}

/** Before every instant that a vector names. */
const pastMs = -1e9;
/** Longer than that: a flow that is forgotten takes its costs along. */
const rememberedMs = 2e9;

/**
 * What a program did lies in the past of the rig; then one request of each waits, and the one that goes has the lower
 * cost, or came first. A turn has a prompt; tokens without a turn are those of a request without one.
 */
const programScore = runner<{ weightTurns: number; weightTokens: number; a: Program; b: Program }, { less: boolean }>(
  { input: ['weightTurns', 'weightTokens', 'a', 'b'], expect: ['less'] },
  ({ input: { weightTurns, weightTokens, a, b }, expect: expected }) => {
    const cost = ({ promptTokens, completionTokens }: Work): number =>
      Math.sign(promptTokens) * weightTurns + weightTokens * completionTokens;
    const bands = [{ priority: 0, fairness: leastService({ cost }) }];
    const rig = new Rig({ bands, flowIdleTimeout: rememberedMs, bandIdleTimeout: rememberedMs }, { startMs: pastMs });
    const programs = Object.entries({ a, b }).sort(([, one], [, other]) => one.enqueueMs - other.enqueueMs);
    for (const [fairnessId, { turns, tokens }] of programs) {
      if (turns > 0) run(rig, fairnessId, turns, { promptTokens: 1, completionTokens: tokens / turns });
      else if (tokens > 0) run(rig, fairnessId, 1, { promptTokens: 0, completionTokens: tokens });
    }
    const before = rig.dispatched.length;
    for (const [fairnessId, { enqueueMs }] of programs) {
      rig.advanceTo(enqueueMs);
      rig.enqueue({ fairnessId, ttlMs: 0 }, fairnessId);
    }
    rig.gate.open(1);
    const isTie = a.turns === b.turns && a.tokens === b.tokens && a.enqueueMs === b.enqueueMs;
    expect(!isTie && rig.dispatched[before]?.id === 'a').toBe(expected.less);
  },
);

function run(rig: Rig, fairnessId: string, count: number, usage: Usage): void {
  rig.gate.open(count);
  const tickets = rig.enqueueMany(count, { fairnessId, tokens: usage.promptTokens });
  rig.gate.close();
  for (const { lease } of tickets) {
    lease?.report(usage);
    lease?.release();
  }
}

export const tokenFairnessRunners: Runners = {
  'fairness.vtcCost': costOfAny,
  'fairness.vtcPick': pick,
  'fairness.vtcNormalize': normalize,
  'fairness.vtcParams': params,
  'ordering.programScore': programScore,
};
