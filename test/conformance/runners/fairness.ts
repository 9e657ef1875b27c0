/** Tier 2: which flow goes next. A band of a real controller lets one request go for each pick. */
import { expect } from 'vitest';
import { defaultRegistry, type FairnessPolicy, type OrderingPolicy } from '../../../src/index.js';
import { Rig, type Ticket } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';

interface VectorFlow {
  readonly flowId: string;
  readonly priority?: number;
  /** Requests waiting. */
  readonly length: number;
  readonly headEnqueueMs?: number;
  readonly ordering?: string | null;
}

interface Step {
  readonly op: string;
  readonly flows?: readonly VectorFlow[];
  readonly expect?: string | null;
}

/** The queues of the vectors do not shrink when a flow is picked: what was dispatched is put back. */
class PickedBand {
  private readonly rig: Rig;
  private readonly waiting = new Map<string, Ticket[]>();
  private flows: readonly VectorFlow[] = [];

  constructor(policy: string, ordering?: string | null) {
    const fairness = defaultRegistry().create(policy) as FairnessPolicy;
    this.rig = new Rig({ bands: [{ priority: 0, fairness, ordering: orderingOf(ordering) }] }, { startMs: earliestMs });
  }

  /** The flows of a vector are a set: they become active in the order of their keys, the heads at their instants. */
  setFlows(flows: readonly VectorFlow[]): void {
    this.flows = [...flows].sort((a, b) => (a.headEnqueueMs ?? 0) - (b.headEnqueueMs ?? 0) || compareKeys(a, b));
    const gone = [...this.waiting.keys()].filter((flowId) => !flows.some((flow) => flow.flowId === flowId));
    for (const flowId of gone) this.resize(flowId, 0);
    for (const { flowId, length, headEnqueueMs } of this.flows) {
      this.rig.advanceTo(headEnqueueMs ?? this.rig.nowMs);
      if (length > 0 && this.lineOf(flowId).length === 0) this.resize(flowId, 1);
    }
    for (const { flowId, length } of this.flows) this.resize(flowId, length);
  }

  /** Null when nothing was there to be picked. */
  pick(): string | null {
    const before = this.rig.dispatched.length;
    this.rig.gate.open(1);
    this.rig.gate.close();
    const picked = this.rig.dispatched.slice(before);
    expect(picked.length).toBeLessThanOrEqual(1);
    const [ticket] = picked;
    if (ticket === undefined) return null;
    ticket.lease?.release();
    const line = this.lineOf(ticket.id);
    line.splice(line.indexOf(ticket), 1);
    for (const { flowId, length } of this.flows) this.resize(flowId, length);
    return ticket.id;
  }

  private lineOf(flowId: string): Ticket[] {
    let line = this.waiting.get(flowId);
    if (line === undefined) {
      line = [];
      this.waiting.set(flowId, line);
    }
    return line;
  }

  private resize(flowId: string, length: number): void {
    const line = this.lineOf(flowId);
    while (line.length < length) line.push(this.rig.enqueue({ fairnessId: flowId, priority: 0 }, flowId));
    for (const ticket of line.splice(length)) ticket.abort.abort();
  }
}

/** Before every instant that a vector names. */
const earliestMs = -1e9;

/** The order of flow keys in the reference: higher priority first, then the ID. */
function compareKeys(a: VectorFlow, b: VectorFlow): number {
  if (a.priority !== b.priority) return (b.priority ?? 0) - (a.priority ?? 0);
  return a.flowId < b.flowId ? -1 : Number(a.flowId > b.flowId);
}

/** Nothing is the default; a name that is no plugin's stands for some policy of that type. */
function orderingOf(name: string | null | undefined): OrderingPolicy | undefined {
  if (name === undefined || name === null) return undefined;
  const type = name.endsWith('-ordering-policy') ? name : `${name}-ordering-policy`;
  if (defaultRegistry().kindOf(type) === 'ordering') return defaultRegistry().create(type) as OrderingPolicy;
  return { type: name, compare: (a, b) => a.enqueuedAtMs - b.enqueuedAtMs };
}

interface Pick {
  flowId?: string | null;
  error?: string | null;
  /** What the reference dies of. */
  throws?: unknown;
}

/**
 * A missing band is one in which nobody waits: here every selector has its band. A band has one ordering policy, so
 * that the first that the queues name is that of all, and no pick fails.
 */
const pick = runner<{ policy: string; queues: readonly VectorFlow[] | null }, Pick>(
  { input: ['policy', 'queues'], expect: ['flowId', 'error', 'throws'] },
  ({ input, expect: { flowId, error = null, throws = false } }) => {
    const band = new PickedBand(input.policy, input.queues?.find(({ ordering }) => ordering !== undefined)?.ordering);
    band.setFlows(input.queues ?? []);
    const picked = band.pick();
    expect({ error: null, throws: false }).toEqual({ error, throws });
    if (flowId !== undefined) expect(picked).toBe(flowId);
  },
);

const pickSequence = runner<{ policy: string; steps: readonly Step[] }, { picks: readonly (string | null)[] }>(
  { input: ['policy', 'steps'], expect: ['picks'] },
  (vector) => {
    const band = new PickedBand(vector.input.policy);
    const picks: (string | null)[] = [];
    for (const { op, flows = [], expect: expected } of vector.input.steps) {
      if (op === 'setFlows') band.setFlows(flows);
      else if (op === 'pick') {
        picks.push(band.pick());
        if (expected !== undefined) expect(picks.at(-1), `pick ${picks.length}`).toBe(expected);
      } else throw unknownWord(vector, op);
    }
    expect(picks).toEqual(vector.expect.picks);
  },
);

interface Share {
  policy: string;
  flows: readonly VectorFlow[];
  workers: number;
  picksPerWorker: number;
}

/** One thread here: the workers' picks follow each other. */
const shareBounds = runner<Share, { total: number; eachFlowGreaterThan?: number }>(
  { input: ['policy', 'flows', 'workers', 'picksPerWorker'], expect: ['total', 'eachFlowGreaterThan'] },
  ({ input, expect: expected }) => {
    const band = new PickedBand(input.policy);
    band.setFlows(input.flows);
    const picks = new Map<string | null, number>();
    for (let index = 0; index < input.workers * input.picksPerWorker; index++) {
      const flowId = band.pick();
      picks.set(flowId, (picks.get(flowId) ?? 0) + 1);
    }
    expect(picks.has(null)).toBe(false);
    expect([...picks.values()].reduce((sum, count) => sum + count, 0)).toBe(expected.total);
    for (const { flowId, length } of input.flows) {
      if (length > 0) expect(picks.get(flowId) ?? 0, flowId).toBeGreaterThan(expected.eachFlowGreaterThan ?? 0);
    }
  },
);

export const fairnessRunners: Runners = {
  'fairness.pick': pick,
  'fairness.pickSequence': pickSequence,
  'fairness.shareBounds': shareBounds,
};
