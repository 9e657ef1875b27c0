/** A fan-out of forty agents beside ten people who chat, in virtual time: one flow for the family, or turns by session. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { families } from '../../src/adapters/http/index.js';
import { loadScenario, type RequestRecord, type SimulationOptions, simulate } from '../../src/simulator/index.js';

const text = readFileSync(new URL('../../examples/scenarios/agents-beside-chat.yaml', import.meta.url), 'utf8');
const seeds = [1, 2, 3, 4, 5];
const begunAtMs = 60_000;

type Traffic = SimulationOptions['traffic'];

const isChat = ({ tenant }: { readonly tenant?: string | undefined }): boolean => tenant?.includes('chat') === true;

/** The forty in flows of their own, under the default policy, which gives each flow its turn. */
const bySession = (traffic: Traffic): Traffic =>
  traffic.map((each) =>
    each.class === 'children' && each.arrivals.type === 'closed-loop'
      ? { ...each, tenants: 40, arrivals: { ...each.arrivals, threads: 1 } }
      : each,
  );

function runs(change: (traffic: Traffic) => Traffic, scenario = text) {
  return seeds.map((seed) => {
    const { options } = loadScenario(scenario);
    const { requests = [] } = simulate({ ...options, seed, traffic: change(options.traffic), keepRequests: true });
    const ends = requests.filter((each) => !isChat(each)).map(({ endedAtMs = Infinity }) => endedAtMs - begunAtMs);
    return { requests, makespanMs: Math.max(0, ...ends) };
  });
}

/** Of the requests of chats that came during the fan-out, over all seeds. */
function p95(all: readonly { readonly requests: readonly RequestRecord[] }[], untilMs: number): number {
  const during = all.flatMap(({ requests }) =>
    requests.filter((each) => isChat(each) && each.arrivedAtMs >= begunAtMs && each.arrivedAtMs < begunAtMs + untilMs),
  );
  const times = during.map(({ arrivedAtMs, firstTokenAtMs = Infinity }) => firstTokenAtMs - arrivedAtMs);
  return times.sort((a, b) => a - b)[Math.ceil(0.95 * times.length) - 1] ?? 0;
}

const sum = (all: readonly { readonly makespanMs: number }[]): number =>
  all.reduce((total, { makespanMs }) => total + makespanMs, 0);

it('leaves chats their first token within 10 %, and ends the fan-out when turns by session do', () => {
  const alone = runs((traffic) => traffic.filter(isChat));
  const family = runs((traffic) => traffic);
  const sessions = runs(bySession, text.replace('      fairnessPolicyRef: hierarchical-fairness-policy\n', ''));
  const untilMs = Math.min(...[...family, ...sessions].map(({ makespanMs }) => makespanMs));
  expect(untilMs).toBeGreaterThan(150_000);
  const undisturbedMs = p95(alone, untilMs);
  expect(p95(family, untilMs)).toBeLessThan(1.1 * undisturbedMs);
  // 0.5 % later: what those turns took from chats waits still when they have ended.
  expect(sum(family)).toBeLessThan(1.01 * sum(sessions));
  // What the ten suffer from forty turns a round.
  expect(p95(sessions, untilMs)).toBeGreaterThan(2 * undisturbedMs);
});

it('has the fairness IDs that families() makes', () => {
  const agents = families();
  const { options } = loadScenario(text);
  const names = new Set(options.traffic.map(({ tenant }) => tenant));
  for (const [sessionId, parentSessionId] of [['chat'], ['run'], ['child', 'run']])
    expect(names).toContain(agents.flowKey({ fairnessId: 'acme' }, { sessionId, parentSessionId }).fairnessId);
});
