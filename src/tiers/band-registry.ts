/**
 * Which bands and flows exist: bands are configured or made on first use, both are forgotten when idle, and neither can be multiplied
 * without bound.
 *
 * Invariant: at most `maxBands` bands, the configured ones included.
 */

import type { QueueItem } from '../core/engine/queue-item.js';
import type { EventHub } from '../core/event-hub.js';
import type { ResolvedOptions } from '../core/options.js';
import { BandShares } from './1-priority/band-shares.js';
import { BandTable } from './band-table.js';
import type { Flow } from './flow.js';
import { FlowTable } from './flow-table.js';
import { type BandSettings, PriorityBand } from './priority-band.js';

/** How often idle flows and bands are looked for, at most. */
const collectEveryMs = 1000;

export class BandRegistry {
  readonly table: BandTable = new BandTable();
  readonly flows: FlowTable;
  readonly shares: BandShares = new BandShares();
  private collectAtMs: number;
  private options: ResolvedOptions;
  private readonly events: EventHub;

  constructor(options: ResolvedOptions, events: EventHub, nowMs: number) {
    this.options = options;
    this.events = events;
    this.collectAtMs = nowMs + collectEveryMs;
    this.flows = new FlowTable(options, (flow) => this.flowRemoved(flow));
    for (const band of options.bands) this.add(band.priority, true, band, nowMs);
    this.shares.configure(this.table.all());
  }

  /** What a priority is given, whether its band exists or not. */
  settingsOf(priority: number): BandSettings {
    return this.table.get(priority)?.settings ?? this.templateFor(priority);
  }

  /**
   * The band of a priority, made when missing; undefined when there are too many. When all are taken, the band idle longest makes room:
   * O(bands) then, which `maxBands` bounds.
   */
  bandOf(priority: number, nowMs: number): PriorityBand | undefined {
    const band = this.table.get(priority);
    if (band !== undefined) return band;
    while (this.table.size >= this.options.maxBands) {
      const longest = this.longestIdle();
      if (longest === undefined) return undefined;
      this.remove(longest);
    }
    return this.add(priority, false, this.templateFor(priority), nowMs);
  }

  /** Forgets what has been idle too long, now and then. */
  collectWhenDue(nowMs: number): void {
    if (nowMs >= this.collectAtMs) this.collect(nowMs);
  }

  collect(nowMs: number): void {
    this.collectAtMs = nowMs + collectEveryMs;
    this.flows.collect(nowMs);
    for (const band of [...this.table.all()]) {
      if (isIdle(band) && nowMs - band.lastUsedMs >= this.options.bandIdleTimeoutMs) this.remove(band);
    }
  }

  /** Takes new options. A band that is configured no longer keeps what waits in it, under the template, until it is idle. */
  configure(options: ResolvedOptions, nowMs: number): void {
    this.options = options;
    this.flows.configure(options, this.table.all());
    const configured = new Map(options.bands.map((band) => [band.priority, band]));
    for (const band of this.table.all()) {
      const settings = configured.get(band.priority);
      band.isConfigured = settings !== undefined;
      band.configure(settings ?? this.templateFor(band.priority));
      band.trackArrivals(this.needsArrivals(band.priority));
      configured.delete(band.priority);
    }
    for (const settings of configured.values()) this.add(settings.priority, true, settings, nowMs);
    this.table.version++;
    this.shares.configure(this.table.all());
  }

  /** Everything that waits, oldest first. */
  allWaiting(): QueueItem[] {
    const items = this.table.allWaiting().flatMap((band) => band.waitingItems() as QueueItem[]);
    return items.sort((a, b) => a.sequence - b.sequence);
  }

  /** Of those idle equally long, the highest. */
  private longestIdle(): PriorityBand | undefined {
    let longest: PriorityBand | undefined;
    for (const band of this.table.all()) {
      if (isIdle(band) && (longest === undefined || band.lastUsedMs < longest.lastUsedMs)) longest = band;
    }
    return longest;
  }

  private templateFor(priority: number): BandSettings {
    return priority < 0 ? this.options.defaultNegativeBand : this.options.defaultBand;
  }

  private add(priority: number, isConfigured: boolean, settings: BandSettings, nowMs: number): PriorityBand {
    const band = new PriorityBand(priority, isConfigured, settings, this.events, nowMs);
    band.trackArrivals(this.needsArrivals(priority));
    this.table.add(band);
    if (this.events.heard.bandAdded) this.events.emit('bandAdded', { priority });
    return band;
  }

  private remove(band: PriorityBand): void {
    this.flows.removeAll(band);
    this.table.remove(band);
    this.shares.removed(band);
    if (this.events.heard.bandRemoved) this.events.emit('bandRemoved', { priority: band.priority });
  }

  /** Who asks for the oldest or the newest request of a band: some orders of bands, and displacement. */
  private needsArrivals(priority: number): boolean {
    return this.options.bandOrder.needsOldest || (this.options.overflow === 'displace' && priority < 0);
  }

  private flowRemoved(flow: Flow): void {
    if (this.events.heard.flowRemoved) this.events.emit('flowRemoved', { fairnessId: flow.fairnessId, priority: flow.priority });
  }
}

function isIdle(band: PriorityBand): boolean {
  return !band.isConfigured && band.waiting === 0 && band.trackedInFlight === 0;
}
