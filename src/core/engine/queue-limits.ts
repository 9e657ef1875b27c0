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

type LimitsParts = Pick<DispatcherParts, 'operation' | 'backlog' | 'drops'>;

/** What is found out of a newcomer: its flow, and who leaves for it. */
interface Found {
  flow: Flow | undefined;
  displaces: Displacement | undefined;
}

export class QueueLimits {
  private readonly engine: LimitsParts;
  private options: ResolvedOptions;

  constructor(engine: LimitsParts, options: ResolvedOptions) {
    this.engine = engine;
    this.options = options;
  }

  configure(options: ResolvedOptions): void {
    this.options = options;
  }

  /** The limit that the request exceeds; undefined when it fits. */
  hitBy(item: QueueItem, band: PriorityBand, found: Found): LimitHit | undefined {
    return (
      exceededLimit('global', this.engine.backlog, this.options.limits, item.byteSize) ??
      exceededLimit('band', band, band.settings.limits, item.byteSize) ??
      this.ofFlow(item, band, found)
    );
  }

  /** True when a request exceeds a limit by itself, so that it is rejected even where it could go at once. */
  neverFits({ byteSize, fairnessId }: QueueItem, { settings }: PriorityBand): boolean {
    const { limits, flows } = this.options;
    const all = [limits, settings.limits, flows.get(fairnessId)?.limits ?? settings.flowLimits];
    return all.some(({ maxRequests, maxBytes }) => maxRequests < 1 || byteSize > maxBytes);
  }

  /** Returns a drop if the request exceeds a limit, unless others leave for it. */
  exceeded(item: QueueItem, band: PriorityBand, found: Found): Drop | undefined {
    const limit = this.hitBy(item, band, found);
    if (limit === undefined) return undefined;
    if (this.options.overflow !== 'reject' && this.ofFlow(item, band, found) === undefined) {
      const flow = this.flowOf(item, band, found);
      const newcomer = { byteSize: item.byteSize, band, flow };
      found.displaces = displacement(this.engine.backlog, this.options, newcomer, limit);
      if (found.displaces !== undefined) return undefined;
    }
    return this.engine.drops.drop(item, this.dropType, `${limit.scope}-max-${limit.resource}`, { limit });
  }

  /** Evicts requests of its own band, then of lower bands, until the request fits in, as it will. */
  makeRoom(item: QueueItem, { own, limit }: Displacement): void {
    const { backlog, drops } = this.engine;
    for (const victim of own) drops.evict(victim, 'EvictedOther', 'displaced', { limit });
    const next = (): QueueItem | undefined => nextBelow(backlog, this.options, item);
    for (let victim = next(); victim !== undefined; victim = next()) drops.evict(victim, 'EvictedOther', 'displaced');
  }

  get dropType(): DropType {
    return this.engine.backlog.isPoolEmpty ? 'RejectedNoEndpoints' : 'RejectedCapacity';
  }

  private ofFlow(item: QueueItem, band: PriorityBand, found: Found): LimitHit | undefined {
    const flowLimits = this.options.flows.get(item.fairnessId)?.limits ?? band.settings.flowLimits;
    if (isUnlimited(flowLimits)) return undefined;
    return exceededLimit('flow', this.flowOf(item, band, found), flowLimits, item.byteSize);
  }

  private flowOf(item: QueueItem, band: PriorityBand, found: Found): Flow {
    found.flow ??= this.engine.backlog.bands.flows.flowOf(band, item, this.engine.operation.nowMs);
    return found.flow;
  }
}
