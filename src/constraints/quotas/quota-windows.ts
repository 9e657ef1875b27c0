/** Which window a configured quota is counted in: one of this process alone, or one of a source that many share. */
import { GcraWindow } from '../../base/gcra-window.js';
import type { QuotaSource, QuotaWindow } from '../../base/quota-window.js';
import { FixedWindow } from './fixed-window.js';
import type { ResolvedQuota } from './quota-options.js';
import { SlidingWindow } from './sliding-window.js';

export type WindowFactory = (quota: ResolvedQuota, group: string) => QuotaWindow;

/** Windows of this process, or of `source` for `gcra`. What counts up to `travelMs` later must fit the provider's. */
export function windowsOf(travelMs: number, source?: QuotaSource, onRoom: () => void = () => {}): WindowFactory {
  return ({ unit, limit, per: perMs, burst: given = limit, window }, group) => {
    if (window === 'fixed') return new FixedWindow(limit, perMs + travelMs);
    if (window === 'sliding') return new SlidingWindow(limit, perMs + travelMs);
    const burst = Math.max(given - (limit * travelMs) / perMs, Math.min(given, 1));
    if (source === undefined) return new GcraWindow(limit, perMs, burst);
    return source.window({ key: `${group} ${unit} ${perMs}`, limit, perMs, burst, onRoom });
  };
}
