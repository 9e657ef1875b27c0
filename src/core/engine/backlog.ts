/**
 * The waiting requests: their counts, bands and flows, deadlines and signals. Only this file adds a request to a band
 * or takes one out. Invariant: global = Σ bands = Σ flows, in requests and in bytes; every waiting request has its
 * deadline and its signal watched, and no other request has.
 */
import { PluginGuard } from '../../base/faults/plugin-guard.js';
import { BandRegistry, type BandRegistryListener } from '../../tiers/band-registry.js';
import type { Flow, WaitingItem } from '../../tiers/flow.js';
import type { Reason } from '../../tiers/flows-aside.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { EventHub } from '../event-hub.js';
import type { ResolvedOptions } from '../options.js';
import { Cancellation } from './cancellation.js';
import { type Budgets, Expiry } from './expiry.js';
import type { Operation } from './operation.js';
import type { QueueItem, Settle } from './queue-item.js';

/** How long a request waits by default while no server was ever ready, ms: then nobody knows that one will come. */
const longestUnreadyMs = 5000;

export class Backlog implements Budgets {
  waiting = 0;
  waitingBytes = 0;
  readonly bands: BandRegistry;
  readonly expiry: Expiry;
  /** True while no endpoint is available, and until the pool was looked at: budgets are then those of an empty pool. */
  isPoolEmpty = true;
  /** True once an endpoint was available. */
  private wasReady = false;
  private readonly cancellation: Cancellation<QueueItem>;
  private readonly signals: PluginGuard;
  private options: ResolvedOptions;
  /** When the pool was last emptied or filled. */
  private regimeBeganAtMs = -Infinity;

  /** `expired` is called when some request's time is up, `cancelled` when the signal of some requests aborts. */
  constructor(
    options: ResolvedOptions,
    events: EventHub,
    operation: Operation,
    expired: () => void,
    cancelled: (items: readonly QueueItem[]) => void,
  ) {
    this.options = options;
    this.bands = new BandRegistry(options, listenerFor(events), operation.nowMs);
    this.expiry = new Expiry(options.clock, this, expired);
    this.signals = new PluginGuard('signal', { type: 'AbortSignal' }, events);
    this.cancellation = new Cancellation<QueueItem>(this.signals, cancelled);
  }

  /** Takes new options; the classes of waiting requests must be right already. */
  configure(options: ResolvedOptions, nowMs: number): void {
    const queuedApart = this.options.holBlocking === 'none' || options.holBlocking === 'none';
    this.options = options;
    this.bands.configure(options, nowMs);
    if (queuedApart) this.rebuildQueues(nowMs);
    this.expiry.restart(this.regimeBeganAtMs, this.items());
  }

  /** Every waiting request, oldest first. O(waiting · log). */
  items(): QueueItem[] {
    return this.bands.waitingItems() as QueueItem[];
  }

  /** Lets the request wait until `settle` gets its outcome. `park`: what its flow waits for, apart from its turn. */
  add(item: QueueItem, settle: Settle, nowMs: number, known?: Flow, park?: Reason): Flow {
    const band = item.band as PriorityBand;
    const flow = known ?? this.bands.flows.flowOf(band, item, nowMs);
    if (flow.isIdle) this.bands.flows.markBusy(flow);
    item.settle = settle;
    this.waiting++;
    this.waitingBytes += item.byteSize;
    if (band.waiting === 0) this.bands.activated(band);
    const aside = band.aside.waiting;
    const parkedBefore = aside.parked;
    band.add(item, flow, park);
    if (this.bands.parked > 0 || aside.parked !== parkedBefore) this.bands.noteParked(aside.parked - parkedBefore);
    this.expiry.add(item);
    try {
      const signal = item.request?.signal;
      if (signal !== undefined) this.cancellation.watch(item, signal);
    } catch (error) {
      // The request waits all the same: it is in the counts, and its caller holds the promise.
      this.signals.failed(error);
    }
    return flow;
  }

  /** Replaces the callback that gets the outcome; returns the old one. */
  redirect(item: QueueItem, settle: Settle): Settle {
    const before = item.settle as Settle;
    item.settle = settle;
    return before;
  }

  /** Takes the request out for its dispatch; returns the end of its promise. */
  take(item: QueueItem, band: PriorityBand, nowMs: number): Settle {
    const settle = item.settle as Settle;
    item.settle = undefined;
    band.take(item, nowMs);
    this.left(item, band, 0);
    if (!band.policies.hearsSettlements) this.bands.flows.markIdle(item.flow as Flow, nowMs);
    return settle;
  }

  /** Takes the request out, wherever it stands; returns the end of its promise. */
  discard(item: QueueItem, nowMs: number): Settle {
    const band = item.band as PriorityBand;
    const settle = item.settle as Settle;
    item.settle = undefined;
    const aside = band.aside.waiting;
    const parkedBefore = aside.parked;
    band.discard(item, nowMs);
    this.left(item, band, aside.parked - parkedBefore);
    this.bands.flows.markIdle(item.flow as Flow, nowMs);
    return settle;
  }

  /** Parks an active flow, so that others pass it. */
  park(flow: Flow, park: Reason): void {
    flow.band.setAside(flow, park);
    this.bands.noteParked(flow.waiting);
  }

  unpark(flow: Flow): void {
    flow.band.letIn(flow);
    this.bands.noteParked(-flow.waiting);
  }

  /** Unparks every flow before new options apply, so that they decide anew. */
  unparkAll(): void {
    if (this.bands.parked === 0) return;
    for (const band of this.bands.allWaiting()) for (const flow of band.aside.of('parked')) this.unpark(flow);
  }

  /** The pool was emptied or filled: every waiting request gets a budget anew. O(waiting · log). */
  enterRegime(isPoolEmpty: boolean, nowMs: number): void {
    this.isPoolEmpty = isPoolEmpty;
    if (!isPoolEmpty) this.wasReady = true;
    this.regimeBeganAtMs = nowMs;
    this.expiry.restart(nowMs, this.items());
  }

  budgetOf(item: QueueItem): number {
    if (!this.isPoolEmpty) return item.ttlMs;
    const { noEndpointRequestTtlMs: ms, hasOwnNoEndpointTtl } = this.options;
    if (hasOwnNoEndpointTtl) return ms;
    return Math.min(ms, item.ttlMs, this.wasReady ? Infinity : longestUnreadyMs);
  }

  /** Only a longer time that the host gave to empty pools lets a request wait longer than its TTL. */
  mostOf(item: QueueItem): number {
    const { noEndpointRequestTtlMs: ms, hasOwnNoEndpointTtl } = this.options;
    return hasOwnNoEndpointTtl ? Math.max(ms, item.ttlMs) : item.ttlMs;
  }

  private left(item: QueueItem, band: PriorityBand, parkedMore: number): void {
    this.waiting--;
    this.waitingBytes -= item.byteSize;
    if (band.waiting === 0) this.bands.deactivated(band);
    if (this.bands.parked > 0) this.bands.noteParked(parkedMore);
    this.expiry.remove(item);
    if (item.abortGroup !== undefined) this.cancellation.unwatch(item);
  }

  /** Queues every waiting request again, because classes may have changed, or whether they queue apart. */
  private rebuildQueues(nowMs: number): void {
    for (const band of this.bands.allWaiting()) {
      const flowOf = (item: WaitingItem): Flow => {
        const flow = this.bands.flows.flowOf(band, item, nowMs);
        if (flow.isIdle) this.bands.flows.markBusy(flow);
        return flow;
      };
      band.rebuildQueues(flowOf, (flow) => this.bands.flows.markIdle(flow, nowMs));
    }
  }
}

/** Tells of the bands and flows that are made and removed. */
function listenerFor(events: EventHub): BandRegistryListener {
  const { heard } = events;
  return {
    bandAdded({ priority }) {
      if (heard.bandAdded) events.emit('bandAdded', { priority });
    },
    bandRemoved({ priority }) {
      if (heard.bandRemoved) events.emit('bandRemoved', { priority });
    },
    flowRemoved({ fairnessId, priority }) {
      if (heard.flowRemoved) events.emit('flowRemoved', { fairnessId, priority });
    },
    pluginFailed: (kind, type, error) => events.pluginFailed(kind, type, error),
  };
}
