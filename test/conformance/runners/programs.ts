/** Program-aware fairness. Picks go through a real controller; single numbers are asked of the parts that hold them. */
import { expect } from 'vitest';
import { jainIndex } from '../../../src/base/jain-index.js';
import { parse } from '../../../src/base/schema/element.js';
import { programAware } from '../../../src/index.js';
import {
  leastAttainedService,
  rangeNormalize,
  serviceAt,
} from '../../../src/tiers/2-fairness/least-attained-service.js';
import { type ProgramAwareOptions, programAwarePlugin } from '../../../src/tiers/2-fairness/program-aware.js';
import { ProgramTable } from '../../../src/tiers/2-fairness/program-table.js';
import { turnOf } from '../../../src/tiers/2-fairness/turn-priority.js';
import { Rig, type Ticket } from '../support/rig.js';
import { expectNumber, type Runners, runner, unknownWord } from '../support/runner.js';

/** A program before the pick. Instants are in the past of the pick. */
interface PastProgram {
  readonly id: string;
  /** Requests waiting. */
  readonly length?: number;
  readonly headWaitMs: number;
  /** Requests dispatched so far, those in flight included. */
  readonly dispatched: number;
  readonly inFlight: number;
  readonly endedMsAgo: number;
  readonly service: number;
  readonly serviceMsAgo: number;
}

const pastMs = -1e9;

/** Lives through the past of some programs. */
class ProgramBand {
  readonly policy: ReturnType<typeof programAware>;
  readonly rig: Rig;

  constructor(options: ProgramAwareOptions, programs: readonly PastProgram[] = []) {
    this.policy = programAware(options);
    this.rig = new Rig({ bands: [{ priority: 0, fairness: this.policy }] }, { startMs: pastMs });
    // What runs in the past is dispatched before anything waits, and reports and ends when its time has come.
    const plan = programs.flatMap((program) => this.planOf(program, this.run(program.id, program.dispatched)));
    plan.sort((a, b) => a.atMs - b.atMs);
    for (const { atMs, act } of plan) {
      this.rig.advanceTo(atMs);
      act();
    }
    this.rig.advanceTo(0);
  }

  /** Requests dispatched without waiting. */
  run(fairnessId: string, count: number): Ticket[] {
    this.rig.gate.open(count);
    const tickets = this.rig.enqueueMany(count, { fairnessId });
    this.rig.gate.close();
    return tickets;
  }

  pick(): string | null {
    const before = this.rig.dispatched.length;
    const picked: string[] = [];
    const stop = this.rig.flow.on('dispatched', ({ item }) => picked.push(item.fairnessId));
    this.rig.gate.open(1);
    this.rig.gate.close();
    stop();
    expect(this.rig.dispatched.length - before).toBeLessThanOrEqual(1);
    return picked[0] ?? null;
  }

  private planOf(program: PastProgram, tickets: readonly Ticket[]): { atMs: number; act: () => void }[] {
    const { id, length = 1, headWaitMs, inFlight, endedMsAgo, service, serviceMsAgo } = program;
    const ending = tickets.slice(0, tickets.length - inFlight);
    return [
      { atMs: -serviceMsAgo, act: () => tickets[0]?.lease?.report({ promptTokens: service }) },
      { atMs: -endedMsAgo, act: () => ending.forEach(({ lease }) => void lease?.release()) },
      { atMs: -headWaitMs, act: () => void this.rig.enqueueMany(length, { fairnessId: id, ttlMs: 0 }) },
    ];
  }
}

interface LasProgram {
  id: string;
  length?: number;
  service?: number;
  headWaitMs?: number;
  decayAnchorSecondsAgo?: number;
}

interface Las {
  op?: string;
  programs?: readonly LasProgram[];
  weightService?: number;
  weightHeadWait?: number;
  halfLifeSeconds: number;
  startService?: number;
  anchorSecondsAgo?: number;
  cost?: number;
  /** What a request that is complete consumed. */
  promptTokens?: number;
  completionTokens?: number;
}

interface LasExpectation {
  pick?: string | null;
  stateExists?: Readonly<Record<string, boolean>>;
  service?: number;
}

function pickLeastAttained({ programs = [], weightService, weightHeadWait, halfLifeSeconds }: Las): ProgramBand {
  const past = programs.map(
    ({ id, length = 1, service = 0, headWaitMs = 0, decayAnchorSecondsAgo = 0 }): PastProgram => {
      const serviceMsAgo = decayAnchorSecondsAgo * 1000;
      const dispatched = service > 0 ? 1 : 0;
      return { id, length, headWaitMs, dispatched, inFlight: 0, endedMsAgo: serviceMsAgo, service, serviceMsAgo };
    },
  );
  return new ProgramBand(
    { lasWeightService: weightService, lasWeightHeadWait: weightHeadWait, lasHalfLifeSeconds: halfLifeSeconds },
    past,
  );
}

/** The service of a program after one operation at instant 0. */
function serviceAfter(
  op: string,
  { startService = 0, anchorSecondsAgo = 0, halfLifeSeconds, ...request }: Las,
): number | undefined {
  const halfLifeMs = halfLifeSeconds * 1000;
  const table = new ProgramTable(1, 1);
  table.sweep(-anchorSecondsAgo * 1000);
  const program = table.of('program');
  program.service = startService;
  program.serviceAtMs = -anchorSecondsAgo * 1000;
  const { cost = 0, promptTokens = 0, completionTokens = 0 } = request;
  if (op === 'read') return serviceAt(program, 0, halfLifeMs);
  if (op === 'add' || op === 'complete') {
    const consumed = op === 'add' ? cost : costOf(promptTokens, completionTokens);
    leastAttainedService({ weightService: 1, weightHeadWait: 0, halfLifeMs }).charge?.(program, consumed, 0);
    return program.service;
  }
  if (op !== 'evict' && op !== 'evictThenRead') return undefined;
  table.sweep(1000);
  expect(table.find('program')).toBeUndefined();
  return serviceAt(table.of('program'), 1000, halfLifeMs);
}

/** What the policy charges for a request, by its default weights. */
function costOf(promptTokens: number, completionTokens: number): number {
  const defaults = parse(programAwarePlugin.parameters, {}, 'default') as Required<ProgramAwareOptions>;
  const { promptTokenWeight = Number.NaN, completionTokenWeight = Number.NaN } = defaults;
  return promptTokenWeight * promptTokens + completionTokenWeight * completionTokens;
}

const lasKeys = [
  'op',
  'programs',
  'weightService',
  'weightHeadWait',
  'halfLifeSeconds',
  'startService',
  'anchorSecondsAgo',
  'cost',
] as const;

const las = runner<Las, LasExpectation>(
  {
    input: [...lasKeys, 'promptTokens', 'completionTokens'],
    expect: ['pick', 'stateExists', 'service'],
  },
  (vector) => {
    const { input, expect: expected, tolerance } = vector;
    if (input.op === undefined) {
      const band = pickLeastAttained(input);
      const { programs } = band.policy;
      expect(band.pick()).toBe(expected.pick);
      const { stateExists } = expected;
      if (stateExists === undefined) return;
      const known = (input.programs ?? []).filter(({ id, length = 1 }) => stateExists[id] ?? length > 0);
      expect(programs).toBe(known.length);
      return;
    }
    const service = serviceAfter(input.op, input);
    if (service === undefined) throw unknownWord(vector, input.op);
    expectNumber(service, expected.service as number, tolerance);
  },
);

interface Sweep {
  inFlight: number;
  lastCompletionSecondsAgo: number;
  ttlSeconds: number;
}

/** Another program's request is the occasion to look. */
const programSweep = runner<Sweep, { kept: boolean }>(
  { input: ['inFlight', 'lastCompletionSecondsAgo', 'ttlSeconds'], expect: ['kept'] },
  ({ input: { inFlight, lastCompletionSecondsAgo, ttlSeconds }, expect: expected }) => {
    const endedMsAgo = lastCompletionSecondsAgo * 1000;
    const past = {
      id: 'program',
      length: 0,
      headWaitMs: 0,
      dispatched: inFlight + 1,
      inFlight,
      endedMsAgo,
      service: 0,
      serviceMsAgo: 1e6,
    };
    const band = new ProgramBand({ evictionTtlSeconds: ttlSeconds, evictionSweepSeconds: 1e-3 }, [past]);
    band.run('other', 1);
    expect(band.policy.programs).toBe(expected.kept ? 2 : 1);
  },
);

/** A request without an arrival instant is one that never waited. */
const programHooks = runner<
  { enqueueMsAgo: number | null },
  { dispatched: number; inFlight: number; waitCount: number }
>({ input: ['enqueueMsAgo'], expect: ['dispatched', 'inFlight', 'waitCount'] }, ({ input, expect: expected }) => {
  const table = new ProgramTable(3_600_000, 300_000);
  const program = table.of('program');
  table.dispatched(program, input.enqueueMsAgo ?? 0);
  const { dispatched, inFlight, waits: waitCount } = program;
  expect({ dispatched, inFlight, waitCount }).toEqual(expected);
  expect(program.meanWaitMs).toBe(input.enqueueMsAgo ?? 0);
});

interface TurnProgram {
  id: string;
  dispatched: number | null;
  inFlight: number;
  completedSecondsAgo: number;
  /** Null where a queue has a length and no head: there is no such queue here, and nothing of it can go. */
  headWaitSeconds?: number | null;
  head?: null;
  length: number;
}

const turnPriority = runner<
  { timeWeight: number; inactivitySeconds: number; programs: readonly TurnProgram[] },
  { pick: string | null }
>({ input: ['timeWeight', 'inactivitySeconds', 'programs'], expect: ['pick'] }, ({ input, expect: expected }) => {
  const past = input.programs.map(
    ({ id, dispatched, inFlight, completedSecondsAgo, headWaitSeconds = 0, head, length }): PastProgram => {
      const endedMsAgo = completedSecondsAgo * 1000;
      const hasHead = head !== null && headWaitSeconds !== null;
      return {
        id,
        length: hasHead ? length : 0,
        headWaitMs: (headWaitSeconds ?? 0) * 1000,
        dispatched: dispatched ?? 0,
        inFlight,
        endedMsAgo,
        service: 0,
        serviceMsAgo: endedMsAgo,
      };
    },
  );
  const band = new ProgramBand(
    {
      strategy: 'turn-priority',
      turnPriorityTimeWeight: input.timeWeight,
      turnPriorityInactivitySeconds: input.inactivitySeconds,
    },
    past,
  );
  expect(band.pick()).toBe(expected.pick);
});

interface Turn {
  flowId?: string;
  dispatched: number;
  inFlight: number;
  completionToHeadSeconds: number;
  inactivitySeconds: number;
}

const turnNumber = runner<Turn, { turn: number }>(
  { input: ['flowId', 'dispatched', 'inFlight', 'completionToHeadSeconds', 'inactivitySeconds'], expect: ['turn'] },
  ({ input, expect: expected }) => {
    const program = new ProgramTable(0, 1).of(input.flowId ?? 'session');
    program.dispatched = input.dispatched;
    program.inFlight = input.inFlight;
    program.lastEndedAtMs = 0;
    expect(turnOf(program, input.completionToHeadSeconds * 1000, input.inactivitySeconds * 1000)).toBe(expected.turn);
  },
);

interface Jain {
  id: string;
  component: string;
  source: string;
  cases: readonly { values: readonly number[]; jain: number }[];
}

/** Rounding may go either way in the last digit. */
const roundingError = 1e-12;

export const programRunners: Runners = {
  'fairness.las': las,
  'fairness.programSweep': programSweep,
  'fairness.programHooks': programHooks,
  'fairness.turnPriority': turnPriority,
  'fairness.turnNumber': turnNumber,

  'math.rangeNormalize': runner<{ value: number; min: number; max: number }, { result: number }>(
    { input: ['value', 'min', 'max'], expect: ['result'] },
    ({ input: { value, min, max }, expect: expected, tolerance }) => {
      expectNumber(rangeNormalize(value, min, max), expected.result, tolerance);
    },
  ),

  'fairness.jain': runner<{ meanWaitsMs: readonly number[] }, { index: number; tolerance?: number }>(
    { input: ['meanWaitsMs'], expect: ['index', 'tolerance'] },
    ({ input, expect: expected }) => {
      expectNumber(jainIndex(input.meanWaitsMs), expected.index, expected.tolerance ?? roundingError);
    },
  ),

  'jain-index': runner<Jain, { jain?: readonly number[] }>(
    { input: ['id', 'component', 'source', 'cases'], expect: ['jain'] },
    ({ input, expect: { jain = input.cases.map((each) => each.jain) } }) => {
      for (const [index, { values }] of input.cases.entries())
        expectNumber(jainIndex(values), jain[index] as number, roundingError);
    },
  ),
};
