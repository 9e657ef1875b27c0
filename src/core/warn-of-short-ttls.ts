/** Times to live that were probably meant in seconds: options take milliseconds. */
import { type Clock, realClock } from '../base/clock.js';
import { warnOperator } from '../base/faults/warn-operator.js';
import type { FlowControllerOptions } from './options.js';

const shortMs = 1000;

/** Warns of plain numbers below a second. On a clock of its own a host simulates, and means what it says. */
export function warnOfShortTtls(options: Partial<FlowControllerOptions<never>>, clock: Clock): void {
  if (clock !== realClock) return;
  const { defaultRequestTtl, noEndpointRequestTtl, bands = [], defaultBand, defaultNegativeBand } = options;
  warn('defaultRequestTtl', defaultRequestTtl);
  warn('noEndpointRequestTtl', noEndpointRequestTtl);
  warn('defaultBand.requestTtl', defaultBand?.requestTtl);
  warn('defaultNegativeBand.requestTtl', defaultNegativeBand?.requestTtl);
  for (const [index, { requestTtl }] of bands.entries()) warn(`bands[${index}].requestTtl`, requestTtl);
}

function warn(path: string, ttl: unknown): void {
  if (typeof ttl !== 'number' || ttl === 0 || ttl >= shortMs) return;
  warnOperator(
    `${path} is ${ttl}, which is ${ttl} ms. Write "${ttl}s" if you mean seconds, and "${ttl}ms" if you mean it.`,
  );
}
