/** Ceilings and readings as BLIS and Dynamo's documents tell them, and Dynamo's answers to what is shed. */
import { expect } from 'vitest';
import { dynamoBody, dynamoContract, dynamoOverloadStatus, toHttpResponse } from '../../../src/adapters/http/index.js';
import { openingPeriod, reflectiveCeiling } from '../../../src/gate/ceilings/soft-reflective-ceiling.js';
import {
  defaultRegistry,
  EndpointPool,
  FlowConfigError,
  FlowController,
  interpolatedUsageLimit,
  type SaturationDetector,
} from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { dropFrom } from '../support/reference-terms.js';
import { accepted, expectNumber, expectNumbers, type Runners, runner } from '../support/runner.js';

/** Keys of the vector files that only describe a vector. */
const about = ['id', 'component', 'source', 'note', 'profile', 'defect', 'tolerance'] as const;
type About = { readonly [K in (typeof about)[number]]?: string };

interface Instance {
  queueDepth: number;
  kvUtil: number;
  inFlight: number;
}

interface Reading extends About {
  config: { detector: string; queueDepthThreshold?: number; kvThreshold?: number; maxConcurrency?: number };
  instances?: readonly Instance[];
  saturation?: number;
  /** An unknown name, or a parameter out of range. */
  expectError?: boolean | string;
}

function detectorOf({
  detector,
  queueDepthThreshold,
  kvThreshold,
  maxConcurrency,
}: Reading['config']): SaturationDetector {
  if (detector === 'never' || detector === '') return { type: 'never', saturation: () => 0 };
  const parameters =
    detector === 'concurrency' ? { maxConcurrency } : { queueDepthThreshold, kvCacheUtilThreshold: kvThreshold };
  return defaultRegistry().create(`${detector}-detector`, parameters) as SaturationDetector;
}

/** A pool that reports, and whose requests in flight all passed one open gate. */
function poolOf(instances: readonly Instance[]): EndpointPool {
  const clock = new ManualClock();
  const pool = new EndpointPool();
  const flow = new FlowController({ saturationDetector: () => 0, pool, clock });
  instances.forEach(({ queueDepth, kvUtil, inFlight }, index) => {
    pool.add(`instance-${index}`);
    for (let request = 0; request < inFlight; request++) {
      const outcome = flow.tryEnqueue({ byteSize: 0 }, { fairnessId: 'flow' });
      if (outcome?.type !== 'Dispatched') throw new Error(`expected a dispatch; got ${outcome?.type}`);
      outcome.lease.bind(`instance-${index}`);
    }
    pool.report(`instance-${index}`, { waitingQueueSize: queueDepth, runningRequests: inFlight, kvCacheUsage: kvUtil });
  });
  return pool;
}

export const ceilingRunners: Runners = {
  'saturation-detector': runner<Reading, object>(
    { input: [...about, 'config', 'instances', 'saturation', 'expectError'], expect: [] },
    ({ input: { config, instances = [], saturation, expectError }, tolerance }) => {
      if (expectError !== undefined && expectError !== false) expect(() => detectorOf(config)).toThrow(FlowConfigError);
      else
        expectNumber(
          accepted(() => detectorOf(config)).saturation(poolOf(instances), 0),
          saturation ?? Number.NaN,
          tolerance,
        );
    },
  ),

  'band-ceilings': runner<
    About & { config: { bandCount: number; usageLimitThreshold: number }; ceilings: readonly number[] },
    object
  >({ input: [...about, 'config', 'ceilings'], expect: [] }, ({ input: { config, ceilings }, tolerance }) => {
    const priorities = Array.from({ length: config.bandCount }, (_, rank) => -rank);
    const found = priorities.map(() => 1);
    interpolatedUsageLimit({ threshold: config.usageLimitThreshold }).computeLimits(0.5, priorities, found);
    expectNumbers(found, ceilings, tolerance);
  }),

  'soft-reflective-ceiling': runner<
    About & {
      cases: readonly {
        saturation: number;
        bandCount: number;
        rawCeilings: readonly number[];
        period: number | null;
      }[];
    },
    object
  >({ input: [...about, 'cases'], expect: [] }, ({ input }) => {
    for (const { saturation, bandCount, rawCeilings, period } of input.cases) {
      const found = rawCeilings.map((_, rank) => reflectiveCeiling(rank, saturation, bandCount));
      expectNumbers(found, rawCeilings, 1e-9);
      const isGated = found.some((ceiling) => saturation >= ceiling);
      expect(isGated ? openingPeriod(saturation) : null).toBe(period);
    }
  }),

  'http-rejection': runner<
    About & { cases: readonly { profile: string; status: number; body: object }[]; retryAfterHeader: null },
    { profiles: readonly string[]; retryAfterHeader: string | null }
  >(
    { input: [...about, 'cases', 'retryAfterHeader'], expect: ['profiles', 'retryAfterHeader'] },
    ({ input, expect: expected }) => {
      const { profiles = input.cases.map(({ profile }) => profile), retryAfterHeader = input.retryAfterHeader } =
        expected;
      const drop = dropFrom('RejectedCapacity', []);
      const matching = input.cases.filter(({ status, body }) => {
        const answer = toHttpResponse(drop, { contract: dynamoContract(status), body: dynamoBody, random: () => 0 });
        expect(answer.headers['retry-after'] ?? null).toBe(retryAfterHeader);
        return answer.status === status && JSON.stringify(JSON.parse(answer.body)) === JSON.stringify(body);
      });
      expect(matching.map(({ profile }) => profile)).toEqual(profiles);
    },
  ),

  'overload-status-resolution': runner<About & { cases: readonly { env: string | null; status: number }[] }, object>(
    { input: [...about, 'cases'], expect: [] },
    ({ input }) => {
      const drop = dropFrom('RejectedCapacity', []);
      for (const { env, status } of input.cases) {
        expect(toHttpResponse(drop, { contract: dynamoContract(dynamoOverloadStatus(env ?? undefined)) }).status).toBe(
          status,
        );
      }
    },
  ),
};
