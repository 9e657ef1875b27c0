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
import type { QueueItem } from './queue-item.js';

/** Undefined: it may run. A text: why it may not, for the client. */
export type RevalidationFunction = (item: ItemView) => string | undefined;

export class Revalidation implements Part {
  private readonly ask: RevalidationFunction;
  private readonly drops: Drops;
  private readonly guard: PluginGuard;

  constructor(ask: RevalidationFunction, drops: Drops, errors: PluginErrorSink) {
    this.ask = ask;
    this.drops = drops;
    this.guard = new PluginGuard('onDispatch', { type: 'onDispatch' }, errors);
  }

  revokes(item: QueueItem): boolean {
    const detail = this.objection(item);
    if (detail === undefined) return false;
    this.drops.evict(item, 'EvictedOther', 'revoked', { detail });
    return true;
  }

  /** Why the request may not run any more; undefined when it may. */
  private objection(item: ItemView): string | undefined {
    try {
      const answer: unknown = this.ask(item);
      if (answer === undefined || (typeof answer === 'string' && answer !== '')) return answer;
      this.guard.violated('onDispatch must return undefined, or a text that says why not, at once', answer);
    } catch (error) {
      this.guard.failed(error);
    }
    return undefined;
  }
}
