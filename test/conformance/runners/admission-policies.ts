/** Policies in front of the queue, each asked alone. */
import { expect } from 'vitest';
import {
  type AdmissionPolicy,
  FlowConfigError,
  gaieLegacy,
  probabilisticAdmitter,
  sloClasses,
  tenantBudgets,
  tierShed,
  tokenBucket,
} from '../../../src/index.js';
import type { AdmissionView, Rejection } from '../../../src/types/index.js';
import { admissionView, type EndpointFigures } from '../../support/pools.js';
import { configErrorOf } from '../support/figures.js';
import { flatRunner, withKeys } from '../support/flat-vectors.js';
import { accepted, expectNumber, type Runners, runner, unknownWord } from '../support/runner.js';

interface Instance {
  readonly queueDepth?: number;
  readonly batchSize?: number;
  readonly inFlight?: number;
  readonly kvUtil?: number;
}

function viewOf(instances: readonly Instance[]): AdmissionView {
  return admissionView(
    instances.map((instance) => {
      const {
        queueDepth = 0,
        batchSize = 0,
        inFlight = 0,
        kvUtil = 0,
      } = withKeys(instance, 'queueDepth', 'batchSize', 'inFlight', 'kvUtil');
      return { waiting: queueDepth, running: batchSize, inFlight, kv: kvUtil };
    }),
  );
}

/** The refusal, or undefined for a request that comes in. */
function refusalBy(
  policy: AdmissionPolicy,
  priority: number,
  view: AdmissionView,
  fairnessId = 'tenant',
): Rejection | undefined {
  const answer = policy.admit({}, { fairnessId, priority }, view);
  return answer === 'admit' ? undefined : answer;
}

/** The reference refuses this configuration; text says why. */
type ExpectedError = boolean | string;

/**
 * An error of the right kind, about something that the vector wrote: one about what it left out would be an accident of
 * the runner. The figures of a reason in words must be told, as they are of a refusal.
 */
function expectConfigError(make: () => unknown, config: object, expected: ExpectedError): void {
  expect(make).toThrow(FlowConfigError);
  const { issues, message } = configErrorOf(make) as FlowConfigError;
  const written = JSON.stringify(config);
  const isAboutIt = issues.some(
    ({ got = '' }) => got !== 'nothing' && (written.includes(got.replace(/ \(.*$/s, '')) || got.startsWith('a')),
  );
  expect(isAboutIt, `${message} is about ${written}`).toBe(true);
  if (typeof expected === 'string')
    for (const [figure] of expected.matchAll(/-?\d+(\.\d+)?/g)) expect(message).toContain(figure);
}

/** Reasons are worded anew; what is left of a reason is its figures, which must all be told. */
function expectReason(refusal: Rejection | undefined, reason: string | undefined): void {
  if (reason === undefined) return;
  expect(refusal === undefined).toBe(reason === '');
  for (const [, figure = ''] of reason.matchAll(/(?:priority|min|load|saturation)=(-?[\d.]+)/g))
    expect(refusal?.reason).toContain(figure);
}

function isError(expected: ExpectedError | undefined): expected is true | string {
  return expected === true || (typeof expected === 'string' && expected !== '');
}

interface Bucket {
  config: { capacity: number; refillPerSec: number };
  steps?: readonly { clockUs: number; cost: number; admit: boolean; tokensAfter?: number }[];
  expectError?: ExpectedError;
}

const tokenBucketRunner = flatRunner<Bucket>(['config', 'steps', 'expectError'], ({ input, tolerance = 1e-9 }) => {
  const { capacity, refillPerSec } = withKeys(input.config, 'capacity', 'refillPerSec');
  const make = () => tokenBucket({ capacity, refillPerSecond: refillPerSec });
  if (isError(input.expectError)) return expectConfigError(make, input.config, input.expectError);
  const bucket = accepted(make);
  for (const step of input.steps ?? []) {
    const { clockUs, cost, admit, tokensAfter } = withKeys(step, 'clockUs', 'cost', 'admit', 'tokensAfter');
    const view = admissionView([{}], { nowMs: clockUs / 1000 });
    expect(bucket.admit({ tokens: cost }, { fairnessId: 'tenant', priority: 0 }, view) === 'admit').toBe(admit);
    if (tokensAfter !== undefined) expectNumber(bucket.tokens, tokensAfter, tolerance);
  }
});

interface Classes {
  config: { overrides?: Readonly<Record<string, number>> };
  cases?: readonly { class: string; priority: number; sheddable: boolean; inverted: number }[];
  expectError?: ExpectedError;
}

const sloPriorityRunner = flatRunner<Classes>(['config', 'cases', 'expectError'], ({ input }) => {
  const { overrides } = withKeys(input.config, 'overrides');
  if (isError(input.expectError))
    return expectConfigError(() => sloClasses({ overrides }), input.config, input.expectError);
  const classes = accepted(() => sloClasses({ overrides }));
  for (const entry of input.cases ?? []) {
    const { class: sloClass, ...expected } = withKeys(entry, 'class', 'priority', 'sheddable', 'inverted');
    const found = {
      priority: classes.priorityOf(sloClass),
      sheddable: classes.isSheddable(sloClass),
      inverted: classes.invertedPriorityOf(sloClass),
    };
    expect(found, sloClass).toEqual({ ...found, ...expected });
  }
});

interface ClassCase {
  readonly class: string;
  readonly admit: boolean;
  readonly reason?: string;
}

interface Shed<C> {
  config: C;
  instances?: readonly Instance[];
  saturation?: number;
  cases?: readonly ClassCase[];
  expectError?: ExpectedError;
}

function expectCases(
  { instances = [], cases = [] }: Shed<object>,
  policy: AdmissionPolicy,
  priorities?: Readonly<Record<string, number>>,
): void {
  const classes = sloClasses({ overrides: priorities });
  for (const entry of cases) {
    const { class: sloClass, admit, reason } = withKeys(entry, 'class', 'admit', 'reason');
    const refusal = refusalBy(policy, classes.priorityOf(sloClass), viewOf(instances));
    expect(refusal === undefined, sloClass).toBe(admit);
    expectReason(refusal, reason);
  }
}

interface TierShedConfig {
  overloadThreshold?: number;
  minAdmitPriority?: number;
  priorities?: Readonly<Record<string, number>>;
}

const tierShedRunner = flatRunner<Shed<TierShedConfig>>(
  ['config', 'instances', 'cases', 'expectError'],
  ({ input }) => {
    const { priorities, ...options } = withKeys(input.config, 'overloadThreshold', 'minAdmitPriority', 'priorities');
    if (isError(input.expectError)) return expectConfigError(() => tierShed(options), input.config, input.expectError);
    expectCases(
      input,
      accepted(() => tierShed(options)),
      priorities,
    );
  },
);

interface GaieConfig {
  qdThreshold?: number;
  kvThreshold?: number;
  priorities?: Readonly<Record<string, number>>;
}

const gaieLegacyRunner = flatRunner<Shed<GaieConfig>>(
  ['config', 'instances', 'saturation', 'cases', 'expectError'],
  ({ input }) => {
    const { qdThreshold, kvThreshold, priorities } = withKeys(input.config, 'qdThreshold', 'kvThreshold', 'priorities');
    const make = () => gaieLegacy({ queueDepthThreshold: qdThreshold, kvCacheUtilThreshold: kvThreshold });
    if (isError(input.expectError)) return expectConfigError(make, input.config, input.expectError);
    const policy = accepted(make);
    if (input.saturation !== undefined) {
      const isFull = refusalBy(policy, -1, viewOf(input.instances ?? [])) !== undefined;
      expect(isFull).toBe(input.saturation >= 1);
    }
    expectCases(input, policy, priorities);
  },
);

interface Budgets {
  config: { budgets: Readonly<Record<string, number>>; totalCapacity: number };
  steps?: readonly { op: string; tenant: string; over?: boolean }[];
  expectError?: ExpectedError;
}

/** With the reference's counting. `start` is work that no budget limits; `check` asks for work that one may. */
const tenantBudgetRunner = flatRunner<Budgets>(['config', 'steps', 'expectError'], (vector) => {
  const { config, steps = [], expectError } = vector.input;
  const { budgets, totalCapacity } = withKeys(config, 'budgets', 'totalCapacity');
  const make = () => tenantBudgets({ budgets, capacity: totalCapacity, counting: 'blis' });
  if (isError(expectError)) return expectConfigError(make, config, expectError);
  const policy = accepted(make);
  const view = admissionView();
  for (const step of steps) {
    const { op, tenant, over } = withKeys(step, 'op', 'tenant', 'over');
    if (op === 'start') expect(refusalBy(policy, 0, view, tenant)).toBeUndefined();
    else if (op === 'complete') policy.released?.({}, { fairnessId: tenant, priority: 0 }, undefined);
    else if (op === 'check') {
      const isOver = refusalBy(policy, -1, view, tenant) !== undefined;
      expect(isOver).toBe(over);
      if (!isOver) policy.released?.({}, { fairnessId: tenant, priority: -1 }, undefined);
    } else throw unknownWord(vector, op);
  }
});

interface Decorated {
  overBudget: boolean;
  class: string;
  innerAdmits: boolean;
  admit: boolean;
  reason: string;
  innerCalled: boolean;
}

const decoratorRunner = flatRunner<{ cases: readonly Decorated[] }>(['cases'], ({ input }) => {
  const classes = sloClasses();
  for (const entry of input.cases) {
    const keys = ['overBudget', 'class', 'innerAdmits', 'admit', 'reason', 'innerCalled'] as const;
    const { overBudget, class: sloClass, innerAdmits, admit, reason, innerCalled } = withKeys(entry, ...keys);
    let calls = 0;
    const inner: AdmissionPolicy = {
      type: 'inner',
      admit: () => {
        calls++;
        return innerAdmits ? 'admit' : { reason: 'inner-no' };
      },
    };
    const policy = tenantBudgets({ budgets: { tenant: overBudget ? 0 : 1 }, capacity: 10 }, inner);
    const refusal = refusalBy(policy, classes.priorityOf(sloClass), admissionView());
    expect(refusal === undefined).toBe(admit);
    expect(calls > 0).toBe(innerCalled);
    // Admission has no reason here, and the budget's own is worded anew.
    if (reason === 'inner-no') expect(refusal).toEqual({ reason, policy: 'inner' });
  }
});

interface Probability {
  config: { power: number; k: number };
  cases: readonly { saturation: number; rejectProbability: number }[];
}

const probabilityRunner = flatRunner<Probability>(['config', 'cases'], ({ input, tolerance = 1e-9 }) => {
  const { power, k } = withKeys(input.config, 'power', 'k');
  for (const entry of input.cases) {
    const { saturation, rejectProbability } = withKeys(entry, 'saturation', 'rejectProbability');
    const refuses = (random: number): boolean => {
      // With a threshold of 1 the cache's share in use is the saturation.
      const policy = probabilisticAdmitter({ power, k, kvCacheUtilThreshold: 1, random: () => random });
      const view = admissionView([{ kv: saturation }]);
      expect(refusalBy(policy, 0, view)).toBeUndefined();
      return refusalBy(policy, -1, view) !== undefined;
    };
    if (rejectProbability > 0) expect(refuses(Math.min(rejectProbability - tolerance, 1 - 2 ** -53))).toBe(true);
    if (rejectProbability < 1) expect(refuses(rejectProbability + tolerance)).toBe(false);
  }
});

interface Legacy {
  priority: number;
  saturation: number;
  endpoints: number;
}

interface Random {
  priority: number;
  endpoints: readonly { metrics: { waiting?: number; kv?: number; ageMs?: number } | null }[];
  random: number;
  params?: object;
}

export const admissionPolicyRunners: Runners = {
  'token-bucket': tokenBucketRunner,
  'slo-priority': sloPriorityRunner,
  'tier-shed': tierShedRunner,
  'gaie-legacy': gaieLegacyRunner,
  'tenant-budget': tenantBudgetRunner,
  'tenant-budget-decorator': decoratorRunner,
  'probabilistic-admitter': probabilityRunner,

  'admission.legacy': runner<Legacy, { admitted: boolean; status?: number | null }>(
    { input: ['priority', 'saturation', 'endpoints'], expect: ['admitted', 'status'] },
    ({ input: { priority, saturation, endpoints }, expect: expected }) => {
      const view = admissionView(new Array(endpoints).fill({}), { saturation });
      const refusal = refusalBy(gaieLegacy(), priority, view);
      expect(refusal === undefined).toBe(expected.admitted);
      if (refusal === undefined) return;
      // What a cause becomes on the wire is the error contract's business; `saturated`, the default, is 429 in all of
      // them.
      expect(refusal.cause ?? 'saturated').toBe('saturated');
      expect(expected.status).toBe(429);
    },
  ),

  'admission.probabilistic': runner<Random, { admitted: boolean }>(
    { input: ['priority', 'endpoints', 'random', 'params'], expect: ['admitted'] },
    ({ input, expect: expected }) => {
      const endpoints = input.endpoints.map(({ metrics }): EndpointFigures => {
        // Reports do not grow stale for this policy.
        const { waiting, kv } = withKeys(metrics ?? {}, 'waiting', 'kv', 'ageMs');
        return {
          hasReported: metrics !== null,
          ...(waiting === undefined ? {} : { waiting }),
          ...(kv === undefined ? {} : { kv }),
        };
      });
      const policy = probabilisticAdmitter({ ...input.params, random: () => input.random });
      expect(refusalBy(policy, input.priority, admissionView(endpoints)) === undefined).toBe(expected.admitted);
    },
  ),
};
