/** The gateway queue of BLIS, and the admission in front of it. */
import { expect } from 'vitest';
import { flatRunner, withKeys } from '../support/flat-vectors.js';
import { type GatewayConfig, GatewayPlay, type GatewayRequest, gatewayKeys } from '../support/gateway-play.js';
import type { Ticket } from '../support/rig.js';
import { type Runners, unknownWord } from '../support/runner.js';
import { sortRuns } from '../support/step-runs.js';
import type { Vector } from '../support/vectors.js';

interface Step extends GatewayRequest {
  op: string;
  seq?: number;
  outcome?: string;
  victim?: string;
  saturation?: number;
  removed?: boolean;
  len?: number;
  shed?: number;
  rejected?: number;
  bands?: Readonly<Record<string, number>>;
}

const requestKeys = ['id', 'class', 'tenant', 'enqueueTimeUs', 'sloTargetUs'] as const;
const enqueueKeys = ['op', ...requestKeys, 'seq', 'outcome', 'victim'] as const;
const expectKeys = ['op', 'len', 'shed', 'rejected', 'bands'] as const;

interface Script {
  config: GatewayConfig;
  steps: readonly Step[];
  /** True where the vector itself calls what it shows a defect. */
  defect?: boolean;
}

/**
 * What BLIS calls the end of an attempt to get in: the request's own state, and whether another one had to go for it.
 */
function outcomeOf({ state }: Ticket, victim: Ticket | undefined): string {
  if (state === 'RejectedCapacity') return 'rejected';
  return victim === undefined ? 'enqueued' : 'shed-victim';
}

/** What leaves, in order; null for a look that found nothing. */
function playQueue(vector: Vector<Script>): (string | null)[] {
  const { config, steps } = vector.input;
  const play = new GatewayPlay(withKeys(config, ...gatewayKeys), classesOf(steps));
  const tickets = new Map<string, Ticket>();
  const dequeued: (string | null)[] = [];
  for (const step of sortRuns(steps, 'enqueue', ({ seq = 0 }) => seq)) {
    if (step.op === 'enqueue') tickets.set(step.id ?? '', enqueue(play, withKeys(step, ...enqueueKeys)));
    else if (step.op === 'dequeue') dequeued.push(play.dequeue(withKeys(step, 'op', 'id').saturation));
    else if (step.op === 'dequeueGated')
      dequeued.push(play.dequeue(withKeys(step, 'op', 'id', 'saturation').saturation));
    else if (step.op === 'remove') {
      const ticket = tickets.get(withKeys(step, 'op', 'id', 'removed').id ?? '');
      expect(ticket?.state === 'queued').toBe(step.removed);
      ticket?.abort.abort();
      expect(ticket?.state).not.toBe('queued');
    } else if (step.op === 'expect') expectFigures(play, withKeys(step, ...expectKeys));
    else throw unknownWord(vector, step.op);
  }
  return dequeued;
}

function enqueue(play: GatewayPlay, step: Step): Ticket {
  const before = play.displaced.length;
  const ticket = play.enqueue(step);
  const victim = play.displaced[before];
  expect(outcomeOf(ticket, victim), ticket.id).toBe(step.outcome);
  expect(victim?.id).toBe(step.victim);
  return ticket;
}

function expectFigures(play: GatewayPlay, { len, shed, rejected, bands }: Step): void {
  const { waiting, outcomes } = play.rig.flow.stats();
  const found = { len: waiting, shed: play.displaced.length, rejected: outcomes.RejectedCapacity };
  expect({ ...found, bands: play.waitingIn(Object.keys(bands ?? {})) }).toMatchObject(
    Object.fromEntries(Object.entries({ len, shed, rejected, bands }).filter(([, figure]) => figure !== undefined)),
  );
}

function classesOf(steps: readonly GatewayRequest[]): string[] {
  return [...new Set(steps.flatMap((step) => step.class ?? []))];
}

interface Attempt extends GatewayRequest {
  clockUs: number;
  admit: boolean;
  outcome: string;
  reason: string;
  enqueueTimeUsAfter: number;
  victim?: string;
}

const attemptKeys = [...requestKeys, 'clockUs', 'admit', 'outcome', 'reason', 'enqueueTimeUsAfter', 'victim'] as const;

export const gatewayQueueRunners: Runners = {
  'gateway-queue': flatRunner<Script, { dequeued?: readonly (string | null)[] }>(
    ['config', 'steps', 'defect'],
    (vector) => {
      const asked = vector.input.steps.filter(({ op }) => op.startsWith('dequeue'));
      expect(playQueue(vector)).toEqual(vector.expect.dequeued ?? asked.map(({ id }) => id));
    },
    ['dequeued'],
  ),

  /** An admission policy that refuses would be another thing: a full queue is found after admission. */
  'flow-control-admission': flatRunner<{ config: GatewayConfig; steps: readonly Attempt[] }>(
    ['config', 'steps'],
    ({ input }) => {
      const play = new GatewayPlay(withKeys(input.config, ...gatewayKeys), classesOf(input.steps));
      const queuedAt = new Map<string, number>();
      play.rig.flow.on('queued', ({ item }) => queuedAt.set(item.request.id, play.rig.nowMs));
      for (const step of input.steps) {
        const { clockUs, admit, outcome, reason, enqueueTimeUsAfter, victim } = withKeys(step, ...attemptKeys);
        play.rig.advanceTo(clockUs);
        const before = play.displaced.length;
        const ticket = play.enqueue(step);
        const displaced = play.displaced[before];
        expect(ticket.drop?.reason !== 'refused').toBe(admit);
        expect(outcomeOf(ticket, displaced)).toBe(outcome);
        expect(ticket.state === 'queued' ? 'flow-control-enqueued' : 'flow-control-queue-rejected').toBe(reason);
        expect(queuedAt.get(ticket.id) ?? 0).toBe(enqueueTimeUsAfter);
        expect(displaced?.id).toBe(victim);
      }
    },
  ),
};
