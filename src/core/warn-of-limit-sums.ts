/**
 * Limits of bands that add up to more than that of all: lower bands can then fill the queue, and a full queue rejects
 * higher ones.
 */
import { realClock } from '../base/clock.js';
import { warnOperator } from '../base/faults/warn-operator.js';
import type { FlowControllerOptions, ResolvedOptions } from './options.js';

/**
 * Warns if no request leaves for a higher band. Bands without a limit of their own do not count; neither does a host
 * that simulates.
 */
export function warnOfLimitSums(
  { bands = [] }: Partial<FlowControllerOptions<never>>,
  resolved: ResolvedOptions,
): void {
  if (resolved.clock !== realClock || resolved.overflow !== 'reject') return;
  for (const name of ['maxRequests', 'maxBytes'] as const) {
    const limited = bands.filter(({ limits }) => limits?.[name] !== undefined).map(({ priority }) => priority);
    const own = resolved.bands.filter(({ priority }) => limited.includes(priority)).map(({ limits }) => limits[name]);
    const sum = own.reduce((total, limit) => total + limit, 0);
    const all = resolved.limits[name];
    if (own.length < 2 || sum === Number.POSITIVE_INFINITY || sum <= all) continue;
    const together = `limits.${name} of the bands add up to ${sum}, more than the ${all} of all`;
    warnOperator(
      `${together}: lower bands can fill the queue, and higher ones are rejected then. Write overflow: 'fair' to let these pass.`,
    );
  }
}
