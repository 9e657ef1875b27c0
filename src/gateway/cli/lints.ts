/** Lints: settings that are each valid but do not go together. Every sentence names both. */
import { groupLabel } from '../../base/endpoint-turns.js';
import { Problems } from '../../base/problems.js';
import { parseDuration } from '../../base/schema/duration.js';
import { readYaml } from '../../config/read-yaml.js';
import type { GatewayConfig } from '../index.js';
import type { SenderConfig } from '../settings/gateway-config.js';
import { withPlans } from '../settings/plan-budgets.js';
import type { Resolved } from './effective-settings.js';
import { bytes, ms } from './format-numbers.js';

/** The official clients of OpenAI give up then, unless told otherwise. */
const clientTimeoutMs = 600_000;
/** The time that Kubernetes gives a process to end, by default. */
const terminationGraceMs = 30_000;

/** One sentence for each finding. */
export type Lints = Generator<string, void, undefined>;
type Objectives = ReadonlyMap<string, number>;

export function* flowLints(options: Resolved, objectives: Objectives): Lints {
  for (const lints of [limitLints, ttlLints, bandLints, headroomLints, groupLints]) yield* lints(options, objectives);
}

function* limitLints({ limits, bands }: Resolved): Lints {
  for (const { priority, limits: own } of bands) {
    if (limits.maxRequests < own.maxRequests && own.maxRequests !== Infinity)
      yield `band ${priority} may hold ${own.maxRequests} requests, but all bands together only ${limits.maxRequests} (maxRequests)`;
    if (limits.maxBytes < own.maxBytes && own.maxBytes !== Infinity)
      yield `band ${priority} may hold ${bytes(own.maxBytes)}, but all bands together only ${bytes(limits.maxBytes)} (maxBytes)`;
  }
}

function* ttlLints({ bands }: Resolved): Lints {
  for (const { priority, requestTtlMs } of bands)
    if (requestTtlMs > clientTimeoutMs)
      yield `band ${priority} lets requests wait ${ms(requestTtlMs)}; clients of OpenAI's interface give up after ${ms(clientTimeoutMs)} in all`;
}

function* bandLints({ bands, eviction }: Resolved, objectives: Objectives): Lints {
  const known = new Set(bands.map(({ priority }) => priority));
  for (const [name, priority] of objectives)
    if (!known.has(priority))
      yield `objective ${name} has priority ${priority}, for which there is no band: the default band's settings apply`;
  const sheddable = [...known, ...objectives.values()].some((priority) => priority < 0);
  if (eviction?.filter.type === 'sheddable-eviction-filter' && !sheddable)
    yield 'enableEviction is on, but no priority is negative: nothing can be evicted';
}

/** Bands that may use every group, paid ones too, beside others that may not. */
function* groupLints({ bands, defaultBand, defaultNegativeBand }: Resolved): Lints {
  const others = { 'any other': defaultBand, 'other negative ones': defaultNegativeBand };
  const all = [...bands.map((band) => [String(band.priority), band] as const), ...Object.entries(others)];
  const free = all.flatMap(([name, { endpoints }]) => (endpoints === undefined ? name : []));
  if (free.length > 0 && free.length < all.length)
    yield `bands without endpoints may use every server, although others name groups: ${free.join(', ')}`;
}

/** This many waiting requests keep a pool busy for long. */
const longBacklog = 100;

/** A backlog of negative priority fills the pool, and higher ones wait for its answers (docs/simulator.md, row S8). */
function* headroomLints({ bands, mode, usageLimitPolicy, eviction }: Resolved, objectives: Objectives): Lints {
  if (mode === 'admission' || eviction !== undefined || usageLimitPolicy.type !== 'static-usage-limit-policy') return;
  const isShared = bands.length > 1 || [...objectives.values()].some((priority) => priority >= 0);
  for (const { priority, limits, saturationDetector } of bands)
    if (isShared && priority < 0 && limits.maxRequests > longBacklog && saturationDetector === undefined)
      yield `band ${priority} may fill the pool, so that bursts above it wait for its answers to end: hold room back (usageLimitPolicyPluginRef with priority-holdback-policy), or set enableEviction`;
}

/** Above this threshold of servers' queues priority is worth little: no request can pass one that is in a server. */
const deepQueue = 2;

/** `silentDepth`: what a file means that does not name the threshold. */
export function* depthLints(
  { bands, saturationDetector }: Resolved,
  objectives: Objectives,
  declared: Declared,
  silentDepth: number,
): Lints {
  const priorities = new Set([...bands.map(({ priority }) => priority), ...objectives.values()]);
  const named = declaredPlugins(declared, 'utilization-detector');
  const isImplied = named.length === 0 && saturationDetector.type === 'utilization-detector';
  const depths = (isImplied ? [{ queueDepthThreshold: silentDepth }] : named).map(({ queueDepthThreshold }) =>
    Number(queueDepthThreshold ?? silentDepth),
  );
  const deepest = Math.max(0, ...depths);
  if (priorities.size >= 2 && deepest > deepQueue)
    yield `queueDepthThreshold is ${deepest}: requests of high priority stand behind up to ${deepest} others in each server, where nothing is reordered; 1 keeps them in the gateway`;
}

export function* gatewayLints(config: GatewayConfig, options: Resolved, declared: Declared): Lints {
  yield* metricsLints(config, options, declared);
  yield* labelLints(config, declared);
  yield* senderLints(config, options);
  yield* timeLints(config);
  yield* sharedLints(config, declared);
  if (config.families && options.flows.size > 0)
    yield 'families is on: what the file sets for single tenants does not hold for the families that they have';
}

/** Limits that each replica has for itself, and so multiply with the replicas. */
const perReplica: Readonly<Record<string, string>> = {
  'concurrency-detector': 'its limits hold',
  'token-bucket': 'its rate holds',
  'tenant-budgets': 'its budgets hold',
  'gradient2-detector': 'the limit that it finds holds',
  'vegas-detector': 'the limit that it finds holds',
  'aimd-latency-detector': 'the limit that it finds holds',
  'session-limit-detector': 'its sessions are counted',
};

/** State that code can share, and files cannot. */
const inCode: Readonly<Record<string, string>> = { 'session-limit-detector': '; in code sharedSessions() shares them' };

/** Quotas that each replica has for itself. */
function* quotaLints({ quotas }: NonNullable<GatewayConfig['sharedState']>, declared: Declared): Lints {
  const detectors = declaredPlugins(declared, 'quota-detector');
  if (detectors.length === 0) return;
  if (!quotas) yield 'quota-detector: its quotas hold in each replica, because sharedState.quotas is false';
  const written = JSON.stringify(detectors);
  for (const window of quotas ? ['fixed', 'sliding'] : [])
    if (written.includes(`"window":"${window}"`))
      yield `quota-detector: its ${window} windows hold in each replica; only gcra windows are shared`;
}

function* sharedLints({ sharedState, timeouts }: GatewayConfig, declared: Declared): Lints {
  if (sharedState === undefined) return;
  const { leases, limit, limits } = sharedState;
  for (const { type } of declared.plugins)
    if (perReplica[type] !== undefined)
      yield `${type}: ${perReplica[type]} in each replica; only sharedState.${limits ?? 'quotas'} is shared${inCode[type] ?? ''}`;
  yield* quotaLints(sharedState, declared);
  const drainMs = Number(leases.drainDuration ?? 60_000);
  if (limits !== undefined && drainMs < timeouts.total)
    yield `sharedState.drainDuration is ${ms(drainMs)}, but a request may take ${ms(timeouts.total)} (timeouts.total): if a replica falls silent, requests that take longer are no longer counted`;
  if (limits !== undefined && leases.replicas === undefined)
    yield 'sharedState.replicas is not set: a replica that starts while the store is away dispatches nothing until it is back';
  if (leases.replicas !== undefined && leases.replicas > limit && limits === 'maxConcurrency')
    yield `sharedState has ${leases.replicas} replicas for a limit of ${limit}: some get nothing, and their requests wait`;
}

function* metricsLints(config: GatewayConfig, options: Resolved, declared: Declared): Lints {
  const { scrape, upstreams, admin } = config;
  const { saturationDetector, bands, defaultBand } = options;
  const isAsked = scrape !== undefined && upstreams.some(({ metrics }) => metrics !== 'none');
  if (saturationDetector.needsPool === true && !isAsked)
    yield `${saturationDetector.type} reads what servers report, but none is asked (scrape, upstreams[].metrics)`;
  const used = new Set([...bands, defaultBand].flatMap(({ endpoints = [] }) => endpoints.map(({ group }) => group)));
  for (const group of saturationDetector.needsPool === true ? used : [])
    if (upstreams.every(({ labels, metrics }) => labels[groupLabel] !== group || metrics === 'none'))
      yield `group ${group} gets nothing: its servers have no metrics, which ${saturationDetector.type} needs`;
  for (const { metricsStalenessThreshold } of declaredPlugins(declared, 'utilization-detector')) {
    const threshold = String(metricsStalenessThreshold ?? '200ms');
    // A scrape may come a tenth later than its interval says.
    if (scrape === undefined || scrape.interval <= parseDuration(threshold) / 1.1) continue;
    const stale = `but metrics are stale after ${threshold} (metricsStalenessThreshold)`;
    yield `scrape.interval is ${ms(scrape.interval)}, ${stale}: the gate closes in between`;
  }
  if (admin.token === undefined && declaredPlugins(declared, 'busy-threshold-detector').length > 0)
    yield '/busy_threshold rejects everybody: there is no admin.token';
}

function* labelLints({ upstreams, models }: GatewayConfig, declared: Declared): Lints {
  if (upstreams.length === 0) yield 'there are no upstreams: every request waits, and is then dropped';
  for (const { label } of declaredPlugins(declared, 'label-filter'))
    if (typeof label === 'string' && upstreams.every(({ labels }) => labels[label] === undefined))
      yield `label-filter looks at the label "${label}", which no upstream has`;
  const served = upstreams.flatMap(({ labels: { model } }) => (model === undefined ? [] : [model.split(',')]));
  if (served.length > 0 && served.length < upstreams.length)
    yield 'some upstreams have the label "model" and others have not: those without get requests for every model';
  if (upstreams.length === 0 || served.length < upstreams.length) return;
  const names = new Set(served.flat().map((name) => name.trim()));
  for (const [name, target] of Object.entries(models.aliases))
    if (!names.has(target)) yield `models.aliases.${name} leads to "${target}", which no upstream has`;
}

function* senderLints({ listen, admin, auth, limits }: GatewayConfig, { bands, limits: all }: Resolved): Lints {
  const isOpen = !['127.0.0.1', '::1', 'localhost'].includes(listen.host);
  if (isOpen && auth.keys.length === 0)
    yield `everybody who reaches ${listen.host} may send requests: there are no auth.keys`;
  if (isOpen && admin.listen === undefined)
    yield `everybody who reaches ${listen.host} may read /metrics, which names tenants: there is no admin.port`;
  if (isOpen && auth.anonymous?.trusted)
    yield 'auth.anonymous is trusted: whoever comes names any tenant and objective';
  const known = new Set(bands.map(({ priority }) => priority));
  for (const { tenant, priority } of sendersOf(auth))
    if (!known.has(priority))
      yield `tenant ${tenant} has priority ${priority}, for which there is no band: the default band's settings apply`;
  for (const { priority, limits: own } of bands)
    if (Math.min(own.maxBytes, all.maxBytes) < limits.maxRequestBytes)
      yield `a request may have ${bytes(limits.maxRequestBytes)} (limits.maxRequestBytes), more than may wait in band ${priority} (maxBytes)`;
}

function* timeLints({ timeouts, drain }: GatewayConfig): Lints {
  if (timeouts.firstByte > timeouts.total)
    yield `timeouts.firstByte (${ms(timeouts.firstByte)}) is longer than timeouts.total (${ms(timeouts.total)}), and never counts`;
  const drainMs = drain.delay + drain.waiting + drain.streams;
  if (drainMs > terminationGraceMs)
    yield `drain takes up to ${ms(drainMs)}; Kubernetes kills after ${ms(terminationGraceMs)} unless terminationGracePeriodSeconds says more`;
}

export const sendersOf = ({ keys, anonymous }: GatewayConfig['auth']): readonly SenderConfig[] =>
  anonymous === undefined ? keys : [...keys, anonymous];

/** What a file without faults says by name, for checks that the made objects cannot answer. */
export interface Declared {
  readonly plugins: readonly { readonly type: string; readonly parameters: Readonly<Record<string, unknown>> }[];
  readonly flowControl: Readonly<Record<string, unknown>>;
}

export function declaredIn(text: string): Declared {
  const documents = readYaml(text, () => {}).map(({ value }): Record<string, unknown> => ({ ...Object(value) }));
  const entries = documents.flatMap(({ plugins }): unknown[] => (Array.isArray(plugins) ? plugins : []));
  const plugins = entries.flatMap((entry) => {
    const { type, parameters }: Record<string, unknown> = { ...Object(entry) };
    return typeof type === 'string' ? [{ type, parameters: { ...Object(parameters) } }] : [];
  });
  const file = documents.find((each) => each.flowControl !== undefined) ?? documents[0];
  const { flowControl, auth, budgets } = Object(file);
  return { plugins, flowControl: { ...Object(withPlans(flowControl, auth, budgets, new Problems())) } };
}

/** The parameters of those of one type. */
function declaredPlugins({ plugins }: Declared, wanted: string): Declared['plugins'][number]['parameters'][] {
  return plugins.flatMap(({ type, parameters }) => (type === wanted ? [parameters] : []));
}
