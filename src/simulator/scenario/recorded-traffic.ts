/** Replaces the traffic of a scenario by recorded traffic. */
import type { TraceRow } from '../traces/trace-row.js';

/** The rows, for as long as they last. Clients and targets are those of the first entry of the scenario's traffic. */
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
