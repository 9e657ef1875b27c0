/** Scores that never throw and are always a number. */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import type { Scores } from '../../base/queues/scored-queue.js';
import type { ItemView } from '../views.js';
import type { OrderingPolicy } from './ordering-policy.js';

/** Undefined for policies without. What is at fault scores 0. */
export function guardedScores({ type, scores }: OrderingPolicy, errors: PluginErrorSink): Scores<ItemView> | undefined {
  if (scores === undefined) return undefined;
  const { lookahead, overtakings } = scores;
  return {
    lookahead,
    overtakings,
    score(item) {
      try {
        const score: unknown = scores.score(item);
        if (typeof score === 'number' && !Number.isNaN(score)) return score;
        errors.pluginFailed('ordering', type, new TypeError(`score must return a number; got ${String(score)}`));
      } catch (error) {
        errors.pluginFailed('ordering', type, error);
      }
      return 0;
    },
    dispatched(item) {
      try {
        scores.dispatched?.(item);
      } catch (error) {
        errors.pluginFailed('ordering', type, error);
      }
    },
  };
}
