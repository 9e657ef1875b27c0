/** Scores that never throw and are always a number. */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard } from '../../base/faults/plugin-guard.js';
import type { Scores } from '../../base/queues/scored-queue.js';
import type { ItemView } from '../views.js';
import type { OrderingPolicy } from './ordering-policy.js';

/** Undefined for policies without scores. A score that fails counts as 0. */
export function guardedScores(policy: OrderingPolicy, errors: PluginErrorSink): Scores<ItemView> | undefined {
  const guard = new PluginGuard('ordering', policy, errors);
  const scores = guard.read(policy, 'scores');
  if (scores === undefined) return undefined;
  const count = (name: 'lookahead' | 'overtakings', least: number): number => {
    const given: unknown = guard.read(scores, name);
    if (Number.isInteger(given) && (given as number) >= least) return given as number;
    guard.violated(`scores.${name} must be an integer from ${least} up`, given);
    return least;
  };
  return {
    lookahead: count('lookahead', 1),
    overtakings: count('overtakings', 0),
    score(item) {
      try {
        const score: unknown = scores.score(item);
        if (typeof score === 'number' && !Number.isNaN(score)) return score;
        guard.violated('score must return a number', score);
      } catch (error) {
        guard.failed(error);
      }
      return 0;
    },
    dispatched(item) {
      try {
        const answer: unknown = scores.dispatched?.(item);
        if (answer !== undefined) guard.ignored(answer);
      } catch (error) {
        guard.failed(error);
      }
    },
  };
}
