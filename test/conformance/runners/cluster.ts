/** Whole gateways of BLIS: requests arrive, nothing completes, and the time is up. */
import { expect } from 'vitest';
import {
  type AdmissionPolicy,
  concurrencyDetector,
  defaultRegistry,
  type SaturationDetector,
  tenantBudgets,
} from '../../../src/index.js';
import { flatRunner, withKeys } from '../support/flat-vectors.js';
import { type GatewayConfig, GatewayPlay, gatewayKeys, type Surroundings } from '../support/gateway-play.js';
import { type Runners, unknownWord } from '../support/runner.js';
import type { Vector } from '../support/vectors.js';

interface Request {
  id: string;
  arrivalUs: number;
  class: string;
  tenant: string;
  sloTargetUs?: number;
  inputTokens: number;
  outputTokens: number;
}

interface Config extends Omit<GatewayConfig, 'maxDepth'> {
  instances: number;
  detector: string;
  maxConcurrency: number;
  horizonUs: number;
  maxQueueDepth?: number;
  requestTTLUs?: number;
  inFlightEviction?: boolean;
  /** False: nothing waits, `admission` decides. */
  flowControl?: boolean;
  admission?: string;
  tenantBudgets?: Readonly<Record<string, number>>;
  /** Requests that one instance runs at a time. */
  maxNumSeqs?: number;
}

const configKeys = [
  ...gatewayKeys.filter((key) => key !== 'maxDepth'),
  'instances',
  'detector',
  'maxConcurrency',
  'horizonUs',
  'maxQueueDepth',
  'requestTTLUs',
  'inFlightEviction',
  'flowControl',
  'admission',
  'tenantBudgets',
  'maxNumSeqs',
] as const;

interface Result {
  /** When each request left the gateway. */
  dispatchUs: Readonly<Record<string, number>>;
  queued: number;
  gatewayEvicted: number;
  gatewayExpired: number;
  gatewayShed: number;
  gatewayRejected: number;
  admissionRejected: number;
  /** By class; what found a full queue does not count. */
  shedByTier: Readonly<Record<string, number>>;
}

const resultKeys = [
  'dispatchUs',
  'queued',
  'gatewayEvicted',
  'gatewayExpired',
  'gatewayShed',
  'gatewayRejected',
  'admissionRejected',
  'shedByTier',
] as const;

interface Scenario {
  config: Config;
  requests: readonly Request[];
}

function detectorOf(vector: Vector<Scenario>): SaturationDetector {
  const { detector, maxConcurrency } = vector.input.config;
  if (detector === 'never') return { type: 'never', saturation: () => 0 };
  if (detector !== 'concurrency') throw unknownWord(vector, detector);
  return concurrencyDetector({ maxConcurrency });
}

function admissionOf({
  flowControl,
  admission,
  tenantBudgets: budgets,
  instances,
  maxNumSeqs = 1,
}: Config): AdmissionPolicy | undefined {
  const inner =
    flowControl === false ? (defaultRegistry().create(admission || 'always-admit') as AdmissionPolicy) : undefined;
  return budgets === undefined
    ? inner
    : tenantBudgets({ budgets, capacity: instances * maxNumSeqs, counting: 'blis' }, inner);
}

function playCluster(vector: Vector<Scenario>): Result {
  const { requests } = vector.input;
  const config = withKeys(vector.input.config, ...configKeys);
  const { maxQueueDepth, instances, horizonUs, requestTTLUs, inFlightEviction, flowControl } = config;
  const surroundings: Surroundings = {
    instances,
    detector: detectorOf(vector),
    mode: flowControl === false ? 'admission' : 'queue',
    admission: admissionOf(config),
    inFlightEviction: inFlightEviction === true,
    requestTtlUs: requestTTLUs ?? 0,
  };
  const play = new GatewayPlay(
    { ...config, maxDepth: maxQueueDepth ?? 0 },
    [...new Set(requests.map((each) => each.class))],
    surroundings,
  );
  const { rig } = play;
  const classOf = new Map(requests.map((each) => [each.id, each.class]));
  const dispatchUs: Record<string, number> = {};
  const shedByTier: Record<string, number> = {};
  const shed = (id: string): void => {
    const tier = classOf.get(id) || 'standard';
    shedByTier[tier] = (shedByTier[tier] ?? 0) + 1;
  };
  rig.flow.on('dispatched', ({ item }) => {
    dispatchUs[item.request.id] = rig.nowMs;
  });
  rig.flow.on('evicted', ({ lease }) => {
    shed(rig.dispatched.find((ticket) => ticket.lease === lease)?.id ?? '');
    lease.release();
  });
  for (const request of [...requests].sort((a, b) => a.arrivalUs - b.arrivalUs)) {
    rig.advanceTo(request.arrivalUs);
    play.enqueue(withKeys(request, 'id', 'arrivalUs', 'class', 'tenant', 'sloTargetUs', 'inputTokens', 'outputTokens'));
  }
  rig.advanceTo(horizonUs);
  const foundFull = rig.dropped.filter(({ drop }) => drop?.limit !== undefined);
  for (const ticket of rig.dropped) if (!foundFull.includes(ticket)) shed(ticket.id);
  const { waiting, evictedInFlight, outcomes } = rig.flow.stats();
  return {
    dispatchUs,
    queued: waiting,
    gatewayEvicted: evictedInFlight,
    gatewayExpired: outcomes.EvictedTTL,
    gatewayShed: play.displaced.length,
    gatewayRejected: foundFull.length,
    admissionRejected: rig.dropped.filter(({ drop }) => drop?.reason === 'refused').length,
    shedByTier,
  };
}

export const clusterRunners: Runners = {
  'cluster-scenario': flatRunner<Scenario, Partial<Result>>(
    ['config', 'requests'],
    (vector) => {
      const found = playCluster(vector);
      for (const key of resultKeys)
        if (vector.expect[key] !== undefined) expect(found[key], key).toEqual(vector.expect[key]);
    },
    resultKeys,
  ),
};
