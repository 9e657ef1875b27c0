/** Figures of BLIS's reports, and Dynamo's advice for clients. */
import { expect } from 'vitest';
import { dynamoBackoff, retryDelayMs } from '../../../src/client/index.js';
import { compositeStability } from '../../support/blis/composite-stability.js';
import { percentile } from '../../support/blis/percentile.js';
import { type CompletedRequest, type Latencies, sloAttainment } from '../../support/blis/slo-attainment.js';
import type { Stability } from '../../support/blis/stability.js';
import { thresholdStability } from '../../support/blis/threshold-stability.js';
import { flatRunner, withKeys } from '../support/flat-vectors.js';
import { expectNumber, type Runners } from '../support/runner.js';

interface Percentiles {
  cases: readonly { values: readonly number[]; p: number; result: number }[];
}

interface WireTargets {
  readonly ttft_ms?: number;
  readonly itl_ms?: number;
  readonly e2e_ms?: number;
}

interface Attainment {
  config: { targets: Readonly<Record<string, WireTargets>> };
  injectedByClass: Readonly<Record<string, number>>;
  results: readonly CompletedRequest[];
  overall: number;
  perClass: Readonly<Record<string, { good: number; injected: number; byDim: Readonly<Record<string, number>> }>>;
}

/** `confidence` is not told by every vector. */
type Verdict = Omit<Stability, 'confidence'> & Partial<Pick<Stability, 'confidence'>>;

interface Composite {
  cases: readonly (Verdict & { arrivals: number; completionLatenciesMs: readonly number[] })[];
}

interface Threshold {
  cases: readonly (Verdict & { thresholdMs: number; latenciesMs: readonly number[] })[];
}

interface ClientBackoff {
  cases: readonly { attempt: number; u: number; delaySeconds: number }[];
}

const figureTolerance = 1e-9;

function targetsOf(wire: WireTargets): Latencies {
  const { ttft_ms, itl_ms, e2e_ms } = withKeys(wire, 'ttft_ms', 'itl_ms', 'e2e_ms');
  return { ttftMs: ttft_ms, itlMs: itl_ms, e2eMs: e2e_ms };
}

function expectVerdict(actual: Stability, { level, score, confidence }: Verdict, tolerance = figureTolerance): void {
  expect(actual.level).toBe(level);
  expectNumber(actual.score, score, tolerance);
  if (confidence !== undefined) expectNumber(actual.confidence, confidence, tolerance);
}

export const reportRunners: Runners = {
  percentile: flatRunner<Percentiles>(['cases'], ({ input, tolerance = figureTolerance }) => {
    for (const entry of input.cases) {
      const { values, p, result } = withKeys(entry, 'values', 'p', 'result');
      expectNumber(percentile(values, p), result, tolerance);
    }
  }),

  'slo-attainment': flatRunner<Attainment>(
    ['config', 'injectedByClass', 'results', 'overall', 'perClass'],
    ({ input, tolerance = figureTolerance }) => {
      const { targets } = withKeys(input.config, 'targets');
      const attainment = sloAttainment({
        targets: Object.fromEntries(Object.entries(targets).map(([name, wire]) => [name, targetsOf(wire)])),
        arrivals: input.injectedByClass,
        completed: input.results.map((request) => withKeys(request, 'class', 'ttftMs', 'itlMs', 'e2eMs')),
      });
      expectNumber(attainment.overall, input.overall, tolerance);
      expect(Object.keys(attainment.perClass).sort()).toEqual(Object.keys(input.perClass).sort());
      for (const [name, expected] of Object.entries(input.perClass)) {
        const { good, injected, byDim } = withKeys(expected, 'good', 'injected', 'byDim');
        expect(attainment.perClass[name]).toMatchObject({ good, arrivals: injected, byDimension: byDim });
        expect(Object.keys(attainment.perClass[name]?.byDimension ?? {}).sort()).toEqual(Object.keys(byDim).sort());
      }
    },
  ),

  'composite-detector': flatRunner<Composite>(['cases'], ({ input, tolerance }) => {
    for (const entry of input.cases) {
      const { arrivals, completionLatenciesMs, ...verdict } = withKeys(
        entry,
        'arrivals',
        'completionLatenciesMs',
        'level',
        'score',
        'confidence',
      );
      expectVerdict(compositeStability({ arrivals, completionLatenciesMs }), verdict, tolerance);
    }
  }),

  /** BLIS writes 0 for its default threshold; here the option is left out. */
  'threshold-detector': flatRunner<Threshold>(['cases'], ({ input, tolerance }) => {
    for (const entry of input.cases) {
      const { thresholdMs, latenciesMs, ...verdict } = withKeys(
        entry,
        'thresholdMs',
        'latenciesMs',
        'level',
        'score',
        'confidence',
      );
      expectVerdict(
        thresholdStability(latenciesMs, { thresholdMs: thresholdMs === 0 ? undefined : thresholdMs }),
        verdict,
        tolerance,
      );
    }
  }),

  /** Dynamo sends no Retry-After: the back-off is the whole pause. */
  'client-backoff': flatRunner<ClientBackoff>(['cases'], ({ input, tolerance = figureTolerance }) => {
    for (const entry of input.cases) {
      const { attempt, u, delaySeconds } = withKeys(entry, 'attempt', 'u', 'delaySeconds');
      const delayMs = retryDelayMs({ status: 503, headers: {} }, attempt, {
        rejected: dynamoBackoff(),
        random: () => u,
      });
      expectNumber((delayMs ?? Number.NaN) / 1000, delaySeconds, tolerance);
    }
  }),
};
