/**
 * Whole scenarios. Input keys set the stage, bring requests and let things happen; every expectation is looked up among what was
 * observed, so that any mix of known keys can be played.
 */
import { expect } from 'vitest';
import {
  type BandOptions,
  defaultRegistry,
  type FairnessPolicy,
  type OrderingPolicy,
  type SaturationDetector,
  staticUsageLimit,
} from '../../../src/index.js';
import { errorChainOf } from '../support/reference-terms.js';
import { Rig, type Ticket } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import type { Vector } from '../support/vectors.js';

interface Arrival {
  readonly id: string;
  readonly priority?: number | undefined;
  readonly flow?: string | undefined;
  readonly sloMs?: number | undefined;
  readonly ttlMs?: number | undefined;
  readonly bytes?: number | undefined;
}

interface Scenario {
  // The stage.
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
  /** Requests that may run at a time once the gate opens. */
  concurrency?: number;
  // The requests.
  /** A pair is a name and a priority, or a target where targets decide. */
  arrivals?: readonly (Arrival | readonly [id: string, figure: number])[];
  flows?: readonly string[];
  perFlow?: number;
  sizes?: readonly number[];
  queued?: number;
  requests?: number | readonly Arrival[];
  request?: Omit<Arrival, 'id'>;
  // What happens.
  callerTimeoutMs?: number;
  cancelWhileQueued?: boolean;
  scaleUpAtMs?: number;
  stop?: boolean;
  then?: string;
}

interface ScenarioResult {
  order?: readonly string[];
  eachRoundContainsAllFlows?: boolean;
  total?: number;
  outcome?: string;
  outcomeNot?: string;
  outcomes?: readonly string[];
  outcomesIn?: readonly string[];
  errorChainIncludes?: readonly string[];
  returned?: number;
  stillQueuedAtMs?: number;
  firstThree?: { readonly errorChainIncludes: readonly string[] };
  then?: string;
}

/** Policies and detectors that keep what runs until it is released. */
function rigFor({ input }: Vector<Scenario, ScenarioResult>): Rig {
  const registry = defaultRegistry();
  const template = {
    limits: { maxBytes: input.bandMaxBytes, maxRequests: input.bandMaxRequests },
    fairness: input.fairness === undefined ? undefined : (registry.create(input.fairness) as FairnessPolicy),
    ordering: input.ordering === undefined ? undefined : (registry.create(input.ordering) as OrderingPolicy),
  };
  const bands: BandOptions[] = (input.bands ?? [0]).map((priority) => ({ priority, ...template }));
  const options = {
    bands,
    limits: {
      maxBytes: input.maxBytes ?? input.globalMaxBytes ?? Number.POSITIVE_INFINITY,
      maxRequests: input.maxRequests ?? input.globalMaxRequests ?? Number.POSITIVE_INFINITY,
    },
    defaultRequestTtl: input.defaultTtlMs,
    noEndpointRequestTtl: input.noEndpointTtlMs,
    usageLimitPolicy: input.usageLimit === undefined ? undefined : staticUsageLimit({ threshold: input.usageLimit }),
  };
  const rig = new Rig(options, { endpoints: input.endpoints ?? 1 });
  rig.gate.open(input.inFlight ?? 0);
  for (const ticket of rig.enqueueMany(input.inFlight ?? 0)) expect(ticket.state).toBe('Dispatched');
  if (input.detector !== undefined) {
    const { type, params } = input.detector;
    rig.flow.reconfigure({ saturationDetector: registry.create(type, params) as SaturationDetector });
  }
  return rig;
}

function bring(rig: Rig, { input }: Vector<Scenario, ScenarioResult>): Ticket[] {
  const { arrivals = [], flows = [], perFlow = 0, sizes = [], queued = 0, requests = 0, request } = input;
  const all: Arrival[] = arrivals.map((arrival) => ('id' in arrival ? arrival : pairToArrival(arrival, input.ordering)));
  for (const flow of flows) for (let turn = 0; turn < perFlow; turn++) all.push({ id: flow, flow });
  for (const bytes of sizes) all.push({ id: `${bytes} bytes`, bytes });
  const count = queued + (typeof requests === 'number' ? requests : 0);
  for (let index = 0; index < count; index++) all.push({ id: `request-${index}` });
  if (typeof requests !== 'number') all.push(...requests);
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
function drain(rig: Rig, concurrency: number): void {
  const running = rig.dispatched.length;
  rig.gate.open(concurrency);
  for (let done = running; done < rig.dispatched.length; done++) {
    rig.dispatched[done]?.lease?.release();
    rig.gate.open(1);
  }
}

const script = runner<Scenario, ScenarioResult>(
  {
    input: [
      'bands',
      'fairness',
      'ordering',
      'detector',
      'usageLimit',
      'maxBytes',
      'maxRequests',
      'globalMaxBytes',
      'globalMaxRequests',
      'bandMaxBytes',
      'bandMaxRequests',
      'defaultTtlMs',
      'noEndpointTtlMs',
      'endpoints',
      'inFlight',
      'concurrency',
      'arrivals',
      'flows',
      'perFlow',
      'sizes',
      'queued',
      'requests',
      'request',
      'callerTimeoutMs',
      'cancelWhileQueued',
      'scaleUpAtMs',
      'stop',
      'then',
    ],
    expect: [
      'order',
      'eachRoundContainsAllFlows',
      'total',
      'outcome',
      'outcomeNot',
      'outcomes',
      'outcomesIn',
      'errorChainIncludes',
      'returned',
      'stillQueuedAtMs',
      'firstThree',
      'then',
    ],
  },
  async (vector) => {
    const { input, expect: expected } = vector;
    const rig = rigFor(vector);
    const tickets = bring(rig, vector);
    const first = tickets[0] as Ticket;
    const states = tickets.map(({ state }) => state);
    if (expected.outcomes !== undefined) expect(states).toEqual(expected.outcomes);

    if (expected.stillQueuedAtMs !== undefined) {
      rig.advanceTo(expected.stillQueuedAtMs);
      expect(first.state).toBe('queued');
    }
    if (input.scaleUpAtMs !== undefined) {
      rig.advanceTo(input.scaleUpAtMs);
      rig.setEndpoints(1);
      rig.gate.open();
    }
    if (input.cancelWhileQueued === true) first.abort.abort();
    if (expected.order !== undefined || expected.eachRoundContainsAllFlows !== undefined) drain(rig, input.concurrency ?? 1);
    if (input.stop === true || expected.returned !== undefined) await rig.flow.close();
    // What nothing ends by now ends by its time to live; a vector without one waits for the default.
    const endsByTime = input.then === undefined && (expected.outcome ?? expected.outcomeNot) !== undefined;
    if (endsByTime || input.callerTimeoutMs !== undefined) rig.clock.advance(input.callerTimeoutMs ?? 600_000);

    checkEnds(rig, tickets, vector);
    if (input.then === undefined) return;
    if (input.then !== 'enqueue') throw unknownWord(vector, input.then);
    expect(rig.enqueue().state).toBe(expected.then);
  },
);

function checkEnds(rig: Rig, tickets: readonly Ticket[], { input, expect: expected }: Vector<Scenario, ScenarioResult>): void {
  const first = tickets[0] as Ticket;
  const order = rig.dispatched.slice(input.inFlight ?? 0).map(({ id }) => id);
  if (expected.order !== undefined) expect(order).toEqual(expected.order);
  if (expected.total !== undefined) expect(order).toHaveLength(expected.total);
  if (expected.eachRoundContainsAllFlows !== undefined)
    expect(eachRoundIsFair(order, input.flows ?? [])).toBe(expected.eachRoundContainsAllFlows);
  if (expected.outcome !== undefined) expect(first.state).toBe(expected.outcome);
  if (expected.outcomeNot !== undefined) expect(['queued', undefined, expected.outcomeNot]).not.toContain(first.state);
  if (expected.outcomesIn !== undefined) for (const { state } of tickets) expect(expected.outcomesIn).toContain(state);
  if (expected.returned !== undefined) expect(tickets.filter(({ ends }) => ends === 1)).toHaveLength(expected.returned);
  if (expected.errorChainIncludes !== undefined) expectChain(first, expected.errorChainIncludes);
  for (const ticket of expected.firstThree === undefined ? [] : tickets.slice(0, 3)) {
    expectChain(ticket, expected.firstThree?.errorChainIncludes ?? []);
  }
}

/** True when every stretch as long as there are flows holds each flow once. */
function eachRoundIsFair(order: readonly string[], flows: readonly string[]): boolean {
  const rounds = Array.from({ length: Math.ceil(order.length / flows.length) }, (_, round) =>
    order.slice(round * flows.length, (round + 1) * flows.length),
  );
  return rounds.every((round) => new Set(round).size === flows.length);
}

function expectChain({ drop }: Ticket, errors: readonly string[]): void {
  expect(drop === undefined ? [] : errorChainOf(drop)).toEqual(expect.arrayContaining([...errors]));
}

export const integrationRunners: Runners = { 'integration.script': script };
