/** Which window a configured quota is counted in: one of this process alone, or one of a source that many share. */

import { GcraWindow } from '../../base/gcra-window.js';
import type { QuotaSource, QuotaWindow } from '../../base/quota-window.js';
import { FixedWindow } from './fixed-window.js';
import type { ResolvedQuota } from './quota-options.js';
import { SlidingWindow } from './sliding-window.js';

export type WindowFactory = (quota: ResolvedQuota, group: string) => QuotaWindow;

/** Windows of this process alone. A request counted up to `travelMs` later must fit the provider's window. */
export function localWindows(travelMs: number): WindowFactory {
  return ({ limit, per, burst = limit, window }) => {
    if (window === 'fixed') return new FixedWindow(limit, per + travelMs);
    if (window === 'sliding') return new SlidingWindow(limit, per + travelMs);
    return new GcraWindow(limit, per, burstOf(limit, per, burst, travelMs));
  };
}

/** Windows that are taken from `source`; those that are not `gcra` are of this process alone. */
export function windowsFrom(source: QuotaSource, travelMs: number, onRoom: () => void): WindowFactory {
  const ofOwn = localWindows(travelMs);
  return (quota, group) => {
    const { unit, limit, per: perMs, window, burst: given = limit } = quota;
    if (window !== 'gcra') return ofOwn(quota, group);
    const burst = burstOf(limit, perMs, given, travelMs);
    return source.window({ key: `${group} ${unit} ${perMs}`, limit, perMs, burst, onRoom });
  };
}

function burstOf(limit: number, perMs: number, burst: number, travelMs: number): number {
  return Math.max(burst - (limit * travelMs) / perMs, Math.min(burst, 1));
}
