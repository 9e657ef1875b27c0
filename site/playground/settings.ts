/**
 * What a visitor can set. Everything that the playground shows follows from these and from the time: no other state is
 * kept.
 */

export interface TenantSettings {
  readonly name: string;
  /** Requests per second, on average. */
  readonly rate: number;
  /** Tokens, on average. */
  readonly prompt: number;
  readonly answer: number;
  readonly priority: number;
}

export const fairnessPolicies = {
  'round-robin-fairness-policy': 'take turns, by requests',
  'virtual-token-counter-fairness-policy': 'share by tokens',
  'global-strict-fairness-policy': 'none: one queue for all',
} as const;

export const orderingPolicies = {
  'fcfs-ordering-policy': 'first come, first served',
  'shortest-first-ordering-policy': 'shortest first',
  'edf-ordering-policy': 'earliest deadline first',
} as const;

export const faultKinds = {
  outage: { begin: 'A server dies', end: 'It comes back' },
  slow: { begin: 'A server is slow', end: 'It is fast again' },
  cut: { begin: 'Redis is cut', end: 'Redis is back' },
  flood: { begin: 'A tenant floods', end: 'The flood ends' },
  reload: { begin: 'Reload', end: 'Reload the first file' },
  miscount: { begin: 'Miscount a seat', end: 'Count it again' },
} as const;

export type FaultKind = keyof typeof faultKinds;

/** It holds from the second `at`, for so many seconds. */
export interface Fault {
  readonly kind: FaultKind;
  /** The server or the tenant that it befalls, from 1 up; 1 where it befalls neither. */
  readonly of: number;
  readonly at: number;
  readonly for: number;
}

export interface Settings {
  readonly tenants: readonly TenantSettings[];
  readonly servers: number;
  /** Requests in flight that fill one server. */
  readonly seats: number;
  readonly fairness: keyof typeof fairnessPolicies;
  readonly ordering: keyof typeof orderingPolicies;
  /** Requests that may wait, over all bands. */
  readonly queue: number;
  /** The same for each tenant; 0: no limit. */
  readonly tenantQueue: number;
  /** What the model's provider allows in a minute, to all tenants together; 0: no quota. */
  readonly requestQuota: number;
  readonly tokenQuota: number;
  /** How long a request may wait, s; 0: for ever. */
  readonly ttl: number;
  /** Part of the gate that the lowest band may fill, percent; 100: all of it. */
  readonly ceiling: number;
  /** Running requests of negative priority give up their seats for higher ones. */
  readonly evicts: boolean;
  /** Replicas of the gateway, which share the seats of the servers. */
  readonly replicas: number;
  /** What each tenant may spend in a minute, in tokens; 0: no budget. */
  readonly budget: number;
  /** What the capacity ledger counts of each server, in tokens; 0: it does not. */
  readonly kvCache: number;
  readonly prefill: number;
  readonly faults: readonly Fault[];
  /** How many times as long everything takes at a server that is slow. */
  readonly slowness: number;
  /** How many times its load a tenant sends in a flood. */
  readonly flood: number;
  /** The seats of each server in the file of a reload. */
  readonly reloadSeats: number;
}

export interface Range {
  readonly label: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  readonly unit?: string;
  /** What the least value means, where it is not a number. */
  readonly least?: string;
  readonly most?: string;
}

export const tenantRanges = {
  rate: { label: 'load', min: 0, max: 60, step: 0.5, unit: 'requests/s' },
  prompt: { label: 'prompt', min: 50, max: 4000, step: 50, unit: 'tokens' },
  answer: { label: 'answer', min: 10, max: 1000, step: 10, unit: 'tokens' },
  priority: { label: 'priority', min: -10, max: 100, step: 10 },
} as const satisfies Record<string, Range>;

export const ranges = {
  servers: { label: 'Servers', min: 1, max: 6, step: 1 },
  seats: { label: 'Seats of each', min: 1, max: 48, step: 1 },
  queue: { label: 'May wait', min: 10, max: 3000, step: 10, unit: 'requests' },
  tenantQueue: { label: 'Of one tenant', min: 0, max: 500, step: 10, unit: 'requests', least: 'no limit' },
  requestQuota: { label: 'Requests a minute', min: 0, max: 1200, step: 30, least: 'no quota' },
  tokenQuota: { label: 'Tokens a minute', min: 0, max: 600_000, step: 10_000, least: 'no quota' },
  ttl: { label: 'Time to live', min: 0, max: 60, step: 1, unit: 's', least: 'for ever' },
  ceiling: { label: 'Lowest band may fill', min: 10, max: 100, step: 5, unit: '%', most: 'everything' },
  replicas: { label: 'Replicas of the gateway', min: 1, max: 3, step: 1 },
  budget: { label: 'Tokens a minute of each tenant', min: 0, max: 200_000, step: 5000, least: 'no budget' },
  kvCache: { label: 'KV cache of each', min: 0, max: 60_000, step: 3000, unit: 'tokens', least: 'not counted' },
  prefill: { label: 'Prompts read at a time', min: 0, max: 16_000, step: 500, unit: 'tokens', least: 'not counted' },
  slowness: { label: 'All takes at a slow server', min: 2, max: 20, step: 1, unit: 'times as long' },
  flood: { label: 'A flood is', min: 2, max: 10, step: 1, unit: 'times the load' },
  reloadSeats: { label: 'Seats after a reload', min: 1, max: 48, step: 1 },
} as const satisfies Record<string, Range>;

export const mostTenants = 5;

/** Simulated time that the playground shows, s. As long stay the seats of a silent replica reserved: no request takes longer. */
export const lengthS = 120;
/** How long an answer of the store holds: the default of the package. */
export const leaseS = 5;

/** How a value is told beside its slider. */
export function told(value: number, { unit, min, max, least, most }: Range): string {
  if (value === min && least !== undefined) return least;
  if (value === max && most !== undefined) return most;
  const figure = value.toLocaleString('en-US');
  return unit === undefined ? figure : `${figure} ${unit}`;
}

/**
 * A replica's part of the traffic and of what is limited. Clients keep to a replica, and the first has most of them: it
 * borrows seats of the others.
 */
export function ofReplica(settings: Settings, replica = 0): Settings {
  const { replicas, tenants, queue, tenantQueue, requestQuota, tokenQuota, budget, kvCache, prefill } = settings;
  const part = replicas === 1 ? 1 : replica === 0 ? 0.6 : 0.4 / (replicas - 1);
  return {
    ...settings,
    tenants: tenants.map((tenant) => ({ ...tenant, rate: tenant.rate * part })),
    queue: Math.ceil(queue / replicas),
    tenantQueue: Math.ceil(tenantQueue / replicas),
    requestQuota: requestQuota / replicas,
    tokenQuota: tokenQuota / replicas,
    budget: budget / replicas,
    kvCache: Math.ceil(kvCache / replicas),
    prefill: Math.ceil(prefill / replicas),
  };
}

/**
 * What the provider counts, and how much of it may go at once: a tenth of a minute's, which comes back all the time.
 */
export function quotasOf({
  requestQuota,
  tokenQuota,
}: Settings): { unit: 'requests' | 'tokens'; limit: number; burst: number }[] {
  const quotas = [
    { unit: 'requests', limit: requestQuota, burst: requestQuota / 10 },
    { unit: 'tokens', limit: tokenQuota, burst: tokenQuota / 10 },
  ] as const;
  return quotas.filter(({ limit }) => limit > 0);
}
