/**
 * Lints: settings that are each valid but do not go together. Every sentence names both. Longer than most files,
 * because they are many.
 */
import { parseDuration } from '../../base/schema/duration.js';
import { readYaml } from '../../config/read-yaml.js';
import type { GatewayConfig } from '../index.js';
import type { ScrapeConfig } from '../settings/gateway-config.js';
import { byCost } from '../shared/worker-shares.js';
import type { Effective, Resolved } from './effective-settings.js';
import { bytes, ms } from './format-numbers.js';

/** The official clients of OpenAI give up then, unless told otherwise. */
const clientTimeoutMs = 600_000;
/** The time that Kubernetes gives a process to end, by default. */
const terminationGraceMs = 30_000;

export function flowLints(options: Resolved, objectives: ReadonlyMap<string, number>): string[] {
  return [
    ...limitLints(options),
    ...ttlLints(options),
    ...bandLints(options, objectives),
    ...headroomLints(options, objectives),
  ];
}

function limitLints({ limits, bands }: Resolved): string[] {
  return bands.flatMap(({ priority, limits: own }) => [
    ...(limits.maxRequests < own.maxRequests && own.maxRequests !== Number.POSITIVE_INFINITY
      ? [
          `band ${priority} may hold ${own.maxRequests} requests, but all bands together only ${limits.maxRequests} (maxRequests)`,
        ]
      : []),
    ...(limits.maxBytes < own.maxBytes && own.maxBytes !== Number.POSITIVE_INFINITY
      ? [
          `band ${priority} may hold ${bytes(own.maxBytes)}, but all bands together only ${bytes(limits.maxBytes)} (maxBytes)`,
        ]
      : []),
  ]);
}

function ttlLints({ bands }: Resolved): string[] {
  return bands.flatMap(({ priority, requestTtlMs }) =>
    requestTtlMs > clientTimeoutMs
      ? [
          `band ${priority} lets requests wait ${ms(requestTtlMs)}; clients of OpenAI's interface give up after ${ms(clientTimeoutMs)} in all`,
        ]
      : [],
  );
}

function bandLints({ bands, eviction }: Resolved, objectives: ReadonlyMap<string, number>): string[] {
  const known = new Set(bands.map(({ priority }) => priority));
  const withoutBand = [...objectives].filter(([, priority]) => !known.has(priority));
  const sheddable = [...known, ...objectives.values()].some((priority) => priority < 0);
  return [
    ...withoutBand.map(
      ([name, priority]) =>
        `objective ${name} has priority ${priority}, for which there is no band: the default band's settings apply`,
    ),
    ...(eviction?.filter.type === 'sheddable-eviction-filter' && !sheddable
      ? ['enableEviction is on, but no priority is negative: nothing can be evicted']
      : []),
  ];
}

/** This many waiting requests keep a pool busy for long. */
const longBacklog = 100;

/** A backlog of negative priority fills the pool, and higher ones wait for its answers (docs/simulator.md, row S8). */
function headroomLints(
  { bands, mode, usageLimitPolicy, eviction }: Resolved,
  objectives: ReadonlyMap<string, number>,
): string[] {
  const isFlat =
    mode !== 'admission' && eviction === undefined && usageLimitPolicy.type === 'static-usage-limit-policy';
  const isShared = bands.length > 1 || [...objectives.values()].some((priority) => priority >= 0);
  return bands
    .filter(
      ({ priority, limits, saturationDetector }) =>
        priority < 0 && limits.maxRequests > longBacklog && saturationDetector === undefined,
    )
    .slice(0, isFlat && isShared ? undefined : 0)
    .map(
      ({ priority }) =>
        `band ${priority} may fill the pool, so that bursts above it wait for its answers to end: hold room back (usageLimitPolicyPluginRef with priority-holdback-policy), or set enableEviction`,
    );
}

/** Above this threshold of servers' queues priority is worth little: no request can pass one that is in a server. */
const deepQueue = 2;

/** `silentDepth`: what a file means that does not name the threshold. */
export function depthLints(
  { bands, saturationDetector }: Resolved,
  objectives: ReadonlyMap<string, number>,
  text: string,
  silentDepth: number,
): string[] {
  const priorities = new Set([...bands.map(({ priority }) => priority), ...objectives.values()]);
  const declared = declaredPlugins(text).filter(({ type }) => type === 'utilization-detector');
  const isImplied = declared.length === 0 && saturationDetector.type === 'utilization-detector';
  const depths = [
    ...declared.map(({ parameters }) => Number(parameters.queueDepthThreshold ?? silentDepth)),
    ...(isImplied ? [silentDepth] : []),
  ];
  const deepest = Math.max(0, ...depths);
  if (priorities.size < 2 || deepest <= deepQueue) return [];
  return [
    `queueDepthThreshold is ${deepest}: requests of high priority stand behind up to ${deepest} others in each server, where nothing is reordered; 1 keeps them in the gateway`,
  ];
}

export function gatewayLints(config: GatewayConfig, options: Resolved, text: string): string[] {
  return [
    ...metricsLints(config, options, text),
    ...labelLints(config, text),
    ...senderLints(config, options),
    ...timeLints(config),
    ...sharedLints(config, text),
  ];
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

/** Plugins that workers of one machine share, or have a part of; the others hold in each worker. */
const amongWorkers: Readonly<Record<string, string>> = {
  'concurrency-detector': 'one limit for all workers',
  'quota-detector': 'one quota for all workers; fixed and sliding windows hold in each',
  'session-limit-detector': 'one count for all workers',
  'token-bucket': 'each worker has its part',
  'tenant-budgets': 'each worker has its part',
};

/** What `--workers` shares; empty for one worker. */
export function workersShare(text: string, count: number): Effective[] {
  if (count === 1) return [];
  const declared = declaredPlugins(text).map(({ type }) => [type, amongWorkers[type] ?? perWorker(type)] as const);
  const always = [
    ['may wait', `each worker has 1/${count} of the limits of flowControl and its bands`],
    ['caps of a tenant', 'maxInFlightPerFlow holds in each worker'],
    ['connections', `each worker has 1/${count} of limits.maxConnections`],
    ['marks, metrics, demand', 'one for all workers; the inspector shows the worker that answers'],
  ] as const;
  return [{ section: `With ${count} workers`, entries: [...declared.filter(([, what]) => what !== ''), ...always] }];
}

function perWorker(type: string): string {
  if (byCost.has(type)) return 'what tenants received is exchanged among all workers';
  return perReplica[type] === undefined ? '' : `${perReplica[type]} in each worker`;
}

/** Quotas that each replica has for itself. */
function quotaLints({ quotas }: NonNullable<GatewayConfig['sharedState']>, text: string): string[] {
  const declared = declaredPlugins(text).filter(({ type }) => type === 'quota-detector');
  if (declared.length === 0) return [];
  if (!quotas) return ['quota-detector: its quotas hold in each replica, because sharedState.quotas is false'];
  const written = JSON.stringify(declared.map(({ parameters }) => parameters));
  return ['fixed', 'sliding']
    .filter((window) => written.includes(`"window":"${window}"`))
    .map((window) => `quota-detector: its ${window} windows hold in each replica; only gcra windows are shared`);
}

function sharedLints({ sharedState, timeouts }: GatewayConfig, text: string): string[] {
  if (sharedState === undefined) return [];
  const { leases, limit, limits } = sharedState;
  const own = declaredPlugins(text).filter(({ type }) => perReplica[type] !== undefined);
  const drainMs = Number(leases.drainDuration ?? 60_000);
  return [
    ...own.map(
      ({ type }) =>
        `${type}: ${perReplica[type]} in each replica; only sharedState.${limits ?? 'quotas'} is shared${inCode[type] ?? ''}`,
    ),
    ...quotaLints(sharedState, text),
    ...(limits !== undefined && drainMs < timeouts.total
      ? [
          `sharedState.drainDuration is ${ms(drainMs)}, but a request may take ${ms(timeouts.total)} (timeouts.total): if a replica falls silent, requests that take longer are no longer counted`,
        ]
      : []),
    ...(limits !== undefined && leases.replicas === undefined
      ? [
          'sharedState.replicas is not set: a replica that starts while the store is away dispatches nothing until it is back',
        ]
      : []),
    ...(leases.replicas !== undefined && leases.replicas > limit && limits === 'maxConcurrency'
      ? [
          `sharedState has ${leases.replicas} replicas for a limit of ${limit}: some get nothing, and their requests wait`,
        ]
      : []),
  ];
}

function metricsLints(
  { scrape, upstreams, admin }: GatewayConfig,
  { saturationDetector }: Resolved,
  text: string,
): string[] {
  const asked = upstreams.filter(({ metrics }) => metrics !== 'none');
  const isBlind = saturationDetector.needsPool === true && (scrape === undefined || asked.length === 0);
  const utilization = declaredPlugins(text).filter(({ type }) => type === 'utilization-detector');
  const stale = utilization.map(({ parameters }) => String(parameters.metricsStalenessThreshold ?? '200ms'));
  const hasThresholds = declaredPlugins(text).some(({ type }) => type === 'busy-threshold-detector');
  return [
    ...(isBlind
      ? [`${saturationDetector.type} reads what servers report, but none is asked (scrape, upstreams[].metrics)`]
      : []),
    ...(scrape === undefined ? [] : stale.flatMap((threshold) => tooSlow(scrape, threshold))),
    ...(hasThresholds && admin.token === undefined
      ? ['/busy_threshold rejects everybody: there is no admin.token']
      : []),
  ];
}

/** A scrape may come a tenth later than its interval says. */
function tooSlow({ interval }: ScrapeConfig, threshold: string): string[] {
  if (interval <= parseDuration(threshold) / 1.1) return [];
  const stale = `but metrics are stale after ${threshold} (metricsStalenessThreshold)`;
  return [`scrape.interval is ${ms(interval)}, ${stale}: the gate closes in between`];
}

function labelLints({ upstreams, models }: GatewayConfig, text: string): string[] {
  const filters = declaredPlugins(text).filter(({ type }) => type === 'label-filter');
  const labels = filters.flatMap(({ parameters }) => (typeof parameters.label === 'string' ? [parameters.label] : []));
  const unused = labels.filter((label) => upstreams.every((upstream) => upstream.labels[label] === undefined));
  const withModel = upstreams.filter((upstream) => upstream.labels.model !== undefined);
  const served = new Set(
    withModel.flatMap((upstream) => (upstream.labels.model ?? '').split(',').map((name) => name.trim())),
  );
  const lost =
    withModel.length < upstreams.length
      ? []
      : Object.entries(models.aliases).filter(([, target]) => !served.has(target));
  return [
    ...(upstreams.length === 0 ? ['there are no upstreams: every request waits, and is then dropped'] : []),
    ...unused.map((label) => `label-filter looks at the label "${label}", which no upstream has`),
    ...(withModel.length > 0 && withModel.length < upstreams.length
      ? ['some upstreams have the label "model" and others have not: those without get requests for every model']
      : []),
    ...(upstreams.length === 0
      ? []
      : lost.map(([name, target]) => `models.aliases.${name} leads to "${target}", which no upstream has`)),
  ];
}

function senderLints({ listen, admin, auth, limits }: GatewayConfig, { bands, limits: all }: Resolved): string[] {
  const isOpen = !['127.0.0.1', '::1', 'localhost'].includes(listen.host);
  const known = new Set(bands.map(({ priority }) => priority));
  const senders = auth.anonymous === undefined ? auth.keys : [...auth.keys, auth.anonymous];
  const withoutBand = senders.filter(({ priority }) => !known.has(priority));
  const narrow = bands.filter((band) => Math.min(band.limits.maxBytes, all.maxBytes) < limits.maxRequestBytes);
  return [
    ...(isOpen && auth.keys.length === 0
      ? [`everybody who reaches ${listen.host} may send requests: there are no auth.keys`]
      : []),
    ...(isOpen && admin.listen === undefined
      ? [`everybody who reaches ${listen.host} may read /metrics, which names tenants: there is no admin.port`]
      : []),
    ...(isOpen && auth.anonymous?.trusted
      ? ['auth.anonymous is trusted: whoever comes names any tenant and objective']
      : []),
    ...withoutBand.map(
      ({ tenant, priority }) =>
        `tenant ${tenant} has priority ${priority}, for which there is no band: the default band's settings apply`,
    ),
    ...narrow.map(
      ({ priority }) =>
        `a request may have ${bytes(limits.maxRequestBytes)} (limits.maxRequestBytes), more than may wait in band ${priority} (maxBytes)`,
    ),
  ];
}

function timeLints({ timeouts, drain }: GatewayConfig): string[] {
  const drainMs = drain.delay + drain.waiting + drain.streams;
  return [
    ...(timeouts.firstByte > timeouts.total
      ? [
          `timeouts.firstByte (${ms(timeouts.firstByte)}) is longer than timeouts.total (${ms(timeouts.total)}), and never counts`,
        ]
      : []),
    ...(drainMs > terminationGraceMs
      ? [
          `drain takes up to ${ms(drainMs)}; Kubernetes kills after ${ms(terminationGraceMs)} unless terminationGracePeriodSeconds says more`,
        ]
      : []),
  ];
}

interface DeclaredPlugin {
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The plugins that a file without faults declares, for checks that the made plugins cannot answer. */
function declaredPlugins(text: string): DeclaredPlugin[] {
  return readYaml(text, () => {}).flatMap(({ value }) => {
    const plugins: unknown = Reflect.get(Object(value), 'plugins');
    return Array.isArray(plugins) ? plugins.flatMap(read) : [];
  });
}

function read(entry: unknown): DeclaredPlugin[] {
  const { type, parameters }: { type?: unknown; parameters?: unknown } = { ...Object(entry) };
  return typeof type === 'string' ? [{ type, parameters: { ...Object(parameters) } }] : [];
}
