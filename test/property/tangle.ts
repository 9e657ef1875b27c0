/**
 * Everything that may hold a request back, at once: quotas, sessions, breakers, limits that adapt, composites of them,
 * caps, and every policy of the package. Nothing here opens by time alone without a word to the controller, so that
 * what may go is known to it one `recheckIntervalMs` later at the latest.
 */

import { detectorFor } from '../../src/gate/parts.js';
import {
  affinity,
  aimdLatency,
  type BandOrderPolicy,
  type Constraint,
  capacityLedger,
  circuitBreaker,
  concurrencyDetector,
  deficitRoundRobin,
  type EndpointPicker,
  type EvictionOrdering,
  edf,
  type FairnessPolicy,
  fcfs,
  globalStrict,
  gradient2,
  hierarchical,
  largestFootprint,
  leastKvUsage,
  leastLoaded,
  leastProgress,
  leastService,
  maxOf,
  meanOf,
  type OrderingPolicy,
  powerOfTwoChoices,
  prefixOrder,
  priorityThenTime,
  programAware,
  quotaDetector,
  roundRobin,
  type SaturationDetector,
  sessionLimit,
  shortestFirst,
  shuffleSharded,
  sloDeadline,
  startTimeFairQueueing,
  utilizationDetector,
  vegas,
  virtualTokenCounter,
  weightedBands,
  withHysteresis,
} from '../../src/index.js';
import type { AdaptiveDetector, QuotaDetectorOptions, ServerAnswer } from '../../src/types/index.js';
import type { Dial } from '../support/flow.js';
import type { Random } from './random.js';

/** What the parts need of their world. */
export interface Tangle {
  readonly hasPool: boolean;
  /** Detectors may tell sessions apart. */
  readonly limitsSessions: boolean;
  nowMs(): number;
  /** A reading that the world turns now and then. */
  dial(isAnnouncing: boolean): Dial;
  /** The world reports latencies to it now and then. */
  adapts(detector: AdaptiveDetector): SaturationDetector;
}

/** How full the pool is, alone, or together with what judges single requests, as files have it. */
export function tangledDetector(random: Random, tangle: Tangle): SaturationDetector {
  const parts = [
    ...(random.chance(0.8) ? [tangledLoad(random, tangle)] : []),
    ...Array.from({ length: random.int(3) }, () => detectorFor(tangledConstraint(random, tangle))),
  ];
  const [first = detectorFor(tangledConstraint(random, tangle)), ...others] = parts;
  if (others.length === 0) return first;
  const compose = random.pick([maxOf, meanOf]);
  if (random.chance(0.3)) return compose(maxOf(...others), first);
  return compose(...(random.chance(0.5) ? [first, ...others] : [...others, first]));
}

function tangledLoad(random: Random, tangle: Tangle): SaturationDetector {
  const limits = {
    initialLimit: 1 + random.int(4),
    minLimit: 1,
    maxLimit: 6,
    windowMs: 20,
    minSamples: 1 + random.int(3),
  };
  switch (random.int(10)) {
    case 0:
    case 4:
    case 5:
      return tangle.dial(random.chance(0.4));
    case 1:
      return tangle.adapts(
        random.pick([
          () => vegas(limits),
          () => aimdLatency({ ...limits, targetMs: 50 }),
          () => gradient2({ ...limits, queueSize: 1 }),
        ])(),
      );
    case 2:
      return withHysteresis(tangledLoad(random, tangle), { closeAt: 1, openAt: random.pick([0.5, 1]) });
    case 3:
      // Its figures must not become stale, because then it opens by time alone.
      if (tangle.hasPool)
        return utilizationDetector({ queueDepthThreshold: 1 + random.int(4), metricsStalenessThreshold: 1e9 });
  }
  return concurrencyDetector({
    concurrencyMode: random.pick(['requests', 'tokens', 'hybrid']),
    maxConcurrency: 1 + random.int(5),
    maxTokenConcurrency: 5 + random.int(40),
    headroom: random.pick([0, 0.5]),
  });
}

/** What judges single requests. */
export function tangledConstraint(random: Random, tangle: Tangle): Constraint {
  const kind = random.int(tangle.limitsSessions ? 4 : 3);
  if (kind === 0) return quotaDetector(tangledQuotas(random, tangle));
  if (kind === 1)
    return circuitBreaker({
      window: 500,
      minCalls: 1 + random.int(2),
      slowCall: random.pick([undefined, 50]),
      openFor: random.pick([30, 400]),
      maxOpenFor: 1000,
      probes: 1 + random.int(2),
    });
  if (kind === 2)
    return capacityLedger({
      slots: 1 + random.int(4),
      ...(random.chance(0.5) ? { prefillTokens: 5 + random.int(40), unstarted: 1 + random.int(3) } : {}),
      ...(random.chance(0.5) ? { kvTokens: 50 + random.int(300), guaranteedFrom: random.int(3) - 1 } : {}),
      defaultOutputTokens: 1 + random.int(20),
      patience: random.pick([20, 500]),
    });
  return sessionLimit({
    maxSessions: 1 + random.int(4),
    ...(random.chance(0.3) ? { footprint: 10 + random.int(30) } : {}),
    inactivity: random.pick([80, 900]),
  });
}

function tangledQuotas(random: Random, { nowMs }: Tangle): QuotaDetectorOptions {
  const quotas = () =>
    Array.from({ length: 1 + random.int(2) }, () => ({
      unit: random.pick(['requests', 'inputTokens', 'outputTokens', 'tokens'] as const),
      limit: 3 + random.int(25),
      per: random.pick([100, 1000, 4000]),
      window: random.pick(['gcra', 'fixed', 'sliding'] as const),
    }));
  const groups = [
    ...(random.chance(0.5) ? [{ by: 'pool' as const, learn: random.chance(0.3), quotas: quotas() }] : []),
    ...(random.chance(0.5) ? [{ by: 'endpoint' as const, perModel: random.chance(0.3), quotas: quotas() }] : []),
  ];
  return {
    ...(groups.length > 0 ? { groups } : {}),
    output: random.pick(['max-tokens', 'average']),
    defaultOutputTokens: 3,
    rejectInfeasible: random.chance(0.5),
    travel: random.pick([0, 20]),
    cooldown: random.pick([30, 300]),
    maxCooldown: 1000,
    random: () => 0.5,
    wallClock: nowMs,
  };
}

export function tangledFairness(random: Random): FairnessPolicy {
  const cost = random.pick(['tokens', 'requests'] as const);
  const make = random.pick<() => FairnessPolicy>([
    globalStrict,
    roundRobin,
    roundRobin,
    () => virtualTokenCounter({ cost }),
    () => startTimeFairQueueing({ cost }),
    () => leastService({ cost }),
    () => deficitRoundRobin({ cost, quantum: random.pick([1, 10]) }),
    () => hierarchical({ cost }),
    () => shuffleSharded({ cost, queues: 4, handSize: 2 }),
    programAware,
    () => programAware({ strategy: 'turn-priority', turnPriorityInactivitySeconds: 1 }),
  ]);
  return make();
}

export function tangledOrdering(random: Random): OrderingPolicy {
  const make = random.pick<() => OrderingPolicy>([
    fcfs,
    edf,
    sloDeadline,
    () => edf({ dropInfeasible: true, firstTokenAfter: random.pick([5, 100]), maxWait: '1s' }),
    () => prefixOrder({ overtakings: random.int(4), lookahead: 1 + random.int(8) }),
    () => prefixOrder({ by: 'fairnessId' }),
    shortestFirst,
  ]);
  return make();
}

export function tangledBandOrder(random: Random): 'strict' | 'fifo' | 'aging' | BandOrderPolicy {
  const weighted = (): BandOrderPolicy => weightedBands(random.chance(0.5) ? {} : { weights: { '9': 3, '0': 2 } });
  return random.pick(['strict', 'strict', 'fifo', 'aging', weighted()] as const);
}

export function tangledPicker(random: Random): EndpointPicker {
  return random.pick([
    leastLoaded,
    leastKvUsage,
    () => affinity({ loadCap: 1.25 }),
    () => powerOfTwoChoices({ seed: random.int(100) }),
  ])();
}

export function tangledVictims(random: Random): EvictionOrdering {
  return random.pick([priorityThenTime, leastProgress, largestFootprint])();
}

export function tangledAnswer(random: Random): ServerAnswer {
  const remaining = String(random.int(4));
  const headers = random.pick<Record<string, string>>([
    {},
    {},
    { 'retry-after-ms': String(random.int(400)) },
    {
      'x-ratelimit-limit-requests': '5',
      'x-ratelimit-remaining-requests': remaining,
      'x-ratelimit-reset-requests': '300ms',
    },
  ]);
  return { status: random.pick([200, 200, 400, 429, 429, 500, 503, 529]), headers };
}
