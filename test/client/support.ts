/**
 * A gateway in the test's hand: a fetch that gives the answers it is told, and a client that waits on a manual clock.
 */

import { type Fetch, type RetryOptions, retrying } from '../../src/client/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { turns } from '../support/flow.js';

export type Answer = () => Response | Promise<Response>;

export function answer(status: number, headers: Record<string, string> = {}, body: string | null = 'refused'): Answer {
  return () => new Response(body, { status, headers });
}

export const served: Answer = answer(200, {}, 'served');
export const saturated: Answer = answer(429, {
  'retry-after': '1',
  'x-llm-d-request-dropped-reason': 'rejected-saturated',
});

export interface Rig {
  readonly send: Fetch;
  readonly clock: ManualClock;
  /** Every call of the inner fetch. */
  readonly calls: {
    readonly input: string | URL | Request;
    readonly init: RequestInit | undefined;
    readonly atMs: number;
  }[];
}

/** Gives the answers one after the other, the last one for ever. There is no jitter unless `options` bring it. */
export function rig(answers: readonly Answer[], options: RetryOptions = {}): Rig {
  const clock = new ManualClock();
  const calls: Rig['calls'] = [];
  const send = retrying(
    async (input, init) => {
      init?.signal?.throwIfAborted();
      const next = answers[Math.min(calls.length, answers.length - 1)];
      calls.push({ input, init, atMs: clock.now() });
      if (next === undefined) throw new Error('no answer');
      return next();
    },
    { clock, random: () => 0, ...options },
  );
  return { send, clock, calls };
}

/** Lets the request go on until it is served or waits. */
export async function advance(clock: ManualClock, ms: number): Promise<void> {
  await turns(30);
  clock.advance(ms);
  await turns(30);
}
