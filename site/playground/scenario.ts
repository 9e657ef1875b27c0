/** The settings as a scenario, the very one that the playground runs: `headgate simulate` takes it as it is printed. */
import { stringify } from 'yaml';
import { lengthS, quotasOf, type Settings } from './settings.ts';

/** Plain data, with the names and the order of the file. */
export function scenarioOf(settings: Settings): object {
  const { tenants, servers, outage, slow, slowness, faultAt, faultFor } = settings;
  const fault = (server: number): object => ({
    server: servers === 1 ? 'gpu' : `gpu-${server - 1}`,
    at: `${faultAt}s`,
    for: `${faultFor}s`,
  });
  return {
    name: 'playground',
    duration: `${lengthS}s`,
    drain: '0s',
    servers: [{ name: 'gpu', count: servers, model: 'continuous-batching', kvTokens: 60_000 }],
    traffic: tenants.map(({ name, rate, prompt, answer, priority }) => ({
      tenant: name,
      priority,
      arrivals: { type: 'poisson', rate },
      promptTokens: { type: 'lognormal', mean: prompt, sigma: 0.5 },
      outputTokens: { type: 'exponential', mean: answer },
    })),
    ...(outage > 0 && { outages: [fault(outage)] }),
    ...(slow > 0 && { slowdowns: [{ ...fault(slow), factor: slowness }] }),
    plugins: [
      ...detectorsOf(settings),
      { type: settings.fairness },
      { type: settings.ordering },
      ...(settings.ceiling < 100
        ? [{ type: 'priority-holdback-policy', parameters: { minCeiling: settings.ceiling / 100 } }]
        : []),
    ],
    flowControl: flowControlOf(settings),
  };
}

export function scenarioText(settings: Settings): string {
  return stringify(scenarioOf(settings), { flowCollectionPadding: true, lineWidth: 0, collectionStyle: 'any' });
}

/** From the highest to the lowest; priority 0 exists whether it is used or not. */
export function prioritiesOf({ tenants }: Settings): number[] {
  return [...new Set([0, ...tenants.map(({ priority }) => priority)])].sort((a, b) => b - a);
}

/** Seats, and quotas where there are any. The first of them is the gate. */
function detectorsOf(settings: Settings): object[] {
  const seats = { type: 'concurrency-detector', parameters: { maxConcurrency: settings.seats } };
  const quotas = quotasOf(settings);
  if (quotas.length === 0) return [seats];
  return [
    { type: 'max-saturation-detector', parameters: { detectors: ['concurrency-detector', 'quota-detector'] } },
    seats,
    { type: 'quota-detector', parameters: { output: 'average', groups: [{ quotas }] } },
  ];
}

function flowControlOf(settings: Settings): object {
  const { queue, tenantQueue, ttl, ceiling, evicts, fairness, ordering } = settings;
  return {
    saturationDetector: {
      pluginRef: quotasOf(settings).length === 0 ? 'concurrency-detector' : 'max-saturation-detector',
    },
    maxRequests: String(queue),
    maxBytes: '1G',
    overflow: 'fair',
    defaultRequestTTL: `${ttl}s`,
    ...(ceiling < 100 && { usageLimitPolicyPluginRef: 'priority-holdback-policy' }),
    ...(evicts && { enableEviction: true }),
    priorityBands: prioritiesOf(settings).map((priority) => ({
      priority,
      maxRequests: String(queue),
      ...(tenantQueue > 0 && { flowLimits: { maxRequests: String(tenantQueue) } }),
      fairnessPolicyRef: fairness,
      orderingPolicyRef: ordering,
    })),
  };
}
