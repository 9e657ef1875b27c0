/** The stage of a whole scenario and the requests that come to it, from any mix of the keys that vectors use. */
import { expect } from 'vitest';
import {
  defaultRegistry,
  type FairnessPolicy,
  type OrderingPolicy,
  type SaturationDetector,
  staticUsageLimit,
} from '../../../src/index.js';
import { Rig, type Ticket } from './rig.js';

interface Arrival {
  readonly id: string;
  readonly priority?: number | undefined;
  readonly flow?: string | undefined;
  readonly sloMs?: number | undefined;
  readonly ttlMs?: number | undefined;
  readonly bytes?: number | undefined;
}

interface Stage {
  bands?: readonly number[];
  fairness?: string;
  ordering?: string;
  detector?: { readonly type: string; readonly params?: object };
  usageLimit?: number;
  maxBytes?: number;
  maxRequests?: number;
  globalMaxBytes?: number;
  globalMaxRequests?: number;
  bandMaxBytes?: number;
  bandMaxRequests?: number;
  defaultTtlMs?: number;
  noEndpointTtlMs?: number;
  endpoints?: number;
  /** Requests that run already. */
  inFlight?: number;
}

interface Traffic {
  /** A pair is a name and a priority, or a target where targets decide; `requests` may hold such pairs too. */
  arrivals?: readonly (Arrival | readonly [id: string, figure: number])[];
  flows?: readonly string[];
  perFlow?: number;
  sizes?: readonly number[];
  queued?: number;
  requests?: number | readonly (Arrival | readonly [id: string, figure: number])[];
  /** One more; the only one when nothing else is named. */
  request?: Omit<Arrival, 'id'>;
  /** How long callers wait at most. */
  callerTimeoutMs?: number;
}

interface Course {
  /** Requests that run at a time once the gate opens. */
  concurrency?: number;
  cancelWhileQueued?: boolean;
  scaleUpAtMs?: number;
  stop?: boolean;
  then?: string;
}

export interface Scenario extends Stage, Traffic, Course {}

const limitKeys = [
  'maxBytes',
  'maxRequests',
  'globalMaxBytes',
  'globalMaxRequests',
  'bandMaxBytes',
  'bandMaxRequests',
] as const;
const stageKeys = ['bands', 'fairness', 'ordering', 'detector', 'usageLimit', 'endpoints', 'inFlight'] as const;
const ttlKeys = ['defaultTtlMs', 'noEndpointTtlMs', 'callerTimeoutMs'] as const;
const trafficKeys = ['arrivals', 'flows', 'perFlow', 'sizes', 'queued', 'requests', 'request'] as const;
const courseKeys = ['concurrency', 'cancelWhileQueued', 'scaleUpAtMs', 'stop', 'then'] as const;

export const scenarioKeys: readonly (keyof Scenario)[] = [
  ...limitKeys,
  ...stageKeys,
  ...ttlKeys,
  ...trafficKeys,
  ...courseKeys,
];

/** A controller with closed gate, unless the scenario has a detector of its own. */
export function setStage(input: Stage): Rig {
  const registry = defaultRegistry();
  const { fairness, ordering, detector, usageLimit, inFlight = 0 } = input;
  const template = {
    limits: { maxBytes: input.bandMaxBytes, maxRequests: input.bandMaxRequests },
    fairness: fairness === undefined ? undefined : (registry.create(fairness) as FairnessPolicy),
    ordering: ordering === undefined ? undefined : (registry.create(ordering) as OrderingPolicy),
  };
  const options = {
    bands: (input.bands ?? [0]).map((priority) => ({ priority, ...template })),
    limits: {
      maxBytes: input.maxBytes ?? input.globalMaxBytes ?? Number.POSITIVE_INFINITY,
      maxRequests: input.maxRequests ?? input.globalMaxRequests ?? Number.POSITIVE_INFINITY,
    },
    defaultRequestTtl: input.defaultTtlMs,
    noEndpointRequestTtl: input.noEndpointTtlMs,
    usageLimitPolicy: usageLimit === undefined ? undefined : staticUsageLimit({ threshold: usageLimit }),
  };
  const rig = new Rig(options, { endpoints: input.endpoints ?? 1 });
  rig.gate.open(inFlight);
  for (const { state } of rig.enqueueMany(inFlight)) expect(state).toBe('Dispatched');
  if (detector !== undefined) {
    rig.flow.reconfigure({ saturationDetector: registry.create(detector.type, detector.params) as SaturationDetector });
  }
  return rig;
}

export function bring(rig: Rig, input: Scenario): Ticket[] {
  const { arrivals = [], flows = [], perFlow = 0, sizes = [], queued = 0, requests = 0, request } = input;
  const all: Arrival[] = arrivals.map((arrival) =>
    'id' in arrival ? arrival : pairToArrival(arrival, input.ordering),
  );
  for (const flow of flows) for (let turn = 0; turn < perFlow; turn++) all.push({ id: flow, flow });
  for (const bytes of sizes) all.push({ id: `${bytes} bytes`, bytes });
  const count = queued + (typeof requests === 'number' ? requests : 0);
  for (let index = 0; index < count; index++) all.push({ id: `request-${index}` });
  if (typeof requests !== 'number')
    all.push(...requests.map((each) => ('id' in each ? each : pairToArrival(each, input.ordering))));
  if (request !== undefined || all.length === 0) all.push({ id: 'request', ...request });
  return all.map(({ id, flow, bytes, sloMs, ttlMs, priority }) => {
    const budgetMs = smallest(input.callerTimeoutMs, ttlMs);
    return rig.enqueue({ fairnessId: flow, priority, byteSize: bytes, sloTtftMs: sloMs, ttlMs: budgetMs }, id);
  });
}

function pairToArrival([id, figure]: readonly [string, number], ordering: string | undefined): Arrival {
  return ordering === 'slo-deadline-ordering-policy' ? { id, sloMs: figure } : { id, priority: figure };
}

function smallest(...values: readonly (number | undefined)[]): number | undefined {
  const given = values.filter((value) => value !== undefined);
  return given.length > 0 ? Math.min(...given) : undefined;
}

/** Lets the queue drain as the reference's tests do: one more request goes whenever one that runs ends. */
export function drain(rig: Rig, concurrency: number): void {
  const running = rig.dispatched.length;
  rig.gate.open(concurrency);
  for (let done = running; done < rig.dispatched.length; done++) {
    rig.dispatched[done]?.lease?.release();
    rig.gate.open(1);
  }
}
