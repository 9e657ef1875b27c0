/**
 * Asks the host once more whether a waiting request may still run, when its turn comes. Its credentials may have become
 * void in the meantime, such as a key that was revoked. Invariant: if the host's function fails, the request may go, as
 * if there were no function; the failure is a plugin error.
 */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard } from '../../base/faults/plugin-guard.js';
import type { ItemView } from '../../tiers/views.js';
import type { Drops } from './drops.js';
import type { Part } from './parts.js';

/** Undefined: it may run. A text: why it may not, for the client. */
export type RevalidationFunction = (item: ItemView) => string | undefined;

export function revalidation(ask: RevalidationFunction, drops: Drops, errors: PluginErrorSink): Part {
  const guard = new PluginGuard('onDispatch', { type: 'onDispatch' }, errors);

  /** Why the request may not run any more; undefined when it may. */
  function objection(item: ItemView): string | undefined {
    try {
      const answer: unknown = ask(item);
      if (answer === undefined || (typeof answer === 'string' && answer !== '')) return answer;
      guard.violated('onDispatch must return undefined, or a text that says why not, at once', answer);
    } catch (error) {
      guard.failed(error);
    }
    return undefined;
  }

  return {
    revokes(item) {
      const detail = objection(item);
      if (detail !== undefined) drops.evict(item, 'EvictedOther', 'revoked', { detail });
      return detail !== undefined;
    },
  };
}
