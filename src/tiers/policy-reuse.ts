/** Keeps equal policies in place of new ones, so that a file that is read again loses nothing they have learnt. */
import { isSamePlugin } from '../base/plugin-origin.js';
import type { BandSettings } from './priority-band.js';

export class PolicyReuse {
  /** New policy → the one in use that stands for it: bands that come later share what the others share. */
  private readonly kept = new Map<object, object>();

  /** `before`: the settings in force; undefined for a band that is new. Call it first for bands that exist. */
  of<S extends BandSettings>(next: S, before: BandSettings | undefined): S {
    const fairness = this.choose(next.fairness, before?.fairness);
    const ordering = this.choose(next.ordering, before?.ordering);
    return fairness === next.fairness && ordering === next.ordering ? next : { ...next, fairness, ordering };
  }

  private choose<P extends object>(next: P, before: P | undefined): P {
    if (before === undefined || !isSamePlugin(before, next)) return (this.kept.get(next) as P | undefined) ?? next;
    if (!this.kept.has(next)) this.kept.set(next, before);
    return before;
  }
}
