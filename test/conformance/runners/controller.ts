/** The whole call: what the caller is told, under which key the request waited, and that its flow stays meanwhile. */

import { expect } from 'vitest';
import { overviewOf } from '../../../src/index.js';
import { errorChainOf } from '../support/reference-terms.js';
import { Rig } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';

interface Call {
  controllerStopped?: boolean;
  stopDuringWait?: boolean;
  cancelled?: boolean;
  /** False: it ends before it is queued. */
  queued?: boolean;
  inbox?: string;
  processor?: string;
  ttlMs?: number;
  cancelAfterMs?: number;
  callerDeadlineMs?: number;
  /** What fails in the reference: a lease, the look-up of a queue. Nothing of it can fail here. */
  fault?: string;
}

interface CallResult {
  outcome: string;
  errorChainIncludes: readonly string[];
}

const inboxes: readonly string[] = ['free', 'busy', 'busyThenFree', 'busyForever', 'full', 'blocked'];
const processors: readonly string[] = ['dispatches', 'blocks', 'never', 'rejects'];

const enqueueAndWait = runner<Call, CallResult>(
  {
    input: [
      'controllerStopped',
      'stopDuringWait',
      'cancelled',
      'queued',
      'inbox',
      'processor',
      'ttlMs',
      'cancelAfterMs',
      'callerDeadlineMs',
      'fault',
    ],
    expect: ['outcome', 'errorChainIncludes'],
  },
  async (vector) => {
    const {
      controllerStopped,
      stopDuringWait,
      cancelled,
      queued,
      inbox = 'free',
      processor,
      ttlMs,
      cancelAfterMs,
      callerDeadlineMs,
    } = vector.input;
    // There is no inbox: where the reference blocks before a full one, a request waits in its queue.
    if (!inboxes.includes(inbox)) throw unknownWord(vector, inbox);
    if (processor !== undefined && !processors.includes(processor)) throw unknownWord(vector, processor);
    const rig = new Rig({ bands: [{ priority: 0, limits: { maxRequests: processor === 'rejects' ? 0 : undefined } }] });
    const isLate = callerDeadlineMs !== undefined && callerDeadlineMs <= 0;
    // A caller's deadline is the time that its request may wait; one in the past is a signal that has aborted.
    const budgets = [ttlMs, isLate ? undefined : callerDeadlineMs].filter((ms) => ms !== undefined);
    const abort = new AbortController();
    const stopsBefore = controllerStopped === true || (stopDuringWait === true && queued === false);
    if (stopsBefore) void rig.flow.close();
    const endsBefore = stopsBefore || (queued === false && processor === undefined && stopDuringWait !== true);
    if (isLate || (cancelled === true && endsBefore)) abort.abort();
    const ticket = rig.enqueue({ abort, ttlMs: budgets.length > 0 ? Math.min(...budgets) : undefined });
    if (processor === 'dispatches') rig.gate.open(1);
    if (cancelAfterMs !== undefined) {
      rig.clock.advance(cancelAfterMs);
      abort.abort();
    }
    if (stopDuringWait === true && !stopsBefore) void rig.flow.close();
    if (cancelled === true) abort.abort();
    if (budgets.length > 0) rig.clock.advance(Math.min(...budgets));
    expect(ticket.state).toBe(vector.expect.outcome);
    expect((await rig.outcomes[0])?.type).toBe(vector.expect.outcome);
    const chain = ticket.drop === undefined ? [] : errorChainOf(ticket.drop);
    expect(chain).toEqual(expect.arrayContaining([...vector.expect.errorChainIncludes]));
  },
);

/** Idle timeouts pass while the request waits; its flow may go only afterwards. */
const leaseScope = runner<{ processorBlocks: boolean }, { leaseReleasedBeforeDone: boolean }>(
  { input: ['processorBlocks'], expect: ['leaseReleasedBeforeDone'] },
  ({ input, expect: expected }) => {
    const idleMs = 1000;
    const rig = new Rig({ defaultRequestTtl: 0, flowIdleTimeout: idleMs, bandIdleTimeout: idleMs });
    const removed: string[] = [];
    rig.flow.on('flowRemoved', ({ fairnessId }) => removed.push(fairnessId));
    if (!input.processorBlocks) rig.gate.open(1);
    const ticket = rig.enqueue({ fairnessId: 'tenant', priority: 5 });
    rig.clock.advance(idleMs * 10);
    overviewOf(rig.flow, { flows: 'all' });
    expect(ticket.state === 'queued').toBe(input.processorBlocks);
    expect(removed.includes('tenant')).toBe(expected.leaseReleasedBeforeDone);
    ticket.abort.abort();
    rig.clock.advance(idleMs);
    overviewOf(rig.flow, { flows: 'all' });
    expect(removed.includes('tenant')).toBe(input.processorBlocks);
  },
);

interface Key {
  flowId: string;
  priority: number;
}

const fallback = runner<
  Key & { provisioned: readonly number[] },
  { outcome?: string; queuedKey?: Key | null; error?: string | null }
>(
  { input: ['flowId', 'priority', 'provisioned'], expect: ['outcome', 'queuedKey', 'error'] },
  ({ input, expect: expected }) => {
    const rig = new Rig({ bands: input.provisioned.map((priority) => ({ priority })) });
    const keys: Key[] = [];
    rig.flow.on('queued', ({ item }) => keys.push({ flowId: item.fairnessId, priority: item.priority }));
    const ticket = rig.enqueue({ fairnessId: input.flowId, priority: input.priority });
    rig.gate.open(1);
    const { outcome = 'Dispatched', queuedKey, error = null } = expected;
    expect({ outcome: ticket.state, error: null }).toEqual({ outcome, error });
    if (queuedKey !== undefined) expect(keys).toEqual(queuedKey === null ? [] : [queuedKey]);
  },
);

export const controllerRunners: Runners = {
  'controller.enqueueAndWait': enqueueAndWait,
  'controller.leaseScope': leaseScope,
  'controller.fallback': fallback,
};
