/**
 * Random histories of two replicas that share their sessions: where every message arrives at once the limit is never
 * exceeded and both know the same sessions; whatever gets lost, both tables are empty after all sessions have ended.
 */
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/testing/index.js';
import { turns } from '../support/flow.js';
import { MessageChannel, SessionReplica } from '../support/session-replica.js';
import { Random } from './random.js';

const inactivityMs = 60_000;
const maxSessions = 4;

/** One history; what went wrong in it. */
async function play(seed: number, lossOneIn: number | undefined): Promise<string[]> {
  const random = new Random(seed);
  const clock = new ManualClock();
  const channel = new MessageChannel();
  const limits = { maxSessions, footprint: 100_000, inactivity: inactivityMs };
  const replicas = [1, 2].map(() => new SessionReplica(clock, channel.connect(), limits));
  const problems: string[] = [];
  const settle = async (): Promise<void> => {
    await turns();
    channel.deliver();
    await turns();
    channel.deliver();
  };
  const endOne = (replica: SessionReplica): void => {
    const name = [...replica.running.keys()][random.int(replica.running.size + 1)];
    if (name === undefined) return;
    const turnsOfIt = replicas
      .flatMap(({ running }) => [...running.keys()])
      .filter((turn) => turn.split(' ')[0] === name.split(' ')[0]);
    // A session that is told to end while it runs in the other replica is back after a message: one more may begin
    // meanwhile.
    replica.end(name, turnsOfIt.length === 1 && random.int(3) === 0);
  };
  await settle();
  channel.isInstant = lossOneIn === undefined;
  if (lossOneIn !== undefined) channel.loses = () => random.int(lossOneIn) === 0;

  for (let step = 0; step < 100 && problems.length === 0; step++) {
    const replica = replicas[random.int(2)]!;
    const deed = random.int(6);
    const session = `s${random.int(10)}`;
    if (deed < 3) replica.send(session, `${session} ${step}`, random.int(500));
    else if (deed < 5) endOne(replica);
    // Sessions from elsewhere that are over within 50 ms end together.
    else clock.advance(100 * random.int(inactivityMs / 200));
    await settle();
    if (lossOneIn !== undefined) continue;
    const [first, second] = replicas.map(({ limit }) => limit.residentSessions(clock.now()));
    if (first !== second) problems.push(`step ${step}: ${first} and ${second} sessions are resident`);
    if (first! > maxSessions) problems.push(`step ${step}: ${first} sessions are resident`);
  }
  for (let round = 0; round < 60; round++) {
    for (const replica of replicas) for (const name of replica.running.keys()) replica.end(name);
    await settle();
    clock.advance(inactivityMs);
    await settle();
  }
  for (const [index, { flow, limit, pool }] of replicas.entries()) {
    const waiting = flow.stats().waiting;
    if (waiting > 0) problems.push(`replica ${index}: ${waiting} wait for ever`);
    const { resident, elsewhere, tokens } = limit.sessions([], clock.now());
    if (resident + tokens + (elsewhere ?? 0) > 0)
      problems.push(`replica ${index}: ${resident} sessions are left, with ${tokens} tokens`);
    for (const endpoint of pool.endpoints) {
      if (limit.tokensAt(endpoint, clock.now()) !== 0)
        problems.push(`replica ${index}: tokens are left at ${endpoint.id}`);
    }
  }
  return problems;
}

describe('shared sessions in random histories', () => {
  it('keep to one limit and agree in every step', async () => {
    for (let seed = 1; seed <= 40; seed++) expect(await play(seed, undefined), `seed ${seed}`).toEqual([]);
  });

  it('are gone in every replica after their end, also when a third of the messages gets lost', async () => {
    for (let seed = 1; seed <= 40; seed++) expect(await play(seed, 3), `seed ${seed}`).toEqual([]);
  });
});
