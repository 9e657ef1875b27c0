/**
 * Whole scenarios: the stage is set, requests come, things happen, and every expectation is looked up among what was
 * observed.
 */
import { expect } from 'vitest';
import { errorChainOf } from '../support/reference-terms.js';
import type { Rig, Ticket } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import { bring, drain, type Scenario, scenarioKeys, setStage } from '../support/scenario.js';
import type { Vector } from '../support/vectors.js';

/** What is said of a request without more words is said of the first. */
interface ScenarioResult {
  order?: readonly string[];
  eachRoundContainsAllFlows?: boolean;
  total?: number;
  outcome?: string;
  outcomeNot?: string;
  /** As the requests come. */
  outcomes?: readonly string[];
  outcomesIn?: readonly string[];
  errorChainIncludes?: readonly string[];
  returned?: number;
  stillQueuedAtMs?: number;
  firstThree?: { readonly errorChainIncludes: readonly string[] };
  then?: string;
}

const orderKeys = ['order', 'eachRoundContainsAllFlows', 'total'] as const;
const outcomeKeys = ['outcome', 'outcomeNot', 'outcomes', 'outcomesIn', 'errorChainIncludes', 'firstThree'] as const;
const courseKeys = ['returned', 'stillQueuedAtMs', 'then'] as const;

/** Longer than any TTL of a vector that does not name its own. */
const longMs = 600_000;

const script = runner<Scenario, ScenarioResult>(
  { input: scenarioKeys, expect: [...orderKeys, ...outcomeKeys, ...courseKeys] },
  async (vector) => {
    const { input, expect: expected } = vector;
    const rig = setStage(input);
    // Where nothing is said that requests could wait for, the ones that go find the gate open.
    const isFree = input.detector === undefined && input.scaleUpAtMs === undefined;
    const going = [expected.outcome, ...(expected.outcomes ?? [])].filter((outcome) => outcome === 'Dispatched');
    if (isFree) rig.gate.open(going.length);
    const tickets = bring(rig, input);
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
    if (expected.order !== undefined || expected.eachRoundContainsAllFlows !== undefined)
      drain(rig, input.concurrency ?? 1);
    if (input.stop === true || expected.returned !== undefined) await rig.flow.close();
    // What nothing has ended by now ends by its time to live.
    const endsByTime = input.then === undefined && (expected.outcome ?? expected.outcomeNot) !== undefined;
    if (endsByTime || input.callerTimeoutMs !== undefined) rig.clock.advance(input.callerTimeoutMs ?? longMs);

    checkEnds(rig, tickets, vector);
    if (input.then === undefined) return;
    if (input.then !== 'enqueue') throw unknownWord(vector, input.then);
    expect(rig.enqueue().state).toBe(expected.then);
  },
);

function checkEnds(
  rig: Rig,
  tickets: readonly Ticket[],
  { input, expect: expected }: Vector<Scenario, ScenarioResult>,
): void {
  const first = tickets[0] as Ticket;
  const order = rig.dispatched.slice(input.inFlight ?? 0).map(({ id }) => id);
  if (expected.order !== undefined) expect(order).toEqual(expected.order);
  if (expected.total !== undefined) expect(order).toHaveLength(expected.total);
  const { eachRoundContainsAllFlows: isFair } = expected;
  if (isFair !== undefined) expect(eachRoundIsFair(order, input.flows ?? [])).toBe(isFair);
  if (expected.outcome !== undefined) expect(first.state).toBe(expected.outcome);
  if (expected.outcomeNot !== undefined) expect(['queued', undefined, expected.outcomeNot]).not.toContain(first.state);
  if (expected.outcomesIn !== undefined) for (const { state } of tickets) expect(expected.outcomesIn).toContain(state);
  if (expected.returned !== undefined) expect(tickets.filter(({ ends }) => ends === 1)).toHaveLength(expected.returned);
  if (expected.errorChainIncludes !== undefined) expectChain(first, expected.errorChainIncludes);
  const { firstThree } = expected;
  if (firstThree !== undefined)
    for (const ticket of tickets.slice(0, 3)) expectChain(ticket, firstThree.errorChainIncludes);
}

/** True when every stretch as long as there are flows holds each flow once. */
function eachRoundIsFair(order: readonly string[], flows: readonly string[]): boolean {
  const { length } = flows;
  const rounds = Array.from({ length: Math.ceil(order.length / length) }, (_, round) =>
    order.slice(round * length, (round + 1) * length),
  );
  return rounds.every((round) => new Set(round).size === length);
}

function expectChain({ drop }: Ticket, errors: readonly string[]): void {
  expect(drop === undefined ? [] : errorChainOf(drop)).toEqual(expect.arrayContaining([...errors]));
}

export const integrationRunners: Runners = { 'integration.script': script };
