/**
 * The way into the reference's inbox. Here a request is queued, dispatched or rejected in the turn in which it comes:
 * no inbox is full.
 */
import { expect } from 'vitest';
import { errorChainOf } from '../support/reference-terms.js';
import { Rig } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';

interface Submission {
  op: string;
  inboxSize?: number;
  /** Requests in the inbox; here they wait in the queue. */
  prefilled?: number;
  stopped?: boolean;
  /** What happens to the request afterwards. */
  then?: string;
}

interface SubmissionResult {
  error?: string | null;
  finalized?: boolean;
  accepted?: boolean;
}

const operations: readonly string[] = ['submitNonBlocking', 'submitOrBlock'];

export const handoffRunners: Runners = {
  'handoff.submit': runner<Submission, SubmissionResult>(
    { input: ['op', 'inboxSize', 'prefilled', 'stopped', 'then'], expect: ['error', 'finalized', 'accepted'] },
    (vector) => {
      const { op, prefilled = 0, stopped = false, then } = vector.input;
      if (!operations.includes(op)) throw unknownWord(vector, op);
      const rig = new Rig();
      rig.enqueueMany(prefilled);
      if (stopped) void rig.flow.close();
      const ticket = rig.enqueue();
      if (then === 'cancel') ticket.abort.abort();
      else if (then === 'stop') void rig.flow.close();
      else if (then === 'drain' || then === 'receive') rig.gate.open();
      else if (then !== undefined) throw unknownWord(vector, then);
      const { error = null, finalized, accepted } = vector.expect;
      const chain = ticket.drop === undefined ? [] : errorChainOf(ticket.drop);
      if (error === null) expect(chain).toEqual([]);
      else expect(chain).toContain(error);
      if (finalized !== undefined) expect(ticket.ends === 1).toBe(finalized);
      if (accepted !== undefined) expect(ticket.state === 'queued' || ticket.state === 'Dispatched').toBe(accepted);
    },
  ),
};
