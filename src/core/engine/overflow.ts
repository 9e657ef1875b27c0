/**
 * Chooses the requests that leave a full queue for a newcomer. It decides, and changes nothing.
 *
 *     'displace'   the newest of the lowest sheddable bands
 *     'fair'       the newest of lower bands; then, in the newcomer's own band, the newest of the flow with most waiting for its weight
 *
 * Invariant: a request leaves only if the newcomer then fits. It never leaves for a request of a lower band, nor for a
 * flow that would then have as much waiting.
 */
import type { Flow, WaitingItem } from '../../tiers/flow.js';
import { type LongestQueues, loadOf, type Resource } from '../../tiers/longest-queues.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Limits, ResolvedOptions } from '../options.js';
import type { LimitHit } from '../outcome/explanation.js';
import type { Backlog } from './backlog.js';
import { exceededLimit, type WaitingFigures } from './capacity-limits.js';
import type { QueueItem } from './queue-item.js';

/** A newcomer with the band and the flow that it will wait in. */
interface Newcomer {
  readonly byteSize: number;
  readonly band: PriorityBand;
  readonly flow: Flow;
}

/** The room that is missing; 0 and less: none. */
type Shortage = Record<Resource, number>;

/** The requests of the newcomer's own band that leave. Lower bands lose as many more as the global limits demand. */
export interface Displacement {
  /** The limit that they leave for. */
  readonly limit: LimitHit;
  readonly own: readonly QueueItem[];
}

const nobody: readonly QueueItem[] = [];

type OverflowOptions = Pick<ResolvedOptions, 'overflow' | 'limits'>;

/**
 * Who leaves for the newcomer; undefined when that makes too little room. With 'displace' none of its own band, as no
 * band tracks its longest queues. O(waiting bands), and O(1) for each that leaves.
 */
export function displacement(
  backlog: Backlog,
  options: OverflowOptions,
  newcomer: Newcomer,
  limit: LimitHit,
): Displacement | undefined {
  const { band, byteSize } = newcomer;
  const own = shortage(band, band.settings.limits, byteSize);
  const global = shortageWithoutBelow(backlog, options, newcomer);
  const missing = { requests: Math.max(own.requests, global.requests), bytes: Math.max(own.bytes, global.bytes) };
  const victims = isCovered(missing) ? nobody : newestOfMost(newcomer, missing);
  return victims && { limit, own: victims };
}

/** The next request to leave lower bands; undefined when `byteSize` fits the global limits. O(waiting bands). */
export function nextBelow(
  backlog: Backlog,
  { overflow, limits }: OverflowOptions,
  { priority, byteSize }: QueueItem,
): QueueItem | undefined {
  const { bands } = backlog;
  const hit = exceededLimit('global', backlog, limits, byteSize);
  if (hit === undefined) return undefined;
  if (overflow === 'displace') return bands.allWaiting().at(-1)?.arrivals?.last() as QueueItem | undefined;
  const waiting = bands.allWaiting();
  for (let i = waiting.length - 1; i >= 0; i--) {
    const { longestQueues, priority: lower } = waiting[i] as PriorityBand;
    if (lower >= priority) return undefined;
    const victim = longestQueues && newestOf(longestQueues, hit.resource);
    if (victim !== undefined) return victim as QueueItem;
  }
  return undefined;
}

/** What the global limits still lack for the newcomer after all that may leave have left the lower bands. */
function shortageWithoutBelow(
  { waiting, waitingBytes, bands }: Backlog,
  { overflow, limits }: OverflowOptions,
  { band, byteSize }: Newcomer,
): Shortage {
  const rest = { waiting, waitingBytes };
  const isFair = overflow === 'fair';
  for (const lower of bands.allWaiting()) {
    if (lower.priority >= band.priority || (lower.priority >= 0 && !isFair)) continue;
    rest.waiting -= lower.waiting;
    rest.waitingBytes -= lower.waitingBytes;
  }
  return shortage(rest, limits, byteSize);
}

function shortage(used: WaitingFigures, limits: Limits, byteSize: number): Shortage {
  return { requests: used.waiting + 1 - limits.maxRequests, bytes: used.waitingBytes + byteSize - limits.maxBytes };
}

function isCovered({ requests, bytes }: Shortage): boolean {
  return requests <= 0 && bytes <= 0;
}

/** The newest of the flow with most waiting, as many as missing; undefined unless the newcomer's flow stays below. */
function newestOfMost({ band, flow, byteSize }: Newcomer, { requests, bytes }: Shortage): QueueItem[] | undefined {
  const resource: Resource = bytes > 0 ? 'bytes' : 'requests';
  const most = band.longestQueues?.most(resource);
  if (band.longestQueues === undefined || most === undefined) return undefined;
  // Each load is divided once, so that equal ones are equal.
  const add = resource === 'bytes' ? byteSize : 1;
  const level = (loadOf(flow, resource) + add) / flow.weight;
  const victims: QueueItem[] = [];
  const missing = { requests, bytes };
  let left = loadOf(most, resource);
  for (const item of band.longestQueues.newestFirst(most)) {
    if (level >= left / most.weight) return undefined;
    if (missing.requests <= 0 && item.byteSize === 0) continue;
    victims.push(item as QueueItem);
    missing.requests--;
    missing.bytes -= item.byteSize;
    if (isCovered(missing)) return victims;
    left -= resource === 'bytes' ? item.byteSize : 1;
  }
  return undefined;
}

/** The newest request of the flow with most waiting; if bytes are short, the newest that holds bytes. */
function newestOf(longestQueues: LongestQueues<Flow, WaitingItem>, resource: Resource): WaitingItem | undefined {
  const most = longestQueues.most(resource);
  if (most !== undefined)
    for (const item of longestQueues.newestFirst(most)) if (resource === 'requests' || item.byteSize > 0) return item;
  return undefined;
}
