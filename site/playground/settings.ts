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
  /** The server that dies, from 1 up; 0: none. */
  readonly outage: number;
  /** The server that becomes slow, from 1 up; 0: none. */
  readonly slow: number;
  /** How many times as long everything takes there. */
  readonly slowness: number;
  /** When the faults begin, and how long they last, s. */
  readonly faultAt: number;
  readonly faultFor: number;
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
  outage: { label: 'Server that dies', min: 0, max: 6, step: 1, least: 'none' },
  slow: { label: 'Server that is slow', min: 0, max: 6, step: 1, least: 'none' },
  slowness: { label: 'All takes there', min: 2, max: 20, step: 1, unit: 'times as long' },
  faultAt: { label: 'Faults begin at', min: 0, max: 110, step: 5, unit: 's' },
  faultFor: { label: 'and last', min: 5, max: 120, step: 5, unit: 's' },
} as const satisfies Record<string, Range>;

export const mostTenants = 5;

/** Simulated time that the playground shows, s. */
export const lengthS = 120;

/** How a value is told beside its slider. */
export function told(value: number, { unit, min, max, least, most }: Range): string {
  if (value === min && least !== undefined) return least;
  if (value === max && most !== undefined) return most;
  const figure = value.toLocaleString('en-US');
  return unit === undefined ? figure : `${figure} ${unit}`;
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
