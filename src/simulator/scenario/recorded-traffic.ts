/** Recorded traffic in the place of a scenario's. */
import type { TraceRow } from '../traces/trace-row.js';

/**
 * The rows, for as long as they last; what the first entry of the scenario's traffic says of clients and targets stays.
 */
export function recordedTraffic(
  rows: readonly TraceRow[],
  { traffic }: { readonly traffic?: unknown },
): Record<string, unknown> {
  const first: unknown = Array.isArray(traffic) ? traffic[0] : undefined;
  const { slo, client, sloTtft }: Record<string, unknown> = { ...Object(first) };
  return {
    duration: (rows.at(-1)?.arrivalMs ?? 0) + 1,
    traffic: [
      {
        arrivals: { type: 'trace', rows },
        ...(slo !== undefined && { slo }),
        ...(client !== undefined && { client }),
        ...(sloTtft !== undefined && { sloTtft }),
      },
    ],
  };
}
