/**
 * Asks the host once more whether a waiting request may still run, when its turn comes. Its credentials may have become
 * void in the meantime, such as a key that was revoked. Invariant: if the host's function fails, the request may go, as
 * if there were no function; the failure is a plugin error.
 */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard, question, wrong } from '../../base/faults/plugin-guard.js';
import type { ItemView } from '../../tiers/views.js';
import type { Drops } from './drops.js';
import type { Part } from './parts.js';

/** Undefined: it may run. A text: why it may not, for the client. */
export type RevalidationFunction = (item: ItemView) => string | undefined;

const refusal = question('onDispatch', 'undefined, or a text that says why not, at once', (answer) =>
  answer === undefined || (typeof answer === 'string' && answer !== '') ? answer : wrong,
);

export function revalidation(onDispatch: RevalidationFunction, drops: Drops, errors: PluginErrorSink): Part {
  const host = { onDispatch };
  const guard = new PluginGuard('onDispatch', { type: 'onDispatch' }, errors);
  return {
    revokes(item) {
      const detail = guard.ask(host, refusal, item);
      if (detail !== undefined) drops.evict(item, 'EvictedOther', 'revoked', { detail });
      return detail !== undefined;
    },
  };
}
