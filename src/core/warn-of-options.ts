/** Warns of options that are right and probably not meant. A host with a clock of its own simulates, and means them. */
import { type Clock, realClock } from '../base/clock.js';
import { warnOperator } from '../base/faults/warn-operator.js';
import type { FlowControllerOptions, ResolvedOptions } from './options.js';

const shortMs = 1000;

/** Warns of times to live below a second: they were probably meant in seconds, and options take milliseconds. */
export function warnOfShortTtls(options: Partial<FlowControllerOptions<never>>, clock: Clock): void {
  if (clock !== realClock) return;
  for (const name of ['defaultRequestTtl', 'noEndpointRequestTtl'] as const) warn(name, options[name]);
  const { bands = [], ...templates } = options;
  for (const name of ['defaultBand', 'defaultNegativeBand'] as const)
    warn(`${name}.requestTtl`, templates[name]?.requestTtl);
  for (const [index, { requestTtl }] of bands.entries()) warn(`bands[${index}].requestTtl`, requestTtl);
}

function warn(path: string, ttl: unknown): void {
  if (typeof ttl !== 'number' || ttl === 0 || ttl >= shortMs) return;
  warnOperator(
    `${path} is ${ttl}, which is ${ttl} ms. Write "${ttl}s" if you mean seconds, and "${ttl}ms" if you mean it.`,
  );
}

/** Warns when limits of bands add up to more than that of all: lower bands may fill the queue; higher are rejected. */
export function warnOfLimits({ bands = [] }: Partial<FlowControllerOptions<never>>, resolved: ResolvedOptions): void {
  if (resolved.clock !== realClock || resolved.overflow !== 'reject') return;
  for (const name of ['maxRequests', 'maxBytes'] as const) {
    const limited = bands.filter(({ limits }) => limits?.[name] !== undefined).map(({ priority }) => priority);
    const own = resolved.bands.filter(({ priority }) => limited.includes(priority)).map(({ limits }) => limits[name]);
    const sum = own.reduce((total, limit) => total + limit, 0);
    const all = resolved.limits[name];
    if (own.length < 2 || sum === Infinity || sum <= all) continue;
    const together = `limits.${name} of the bands add up to ${sum}, more than the ${all} of all`;
    warnOperator(`${together}: lower bands can fill the queue. With overflow: 'fair' higher ones pass.`);
  }
}
