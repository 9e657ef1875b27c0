/** Limits of what may wait, in controller, band and flow. A full one is told in a drop, unless others leave. */
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { ResolvedOptions } from '../options.js';
import type { LimitHit } from '../outcome/explanation.js';
import type { Drop, DropType } from '../outcome/outcome.js';
import { exceededLimit, isUnlimited } from './capacity-limits.js';
import type { DispatcherParts } from './dispatcher.js';
import { type Displacement, displacement, nextBelow } from './overflow.js';
import type { QueueItem } from './queue-item.js';

interface LimitsParts extends Pick<DispatcherParts, 'operation' | 'backlog' | 'drops'> {
  readonly options: ResolvedOptions;
}

/** What is found out of a newcomer: its flow, and who leaves for it. */
interface Found {
  flow: Flow | undefined;
  displaces: Displacement | undefined;
}

/** The limit that the request exceeds; undefined when it fits. */
export function limitHit(engine: LimitsParts, item: QueueItem, band: PriorityBand, found: Found): LimitHit | undefined {
  return (
    exceededLimit('global', engine.backlog, engine.options.limits, item.byteSize) ??
    exceededLimit('band', band, band.settings.limits, item.byteSize) ??
    ofFlow(engine, item, band, found)
  );
}

/** True when a request exceeds a limit by itself, so that it is rejected even where it could go at once. */
export function neverFits(
  { options }: LimitsParts,
  { byteSize, fairnessId }: QueueItem,
  { settings }: PriorityBand,
): boolean {
  const { limits, flows } = options;
  const all = [limits, settings.limits, flows.get(fairnessId)?.limits ?? settings.flowLimits];
  return all.some(({ maxRequests, maxBytes }) => maxRequests < 1 || byteSize > maxBytes);
}

/** Returns a drop if the request exceeds a limit, unless others leave for it. */
export function limitDrop(engine: LimitsParts, item: QueueItem, band: PriorityBand, found: Found): Drop | undefined {
  const { backlog, drops, options } = engine;
  const limit = limitHit(engine, item, band, found);
  if (limit === undefined) return undefined;
  if (options.overflow !== 'reject' && ofFlow(engine, item, band, found) === undefined) {
    const newcomer = { byteSize: item.byteSize, band, flow: flowOf(engine, item, band, found) };
    found.displaces = displacement(backlog, options, newcomer, limit);
    if (found.displaces !== undefined) return undefined;
  }
  return drops.drop(item, rejectedType(engine), `${limit.scope}-max-${limit.resource}`, { limit });
}

/** Evicts requests of its own band, then of lower bands, until the request fits in, as it will. */
export function makeRoom(
  { backlog, drops, options }: LimitsParts,
  item: QueueItem,
  { own, limit }: Displacement,
): void {
  for (const victim of own) drops.evict(victim, 'EvictedOther', 'displaced', { limit });
  const next = (): QueueItem | undefined => nextBelow(backlog, options, item);
  for (let victim = next(); victim !== undefined; victim = next()) drops.evict(victim, 'EvictedOther', 'displaced');
}

export function rejectedType({ backlog }: Pick<LimitsParts, 'backlog'>): DropType {
  return backlog.isPoolEmpty ? 'RejectedNoEndpoints' : 'RejectedCapacity';
}

function ofFlow(engine: LimitsParts, item: QueueItem, band: PriorityBand, found: Found): LimitHit | undefined {
  const flowLimits = engine.options.flows.get(item.fairnessId)?.limits ?? band.settings.flowLimits;
  if (isUnlimited(flowLimits)) return undefined;
  return exceededLimit('flow', flowOf(engine, item, band, found), flowLimits, item.byteSize);
}

function flowOf({ backlog, operation }: LimitsParts, item: QueueItem, band: PriorityBand, found: Found): Flow {
  found.flow ??= backlog.bands.flows.flowOf(band, item, operation.nowMs);
  return found.flow;
}
