/**
 * Random histories of sessions: never more than the limit are resident, no turn of a resident session waits, what ended
 * gives everything back, and nobody waits for ever.
 */
import { describe, expect, it } from 'vitest';
import { EndpointPool, FlowController, type Lease, sessionLimit } from '../../src/index.js';
import { audit, ManualClock } from '../../src/testing/index.js';
import { turns } from '../support/flow.js';
import { Random } from './random.js';

const inactivityMs = 60_000;

interface Waiting {
  readonly session: string;
  readonly abort: AbortController;
}

/** One history; what went wrong in it. */
async function play(
  seed: number,
  maxSessions: number,
  footprint: number | undefined,
  seats: number,
): Promise<string[]> {
  const random = new Random(seed);
  const clock = new ManualClock();
  const pool = new EndpointPool();
  for (const id of ['a', 'b']) pool.add(id);
  const limit = sessionLimit({ maxSessions, footprint, inactivity: inactivityMs });
  const flow = new FlowController({ clock, pool, maxConcurrency: seats, constraints: [limit], defaultRequestTtl: 0 });
  const problems: string[] = [];
  const waiting = new Set<Waiting>();
  const running: { readonly session: string; readonly lease: Lease }[] = [];
  /** The naive model: when a session was last at work; undefined while it is not resident. */
  const lastSeenMs = new Map<string, number>();
  const leaving = new Set<string>();
  const isRunning = (session: string): boolean => running.some((each) => each.session === session);

  const send = (): void => {
    const session = `s${random.int(12)}`;
    const one: Waiting = { session, abort: new AbortController() };
    waiting.add(one);
    const request = { byteSize: 1, tokens: random.int(500), sessionId: session, signal: one.abort.signal };
    const key = { fairnessId: 'tenant', priority: random.int(3) - 1 };
    void flow.enqueue(request, key).then((outcome) => {
      waiting.delete(one);
      if (outcome.type !== 'Dispatched') return;
      running.push({ session, lease: outcome.lease });
      lastSeenMs.set(session, clock.now());
      leaving.delete(session);
    });
  };
  const end = (): void => {
    const [one] = running.splice(random.int(running.length), 1);
    if (one === undefined) return;
    const { session, lease } = one;
    lastSeenMs.set(session, clock.now());
    if (random.int(3) === 0) {
      lease.endSession();
      leaving.add(session);
    }
    if (random.int(4) === 0) lease.report({ promptTokens: random.int(800), completionTokens: 1 });
    lease.release();
    if (leaving.has(session) && !isRunning(session)) lastSeenMs.delete(session);
  };
  const check = (step: string): void => {
    const nowMs = clock.now();
    for (const [session, atMs] of lastSeenMs) {
      if (!isRunning(session) && nowMs - atMs >= inactivityMs) lastSeenMs.delete(session);
    }
    const resident = limit.residentSessions(nowMs);
    if (resident > maxSessions) problems.push(`${step}: ${resident} sessions are resident`);
    if (resident !== lastSeenMs.size)
      problems.push(`${step}: ${resident} sessions are counted, and ${lastSeenMs.size} are resident`);
    const hasSeat = flow.stats().inFlight < 2 * seats;
    for (const { session } of waiting) {
      if (hasSeat && lastSeenMs.has(session)) problems.push(`${step}: a turn of the resident session ${session} waits`);
      if (hasSeat && footprint === undefined && resident < maxSessions)
        problems.push(`${step}: ${session} waits beside room`);
    }
    problems.push(...audit(flow).violations.map((violation) => `${step}: ${violation}`));
  };

  for (let step = 0; step < 120 && problems.length === 0; step++) {
    const deed = random.int(8);
    if (deed < 4) send();
    else if (deed < 6) end();
    else if (deed === 6) clock.advance(random.int(inactivityMs));
    else [...waiting][random.int(waiting.size + 1)]?.abort.abort();
    await turns();
    check(`step ${step}`);
  }
  // Nobody sends any more, and nobody says goodbye: leases of sessions run out, and everyone has had a turn.
  for (let round = 0; round < 60 && waiting.size + running.length > 0; round++) {
    for (const { lease } of running.splice(0)) lease.release();
    await turns();
    clock.advance(inactivityMs);
    await turns();
  }
  if (waiting.size > 0) problems.push(`${waiting.size} wait for ever`);
  clock.advance(inactivityMs);
  if (limit.residentSessions(clock.now()) > 0) problems.push('sessions are never given back');
  for (const endpoint of pool.endpoints)
    if (limit.tokensAt(endpoint, clock.now()) !== 0) problems.push('tokens are never given back');
  return problems;
}

describe('sessions in random histories', () => {
  for (const [name, maxSessions, footprint, seats] of [
    ['by number', 3, undefined, 100],
    ['by number, with few seats', 4, undefined, 1],
    ['by their footprint', 100, 1000, 100],
    ['by both, with few seats', 4, 900, 2],
  ] as const) {
    it(`keep to their limit, pass once they are resident, and never wait for ever: limited ${name}`, async () => {
      for (let seed = 1; seed <= 40; seed++) {
        expect(await play(seed, maxSessions, footprint, seats), `seed ${seed}`).toEqual([]);
      }
    });
  }
});
