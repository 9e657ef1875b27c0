/** How a request ends: outcomes inferred from causes, exactly one end, counters. */
import { expect } from 'vitest';
import { errorChainOf } from '../support/reference-terms.js';
import { Rig, type Ticket } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import type { Vector } from '../support/vectors.js';

const ttlMs = 1000;
const noEndpointTtlMs = 60_000;
const expiring: readonly string[] = ['ErrTTLExpired', 'DeadlineExceeded', 'EvictedTTL'];
const oneAtATime = { limits: { maxRequests: 1 } };

/**
 * Brings the cause about, for a request that waits. Every eviction here has a cause of its own, shutting down is the
 * only one without an outcome to itself: what the reference calls any other cause is that.
 */
function endWaiting(vector: Vector, rig: Rig, ticket: Ticket, cause: string | null): void {
  if (cause === 'ErrTTLExpired' || cause === 'EvictedTTL' || cause === 'DeadlineExceeded') rig.clock.advance(ttlMs);
  else if (cause === 'Canceled' || cause === 'ErrContextCancelled' || cause === 'EvictedContextCancelled')
    ticket.abort.abort();
  else if (cause === 'Dispatched') rig.gate.open(1);
  else if (cause === 'EvictedNoEndpoints' || cause === 'ErrNoEndpoints') {
    rig.setEndpoints(0);
    rig.clock.advance(noEndpointTtlMs);
  } else if (isOther(cause) || cause === 'EvictedOther') void rig.flow.close();
  else throw unknownWord(vector, cause);
}

/** What the reference has no outcome for. */
function isOther(cause: string | null): boolean {
  return (
    cause === null || ['other', 'unknown', 'ErrFlowControllerNotRunning', 'ErrEvicted', 'ErrRejected'].includes(cause)
  );
}

/**
 * A request that ends for this cause before it is queued. No time passes before that: one whose time is up has been
 * queued.
 */
function endAtOnce(vector: Vector, rig: Rig, cause: string | null): Ticket {
  const abort = new AbortController();
  if (cause === 'Dispatched') rig.gate.open(1);
  else if (cause === 'RejectedCapacity') rig.enqueue();
  else if (cause === 'RejectedNoEndpoints') {
    rig.enqueue();
    rig.setEndpoints(0);
  } else if (cause === 'Canceled' || cause === 'ErrContextCancelled') abort.abort();
  else if (isOther(cause) || cause === 'RejectedOther') void rig.flow.close();
  else if (!expiring.includes(cause ?? '')) throw unknownWord(vector, cause);
  const ticket = rig.enqueue({ ttlMs, abort });
  if (expiring.includes(cause ?? '')) rig.clock.advance(ttlMs);
  return ticket;
}

function ended(vector: Vector, rig: Rig, cause: string | null, queued: boolean): Ticket {
  if (!queued) return endAtOnce(vector, rig, cause);
  const ticket = rig.enqueue({ ttlMs });
  expect(ticket.state).toBe('queued');
  endWaiting(vector, rig, ticket, cause);
  return ticket;
}

function chainOf({ drop }: Ticket): string[] {
  return drop === undefined ? [] : errorChainOf(drop);
}

type Ending = readonly [kind: 'cause' | 'outcome', value: string];

/** Makes one more drop of that outcome; the band of priority 0 is full, those of the others are not. */
const dropSteps: Readonly<Record<string, (rig: Rig) => void>> = {
  rejectCapacity: (rig) => void rig.enqueue({ priority: 0 }),
  rejectOther(rig) {
    const abort = new AbortController();
    abort.abort();
    rig.enqueue({ priority: 1, abort });
  },
  rejectCapacityEmptyPool: (rig) => dropSteps.rejectNoEndpoints?.(rig),
  evictNoEndpoints(rig) {
    rig.setEndpoints(0);
    const ticket = rig.enqueue({ priority: 1, ttlMs });
    rig.flow.reconfigure({ noEndpointRequestTtl: 1 });
    rig.clock.advance(1);
    expect(ticket.state).toBe('EvictedNoEndpoints');
    rig.flow.reconfigure({ noEndpointRequestTtl: 0 });
    rig.setEndpoints(1);
  },
  rejectNoEndpoints(rig) {
    rig.setEndpoints(0);
    rig.enqueue({ priority: 0 });
    rig.setEndpoints(1);
  },
  evictTTL(rig) {
    rig.enqueue({ priority: 1, ttlMs });
    rig.clock.advance(ttlMs);
  },
  evictContextCancelled: (rig) => rig.enqueue({ priority: 1 }).abort.abort(),
  dispatch(rig) {
    rig.gate.open(1);
    rig.enqueue({ priority: 1 }).lease?.release();
  },
};

export const outcomeRunners: Runners = {
  'finalize.infer': runner<{ cause: string | null; queued: boolean }, { outcome: string; errorIs?: string }>(
    { input: ['cause', 'queued'], expect: ['outcome', 'errorIs'] },
    (vector) => {
      const ticket = ended(vector, new Rig(), vector.input.cause, vector.input.queued);
      expect(ticket.state).toBe(vector.expect.outcome);
      if (vector.expect.errorIs !== undefined) expect(chainOf(ticket)).toContain(vector.expect.errorIs);
    },
  ),

  /** Whatever comes after the first end: the second cause, and then every other one. */
  'finalize.idempotent': runner<
    { queued: boolean; first: Ending; second: Ending },
    { outcome: string; doneSignals: number }
  >({ input: ['queued', 'first', 'second'], expect: ['outcome', 'doneSignals'] }, async (vector) => {
    const { queued, first, second } = vector.input;
    const rig = new Rig({
      bands: [{ priority: 0, ...(/^Rejected(Capacity|NoEndpoints)$/.test(first[1]) ? oneAtATime : {}) }],
    });
    const ticket = ended(vector, rig, first[1], queued);
    const outcomes = [...rig.outcomes];
    if (!second[1].startsWith('Rejected')) endWaiting(vector, rig, ticket, second[1]);
    rig.clock.advance(ttlMs * 10);
    ticket.abort.abort();
    rig.gate.open();
    await rig.flow.close();
    expect(ticket.state).toBe(vector.expect.outcome);
    expect(ticket.ends).toBe(vector.expect.doneSignals);
    expect((await outcomes.at(-1))?.type).toBe(vector.expect.outcome);
  }),

  'drops.counter': runner<{ steps: readonly string[] }, Readonly<Record<string, number>>>(
    { input: ['steps'], expect: Object.keys(new Rig().flow.stats().outcomes) },
    (vector) => {
      const rig = new Rig({ bands: [{ priority: 0, requestTtl: 0, ...oneAtATime }], noEndpointRequestTtl: 0 });
      rig.enqueue({ priority: 0 });
      for (const step of vector.input.steps) {
        const drop = dropSteps[step];
        if (drop === undefined) throw unknownWord(vector, step);
        drop(rig);
      }
      // A drop that did not happen may be expected as 0, or be left out.
      const drops = ([outcome, count]: readonly [string, number]): boolean => outcome !== 'Dispatched' && count > 0;
      const counted = Object.entries(rig.flow.stats().outcomes).filter(drops);
      expect(Object.fromEntries(counted)).toEqual(Object.fromEntries(Object.entries(vector.expect).filter(drops)));
    },
  ),
};
