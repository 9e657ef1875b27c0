/** The gate's readings: detectors from the plugin registry, on the endpoints of the vectors. */
import { expect } from 'vitest';
import { silentParameters } from '../../../src/config/flow-control-section.js';
import type { ConcurrencyDetectorOptions } from '../../../src/gate/detectors/concurrency-detector.js';
import {
  concurrencyDetector,
  defaultRegistry,
  EndpointPool,
  type EndpointView,
  FlowController,
  type Lease,
  type PoolView,
  type SaturationDetector,
} from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { expectNumber, expectNumbers, type Runners, runner, unknownWord } from '../support/runner.js';
import type { Vector } from '../support/vectors.js';

interface VectorEndpoint {
  readonly metrics?: {
    readonly waiting?: number;
    readonly running?: number;
    readonly kv?: number;
    readonly ageMs?: number;
  } | null;
  readonly load?: { readonly requests?: number; readonly tokens?: number } | null;
  /** Null: not known yet, and so without load. */
  readonly metadata?: null;
}

type VectorEndpoints = readonly (VectorEndpoint | null)[];

const nowMs = 1e9;

/** A null entry is no endpoint: a pool here cannot hold one. The ID is the index. */
function endpointsOf(endpoints: VectorEndpoints): EndpointView[] {
  return endpoints.flatMap((endpoint, index) => (endpoint === null ? [] : [endpointOf(endpoint, String(index))]));
}

function endpointOf({ metrics, load }: VectorEndpoint, id: string): EndpointView {
  const { waiting = 0, running = 0, kv = 0, ageMs = 0 } = metrics ?? {};
  return {
    id,
    labels: {},
    weight: 1,
    overloadedUntilMs: 0,
    metrics: metrics
      ? { waitingQueueSize: waiting, runningRequests: running, kvCacheUsage: kv, sampledAtMs: nowMs - ageMs }
      : undefined,
    inFlightRequests: load?.requests ?? 0,
    inFlightTokens: load?.tokens ?? 0,
    unsampledRequests: 0,
    dispatchedRequests: 0,
  };
}

function poolOf(endpoints: VectorEndpoints): PoolView {
  const views = endpointsOf(endpoints);
  const sum = (figure: (view: EndpointView) => number): number =>
    views.reduce((total, view) => total + figure(view), 0);
  return {
    endpoints: views,
    inFlightRequests: sum((view) => view.inFlightRequests),
    inFlightTokens: sum((view) => view.inFlightTokens),
  };
}

/** As a file of llm-d makes it, which says of a parameter what it leaves out. */
function detectorOf(type: string, params: unknown): SaturationDetector {
  return defaultRegistry().create(type, {
    ...silentParameters['llm-d'][type],
    ...Object(params),
  }) as SaturationDetector;
}

interface Reading {
  type: string;
  params?: unknown;
  endpoints: VectorEndpoints;
}

/**
 * A controller whose gate is always open: in the reference load is counted after the gate, whatever the gate thinks.
 */
class CountedPool {
  readonly pool: EndpointPool = new EndpointPool();
  private readonly clock = new ManualClock();
  private readonly flow = new FlowController({ saturationDetector: () => 0, pool: this.pool, clock: this.clock });

  constructor(endpoints: number) {
    for (let index = 0; index < endpoints; index++) this.pool.add(`endpoint-${index}`);
  }

  dispatch(tokens: number): Lease {
    const outcome = this.flow.tryEnqueue({ byteSize: 0, tokens }, { fairnessId: 'flow' });
    if (outcome?.type !== 'Dispatched') throw new Error(`expected a dispatch; got ${outcome?.type}`);
    return outcome.lease;
  }

  read(detector: SaturationDetector): number {
    return detector.saturation(this.pool, this.clock.now());
  }
}

interface Lifecycle {
  type: string;
  params?: unknown;
  requestTokens?: number;
  steps: readonly string[];
}

function playLifecycle(vector: Vector<Lifecycle>): number[] {
  const { type, params, requestTokens = 0, steps } = vector.input;
  const detector = detectorOf(type, params);
  const counted = new CountedPool(1);
  const leases: Lease[] = [];
  const reads: number[] = [];
  for (const step of steps) {
    if (step === 'read') reads.push(counted.read(detector));
    else if (step === 'preRequest') leases.push(counted.dispatch(requestTokens));
    else if (step === 'endOfStream') leases.shift()?.release();
    else if (step === 'deleteEndpoint') {
      // What is read afterwards is an endpoint of that name, without the counters of the deleted one.
      counted.pool.remove('endpoint-0');
      counted.pool.add('endpoint-0');
    } else throw unknownWord(vector, step);
  }
  return reads;
}

interface Reservations {
  maxConcurrency: number;
  endpoints: number;
  steps: readonly string[];
}

interface ScrapedEndpoint {
  readonly running: number;
  readonly waiting: number;
  readonly stale: boolean;
  readonly candidate: boolean;
}

/** `detector.scraped`: its staleness threshold is longer than the other detectors' metrics are old. */
const staleMs = 60_000;

/** What was dispatched of late went to the first endpoint. One that is no candidate is draining. */
function scrapedPool(endpoints: readonly ScrapedEndpoint[], ownRecent: number): PoolView {
  const ageOf = ({ stale }: ScrapedEndpoint): number => (stale ? staleMs : 0);
  const metrics = endpoints.map((each) => {
    const { running, waiting } = each;
    return { metrics: { running, waiting, ageMs: ageOf(each) } };
  });
  const pool = poolOf(metrics);
  const own = pool.endpoints.map((endpoint, index) => ({
    ...endpoint,
    unsampledRequests: index === 0 ? ownRecent : 0,
    state: endpoints[index]?.candidate === false ? ('draining' as const) : undefined,
  }));
  return { ...pool, endpoints: own };
}

export const detectorRunners: Runners = {
  'detector.scraped': runner<
    { endpoints: readonly ScrapedEndpoint[]; ownRecent: number; maxConcurrency: number },
    { saturation: number }
  >(
    { input: ['endpoints', 'ownRecent', 'maxConcurrency'], expect: ['saturation'] },
    ({ input, expect: expected, tolerance }) => {
      const detector = detectorOf('scraped-concurrency-detector', { maxConcurrency: input.maxConcurrency });
      expectNumber(
        detector.saturation(scrapedPool(input.endpoints, input.ownRecent), nowMs),
        expected.saturation,
        tolerance ?? 1e-9,
      );
    },
  ),

  'detector.saturation': runner<Reading, { saturation: number }>(
    { input: ['type', 'params', 'endpoints'], expect: ['saturation'] },
    ({ input, expect: expected, tolerance }) => {
      const saturation = detectorOf(input.type, input.params).saturation(poolOf(input.endpoints), nowMs);
      expectNumber(saturation, expected.saturation, tolerance);
    },
  ),

  /**
   * Where the reference's utilization filter keeps none, it keeps all. Here the controller does that, with headroom
   * 'preferred'.
   */
  'detector.filter': runner<Reading, { keptIndexes: readonly number[] }>(
    { input: ['type', 'params', 'endpoints'], expect: ['keptIndexes'] },
    ({ input, expect: expected }) => {
      const endpoints = endpointsOf(input.endpoints);
      const kept = detectorOf(input.type, input.params).filter?.(endpoints, nowMs);
      const isOpen = input.type === 'utilization-detector' && kept?.length === 0;
      expect((isOpen ? endpoints : kept)?.map(({ id }) => Number(id))).toEqual(expected.keptIndexes);
    },
  ),

  'detector.staleGauge': runner<
    { type: string; params?: unknown; steps: readonly { endpoints: VectorEndpoints }[] },
    { gaugeAfterEachStep: readonly number[] }
  >({ input: ['type', 'params', 'steps'], expect: ['gaugeAfterEachStep'] }, ({ input, expect: expected }) => {
    const detector = detectorOf(input.type, input.params);
    const gauge = input.steps.map(({ endpoints }) => {
      detector.saturation(poolOf(endpoints), nowMs);
      return 'staleEndpoints' in detector ? detector.staleEndpoints : undefined;
    });
    expect(gauge).toEqual(expected.gaugeAfterEachStep);
  }),

  /** Null: stale, or without metrics. */
  'detector.stalenessPolicy': runner<
    { stalenessPolicy: string; endpointScores: readonly (number | null)[]; legend: string },
    { saturation: number }
  >(
    { input: ['stalenessPolicy', 'endpointScores', 'legend'], expect: ['saturation'] },
    ({ input: { stalenessPolicy, endpointScores }, expect: expected, tolerance }) => {
      const detector = detectorOf('utilization-detector', { stalenessPolicy, kvCacheUtilThreshold: 1 });
      const endpoints = endpointScores.map((kv) => ({ metrics: kv === null ? null : { kv } }));
      expectNumber(detector.saturation(poolOf(endpoints), nowMs), expected.saturation, tolerance);
    },
  ),

  'detector.lifecycle': runner<Lifecycle, { reads: readonly number[] }>(
    { input: ['type', 'params', 'requestTokens', 'steps'], expect: ['reads'] },
    (vector) => expectNumbers(playLifecycle(vector), vector.expect.reads, vector.tolerance ?? 1e-9),
  ),

  /** A dispatch is its own reservation: the lease takes the seat in the step that decides. */
  'detector.reservation': runner<
    Reservations,
    { reads: readonly number[]; reserveResults: readonly boolean[]; releaseResults: readonly boolean[] }
  >(
    { input: ['maxConcurrency', 'endpoints', 'steps'], expect: ['reads', 'reserveResults', 'releaseResults'] },
    (vector) => {
      const { maxConcurrency, endpoints, steps } = vector.input;
      const detector = concurrencyDetector({ maxConcurrency } satisfies ConcurrencyDetectorOptions);
      const counted = new CountedPool(endpoints);
      const leases = new Map<string, Lease>();
      const found = { reads: [] as number[], reserveResults: [] as boolean[], releaseResults: [] as boolean[] };
      for (const step of steps) {
        const [verb, id = ''] = step.split(' ');
        const lease = leases.get(id);
        if (verb === 'read') found.reads.push(counted.read(detector));
        else if (verb === 'reserve') {
          // A request that holds a lease does not ask for another.
          found.reserveResults.push(lease === undefined);
          if (lease === undefined) leases.set(id, counted.dispatch(0));
        } else if (verb === 'release') {
          found.releaseResults.push(lease?.isReleased === false);
          lease?.release();
        } else throw unknownWord(vector, step);
      }
      expect(found).toEqual(vector.expect);
    },
  ),
};
