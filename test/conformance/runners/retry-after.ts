/**
 * The proposed estimator of Retry-After: dispatches are counted, folded into a rate now and then, and a request that
 * finds its band full is told when to come back. Here the band measures its own rate, and the drop tells the time.
 */
import { expect } from 'vitest';
import { Rig } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';

interface Step {
  readonly op: string;
  readonly atSeconds?: number;
  readonly priority?: number;
  readonly count?: number;
}

interface Estimator {
  priority: number;
  /** Which limit the request runs into. */
  bandTripped: boolean;
  globalTripped: boolean;
  ewmaAlpha: number;
  foldEverySeconds: number;
  capSeconds: number;
  steps: readonly Step[];
}

const full = { maxRequests: 1, maxBytes: Number.POSITIVE_INFINITY };

export const retryAfterRunners: Runners = {
  'retryAfter.estimator': runner<Estimator, { hintSeconds: readonly (number | null)[] }>(
    {
      input: ['priority', 'bandTripped', 'globalTripped', 'ewmaAlpha', 'foldEverySeconds', 'capSeconds', 'steps'],
      expect: ['hintSeconds'],
    },
    (vector) => {
      const { priority: own, bandTripped, globalTripped, capSeconds, steps } = vector.input;
      const priorities = [...new Set([own, ...steps.map(({ priority = own }) => priority)])];
      const bands = priorities.map((priority) => ({
        priority,
        limits: bandTripped && priority === own ? full : undefined,
      }));
      const rig = new Rig({ bands, defaultRequestTtl: 0 });
      const hints = steps.flatMap(({ op, atSeconds, priority = own, count = 1 }) => {
        if (atSeconds !== undefined) rig.advanceTo(atSeconds * 1000);
        if (op === 'dispatch') {
          for (let index = 0; index < count; index++) {
            rig.gate.open(1);
            rig.enqueue({ priority }).lease?.release();
          }
          rig.gate.close();
          return [];
        }
        // Rates need no folding here.
        if (op === 'fold' || op === 'advance') return [];
        if (op !== 'hint') throw unknownWord(vector, op);
        if (globalTripped) rig.flow.reconfigure({ limits: full });
        const waiting = rig.enqueue({ priority: own });
        const { drop } = rig.enqueue({ priority: own });
        waiting.abort.abort();
        if (globalTripped) rig.flow.reconfigure({ limits: { maxRequests: Number.POSITIVE_INFINITY } });
        return [drop?.retryAfterMs === undefined ? null : Math.min(Math.ceil(drop.retryAfterMs / 1000), capSeconds)];
      });
      expect(hints).toEqual(vector.expect.hintSeconds);
    },
  ),
};
