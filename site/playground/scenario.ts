/** The settings as a scenario, the very one that the playground runs: `headgate simulate` takes it as it is printed. */
import { stringify } from 'yaml';
import { isOn } from './faults.ts';
import { type Fault, lengthS, ofReplica, quotasOf, type Settings } from './settings.ts';

/** Plain data, with the names and the order of the file. */
export function scenarioOf(all: Settings, replica = 0): object {
  const settings = ofReplica(all, replica);
  const { tenants, servers, slowness, faults } = settings;
  const fault = ({ of, at, for: lengthS }: Fault): object => ({
    server: servers === 1 ? 'gpu' : `gpu-${of - 1}`,
    at: `${at}s`,
    for: `${lengthS}s`,
  });
  const outages = faults.filter(({ kind }) => kind === 'outage').map(fault);
  const slowdowns = faults.filter(({ kind }) => kind === 'slow').map((each) => ({ ...fault(each), factor: slowness }));
  return {
    name: 'playground',
    duration: `${lengthS}s`,
    drain: '0s',
    servers: [{ name: 'gpu', count: servers, model: 'continuous-batching', kvTokens: 60_000 }],
    traffic: tenants.map(({ name, prompt, answer, priority }, index) => ({
      tenant: name,
      priority,
      arrivals: { type: 'poisson', rate: rateOf(settings, index) },
      promptTokens: { type: 'lognormal', mean: prompt, sigma: 0.5 },
      outputTokens: { type: 'exponential', mean: answer },
    })),
    ...(outages.length > 0 && { outages }),
    ...(slowdowns.length > 0 && { slowdowns }),
    ...(hasLedger(settings) && { usageReports: 'stream' }),
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
  const text = stringify(scenarioOf(settings), { flowCollectionPadding: true, lineWidth: 0, collectionStyle: 'any' });
  return [...notesOf(settings).map((note) => `# ${note}\n`), text].join('');
}

/** What a scenario has no words for. */
function notesOf(settings: Settings): string[] {
  const { replicas, budget, faults } = settings;
  const others = faults.filter(({ kind }) => kind === 'cut' || kind === 'reload' || kind === 'miscount');
  return [
    ...(replicas > 1
      ? [`The first of ${replicas} replicas, with 60 % of the traffic. Gateways share by their section sharedState.`]
      : []),
    ...(budget > 0
      ? [`Budgets stand in a gateway's file: ${ofReplica(settings).budget} tokens a minute for each tenant.`]
      : []),
    ...others.map(({ kind, at, for: lengthS }) => `Not in it: ${kind} at ${at}s for ${lengthS}s.`),
  ];
}

/** A number, or steps where there are floods. */
function rateOf({ tenants, faults, flood }: Settings, index: number): number | object {
  const { rate = 0 } = tenants[index] ?? {};
  const floods = faults.filter(({ kind, of }) => kind === 'flood' && of === index + 1);
  if (floods.length === 0) return rate;
  const seconds = [...new Set([0, ...floods.flatMap(({ at, for: lengthS }) => [at, at + lengthS])])];
  const steps = seconds
    .sort((a, b) => a - b)
    .map((at) => ({ at: `${at}s`, rate: floods.some((each) => isOn(each, at)) ? rate * flood : rate }));
  return { type: 'steps', steps };
}

export function hasLedger({ kvCache, prefill }: Settings): boolean {
  return kvCache > 0 || prefill > 0;
}

/** The limits of the ledger: what is not counted is left out. */
export function ledgerOf({ kvCache, prefill }: Settings): { kvTokens?: number; prefillTokens?: number } {
  return { ...(kvCache > 0 && { kvTokens: kvCache }), ...(prefill > 0 && { prefillTokens: prefill }) };
}

/** From the highest to the lowest; priority 0 exists whether it is used or not. */
export function prioritiesOf({ tenants }: Settings): number[] {
  return [...new Set([0, ...tenants.map(({ priority }) => priority)])].sort((a, b) => b - a);
}

/** Seats, which are the gate, and what judges each request by itself. */
function detectorsOf(settings: Settings): object[] {
  const quotas = quotasOf(settings);
  return [
    { type: 'concurrency-detector', parameters: { maxConcurrency: settings.seats } },
    ...(quotas.length > 0 ? [{ type: 'quota-detector', parameters: { output: 'average', groups: [{ quotas }] } }] : []),
    ...(hasLedger(settings) ? [{ type: 'capacity-ledger', parameters: ledgerOf(settings) }] : []),
  ];
}

function flowControlOf(settings: Settings): object {
  const { queue, tenantQueue, ttl, ceiling, evicts, fairness, ordering } = settings;
  const constraints = [
    ...(quotasOf(settings).length > 0 ? ['quota-detector'] : []),
    ...(hasLedger(settings) ? ['capacity-ledger'] : []),
  ];
  return {
    saturationDetector: { pluginRef: 'concurrency-detector' },
    ...(constraints.length > 0 && { constraintPluginRefs: constraints }),
    headroom: 'required',
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
