/**
 * How far tenants are from equal service, as the VTC paper measures it. A request's cost, prompt + 2 · output, counts
 * as served evenly from its first token to its last: the artifact's way, which smears the prompt over the decode phase.
 * At each tick it takes the service per second of each tenant in a window. It compares this with the largest service of
 * a tenant and with what the tenant asked for, whichever is less. What is missing is summed over the tenants. Source:
 * Sheng et al., "Fairness in serving large language models" (OSDI '24), §5.1; artifact, fair_bench/plot/visualize.py.
 */
import { put } from '../../base/put.js';
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import type { RequestRecord } from '../requests/sim-request.js';
import { checkArguments } from '../schemas.js';

export interface ServiceDifferenceOptions {
  /** The time looked at, ms. @default 600,000 */
  readonly duration?: number | undefined;
  /** @default 20 */
  readonly ticks?: number | undefined;
  /** Width of the window around each tick, ms. @default 60,000 */
  readonly window?: number | undefined;
  /** Ticks are later by this, ms. @default 30,000 */
  readonly warmUp?: number | undefined;
  /** @default 1 */
  readonly promptTokenPrice?: number | undefined;
  /** @default 2 */
  readonly completionTokenPrice?: number | undefined;
}

/** Cost per second, summed over tenants; at the tick where it is largest, and on average. */
export interface ServiceDifference {
  readonly max: number;
  readonly mean: number;
  /** At each tick. */
  readonly ticks: readonly number[];
  /** Largest difference of the service that two tenants received since the start, in cost, at any tick. */
  readonly maxAccumulated: number;
}

interface Span {
  readonly arrivedAtMs: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly cost: number;
}

const someRequests = s.list(
  s.value('a record of a request', (given): given is RequestRecord => {
    const { tenant, promptTokens, outputTokens }: Record<string, unknown> = { ...Object(given) };
    return typeof tenant === 'string' && [promptTokens, outputTokens].every(Number.isFinite);
  }),
);

/** In a scenario, spans of time may be written as such: `'10m'`. */
export const differenceOptions: Schema<{ readonly [K in keyof ServiceDifferenceOptions]-?: number }> = s.object({
  duration: s.optional(s.durationAboveZero('10m'), 600_000),
  ticks: s.optional(s.positiveInteger(), 20),
  window: s.optional(s.durationAboveZero('60s'), 60_000),
  warmUp: s.optional(s.duration('30s'), 30_000),
  promptTokenPrice: s.optional(s.atLeastZero(), 1),
  completionTokenPrice: s.optional(s.atLeastZero(), 2),
} satisfies Record<keyof ServiceDifferenceOptions, unknown>);

/** 0 with one tenant, NaN where nobody was served. `requests`: of a SimulationResult. @throws FlowConfigError */
export function serviceDifference(
  requests: readonly RequestRecord[],
  options: ServiceDifferenceOptions = {},
): ServiceDifference {
  const subject = 'serviceDifference';
  checkArguments(subject, { requests, options }, { requests: someRequests, options: differenceOptions });
  const { ticks, promptTokenPrice, completionTokenPrice, ...spans } = s.parse(differenceOptions, options, subject);
  const { duration, window, warmUp } = spans;
  const byTenant = new Map<string, Span[]>();
  for (const { tenant, arrivedAtMs, firstTokenAtMs = NaN, endedAtMs = NaN, ...tokens } of requests) {
    const cost = tokens.promptTokens * promptTokenPrice + tokens.outputTokens * completionTokenPrice;
    const spans = byTenant.get(tenant) ?? put(byTenant, tenant, []);
    spans.push({ arrivedAtMs, fromMs: firstTokenAtMs, toMs: endedAtMs, cost });
  }
  const tenants = [...byTenant.values()];
  let maxAccumulated = 0;
  const differences = Array.from({ length: ticks }, (_, tick) => {
    const atMs = (duration / ticks) * tick + warmUp;
    const [fromMs, toMs] = [atMs - window / 2, atMs + window / 2];
    const served = tenants.map((spans) => (servedIn(spans, fromMs, toMs) * 1000) / window);
    const asked = tenants.map((spans) => {
      const inWindow = spans.filter(({ arrivedAtMs }) => arrivedAtMs >= fromMs && arrivedAtMs <= toMs);
      return (inWindow.reduce((sum, { cost }) => sum + cost, 0) * 1000) / window;
    });
    const most = Math.max(0, ...served);
    const sums = tenants.map((spans) => servedIn(spans, 0, (duration / ticks) * tick));
    maxAccumulated = Math.max(maxAccumulated, Math.max(...sums) - Math.min(...sums));
    const missing = served.map((service, index) => Math.min(most - service, Math.abs(asked[index]! - service)));
    return missing.reduce((sum, difference) => sum + difference, 0);
  });
  if (requests.every(({ firstTokenAtMs }) => firstTokenAtMs === undefined))
    return { max: NaN, mean: NaN, ticks: differences, maxAccumulated: NaN };
  const mean = differences.reduce((sum, difference) => sum + difference, 0) / differences.length;
  return { max: Math.max(...differences), mean, ticks: differences, maxAccumulated };
}

function servedIn(spans: readonly Span[], fromMs: number, toMs: number): number {
  let sum = 0;
  for (const span of spans) {
    const overlap = Math.min(toMs, span.toMs) - Math.max(fromMs, span.fromMs);
    if (overlap > 0) sum += (span.cost * overlap) / (span.toMs - span.fromMs);
  }
  return sum;
}
