/**
 * Holds the bands. It makes them from the configuration or on first use, removes them when idle, and knows which of
 * them have requests waiting. Invariants: at most `maxBands` bands exist, the configured ones included; `allWaiting`
 * holds exactly the bands with waiting requests, and `highestWaiting` is the first of those with a request that is not
 * parked; lists of bands are in descending order of priority.
 * Longer than most files, because bands and the flows in them are made, kept while idle, and collected together.
 */
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { isSamePlugin } from '../base/plugin-origin.js';
import { LinkedList } from '../base/queues/linked-list.js';
import { textHash } from '../base/text-hash.js';
import { position } from './1-priority/band-order.js';
import { BandShares, type ShareUnit } from './1-priority/band-shares.js';
import type { WaitingItem } from './flow.js';
import { Flow, type FlowProfiles } from './flow.js';
import { type BandSettings, PriorityBand } from './priority-band.js';

/** How often idle flows and bands are collected and rates are sampled, at most. */
const tendEveryMs = 1000;
/** Flows that the fairness IDs of one band share when the table is full. */
const overflowFlows = 64;
/** Longer names share the overflow flows as well, so that they cannot be used to fill memory. */
const longestName = 256;
/** Idle flows collected at a time, so that no single request pays for many. */
const collectedAtATime = 8;

/** No fairness ID that comes by HTTP can have these names. */
const classPrefix = '\u0000';
const overflowPrefix = '\u0000overflow-';

export interface FlowTableSettings {
  readonly maxFlows: number;
  readonly flowIdleTimeoutMs: number;
  readonly flows: FlowProfiles;
  /** 'none': classes of requests queue apart. */
  readonly holBlocking: 'band' | 'flow' | 'none';
}

export interface BandRegistrySettings extends FlowTableSettings {
  readonly bands: readonly (BandSettings & { readonly priority: number })[];
  readonly defaultBand: BandSettings;
  readonly defaultNegativeBand: BandSettings;
  readonly maxBands: number;
  readonly bandIdleTimeoutMs: number;
  readonly bandOrder: { readonly needsOldest: boolean };
  readonly minShareUnit: ShareUnit;
  readonly overflow: 'reject' | 'displace' | 'fair';
}

/** Is told which bands are made and removed. */
export interface BandRegistryListener extends PluginErrorSink {
  bandAdded(band: PriorityBand): void;
  bandRemoved(band: PriorityBand): void;
  flowRemoved(flow: Flow): void;
}

export class BandRegistry {
  /** Rises when the set of bands may have changed for which the ceilings are computed. */
  version = 0;
  /** The highest band with waiting requests. A field, because the first of an array is slow to read (bench: try). */
  highestWaiting: PriorityBand | undefined = undefined;
  /** Requests that wait in parked flows, in all bands: what `noteParked` was told. */
  parked = 0;
  readonly flows: FlowTable;
  readonly shares: BandShares = new BandShares();
  private readonly byPriority = new Map<number, PriorityBand>();
  private readonly ordered: PriorityBand[] = [];
  private readonly waiting: PriorityBand[] = [];
  /** Reports that were ignored in bands that are gone. */
  private ignoredBefore = 0;
  private tendAtMs: number;
  private settings: BandRegistrySettings;
  private readonly listener: BandRegistryListener;

  constructor(settings: BandRegistrySettings, listener: BandRegistryListener, nowMs: number) {
    this.settings = settings;
    this.listener = listener;
    this.tendAtMs = nowMs + tendEveryMs;
    this.flows = new FlowTable(settings, (flow) => listener.flowRemoved(flow));
    for (const band of settings.bands) this.add(band.priority, true, band, nowMs);
    this.configureShares(settings);
  }

  /** A band of a template may come any time: its share counts from its first request on. */
  private configureShares({ defaultBand, defaultNegativeBand, minShareUnit }: BandRegistrySettings): void {
    const templates = [{ settings: defaultBand }, { settings: defaultNegativeBand }];
    this.shares.configure([...this.ordered, ...templates], minShareUnit);
  }

  /** Reports of usage that fairness policies and shares ignored, in bands that are gone too. O(bands). */
  get ignoredReports(): number {
    const before = this.ignoredBefore + this.shares.ignoredReports;
    return this.ordered.reduce((sum, band) => sum + band.policies.ignoredReports, before);
  }

  get size(): number {
    return this.ordered.length;
  }

  get(priority: number): PriorityBand | undefined {
    return this.byPriority.get(priority);
  }

  /** Highest priority first. */
  all(): readonly PriorityBand[] {
    return this.ordered;
  }

  /** The bands with waiting requests, highest priority first. */
  allWaiting(): readonly PriorityBand[] {
    return this.waiting;
  }

  /** The bands with waiting requests that are not parked, highest priority first. */
  allCompeting(): readonly PriorityBand[] {
    return this.parked === 0 ? this.waiting : this.waiting.filter(isCompeting);
  }

  /** Adds `count` to the parked requests, and looks for the highest band again. O(waiting bands) while some are. */
  noteParked(change: number): void {
    this.parked += change;
    this.highestWaiting = this.parked === 0 ? this.waiting[0] : this.waiting.find(isCompeting);
  }

  /** Every waiting request, oldest first. O(waiting · log). */
  waitingItems(): WaitingItem[] {
    return this.waiting.flatMap((band) => band.waitingItems()).sort((a, b) => a.sequence - b.sequence);
  }

  /** Counts an arrival; the band of its priority, if it exists. Once a second it also collects and samples. */
  arrived(priority: number, nowMs: number): PriorityBand | undefined {
    if (nowMs >= this.tendAtMs) this.collectAndSample(nowMs);
    const band = this.byPriority.get(priority);
    if (band !== undefined) {
      band.traffic.arrived++;
      band.traffic.arrivedAtMs = nowMs;
    }
    return band;
  }

  /** A request that arrived last was only tried: it does not count. */
  withdrawn(priority: number): void {
    const band = this.byPriority.get(priority);
    if (band !== undefined) band.traffic.arrived--;
  }

  /** The settings of a priority, whether its band exists or not. */
  settingsOf(priority: number): BandSettings {
    return this.byPriority.get(priority)?.settings ?? this.templateFor(priority);
  }

  /** How many requests more its limit lets wait, from 0 up; undefined without a limit. */
  headroomOf(priority: number): number | undefined {
    const band = this.byPriority.get(priority);
    const { maxRequests } = (band?.settings ?? this.templateFor(priority)).limits;
    return maxRequests === Infinity ? undefined : Math.max(maxRequests - (band?.waiting ?? 0), 0);
  }

  /** The band, made when missing; undefined when there are too many: then the longest idle makes room, in O(bands). */
  bandOf(priority: number, nowMs: number): PriorityBand | undefined {
    const band = this.byPriority.get(priority);
    if (band !== undefined) return band;
    while (this.ordered.length >= this.settings.maxBands) {
      const longest = this.longestIdle();
      if (longest === undefined) return undefined;
      this.remove(longest);
    }
    const made = this.add(priority, false, this.templateFor(priority), nowMs);
    made.traffic.arrived++;
    return made;
  }

  activated(band: PriorityBand): void {
    if (this.waiting.length === 0) this.waiting.push(band);
    else this.waiting.splice(position(this.waiting, band.priority), 0, band);
    this.highestWaiting = this.waiting[0];
    if (!band.isConfigured) this.version++;
  }

  deactivated(band: PriorityBand): void {
    if (this.waiting.length === 1) this.waiting.pop();
    else this.waiting.splice(position(this.waiting, band.priority), 1);
    this.highestWaiting = this.waiting[0];
    if (!band.isConfigured) this.version++;
    if (this.shares.isUsed) this.shares.emptied(band);
  }

  /** Collects bands and flows that have been idle too long, and samples the rates. O(bands). */
  collectAndSample(nowMs: number): void {
    this.tendAtMs = nowMs + tendEveryMs;
    this.flows.collect(nowMs);
    for (const band of [...this.ordered]) {
      if (isIdle(band) && nowMs - band.traffic.lastUsedMs >= this.settings.bandIdleTimeoutMs) this.remove(band);
      else band.traffic.sample(nowMs);
    }
  }

  /** Takes new settings. A band no longer configured lives until it is idle. Policies asked for as before stay. */
  configure(given: BandRegistrySettings, nowMs: number): void {
    const policies = new PolicyReuse();
    const defaultBand = policies.of(given.defaultBand, this.settings.defaultBand);
    const defaultNegativeBand = policies.of(given.defaultNegativeBand, this.settings.defaultNegativeBand);
    const settings = { ...given, defaultBand, defaultNegativeBand };
    this.settings = settings;
    this.flows.configure(settings, this.ordered);
    const configured = new Map(settings.bands.map((band) => [band.priority, band]));
    for (const band of this.ordered) {
      const own = configured.get(band.priority);
      band.isConfigured = own !== undefined;
      band.configure(policies.of(own ?? this.templateFor(band.priority), band.settings));
      band.track(this.needsArrivals(band.priority), settings.overflow === 'fair');
      configured.delete(band.priority);
    }
    for (const own of configured.values()) this.add(own.priority, true, policies.of(own, undefined), nowMs);
    this.version++;
    this.configureShares(settings);
  }

  /** The band that has been idle longest; of several, the highest. */
  private longestIdle(): PriorityBand | undefined {
    let longest: PriorityBand | undefined;
    for (const band of this.ordered) {
      if (isIdle(band) && (longest === undefined || band.traffic.lastUsedMs < longest.traffic.lastUsedMs))
        longest = band;
    }
    return longest;
  }

  private templateFor(priority: number): BandSettings {
    return priority < 0 ? this.settings.defaultNegativeBand : this.settings.defaultBand;
  }

  private add(priority: number, isConfigured: boolean, settings: BandSettings, nowMs: number): PriorityBand {
    const band = new PriorityBand(priority, isConfigured, settings, this.listener, nowMs);
    band.track(this.needsArrivals(priority), this.settings.overflow === 'fair');
    this.byPriority.set(priority, band);
    this.ordered.splice(position(this.ordered, priority), 0, band);
    this.version++;
    this.listener.bandAdded(band);
    return band;
  }

  /** The band must be empty. */
  private remove(band: PriorityBand): void {
    this.flows.removeAll(band);
    this.ignoredBefore += band.policies.ignoredReports;
    this.byPriority.delete(band.priority);
    this.ordered.splice(position(this.ordered, band.priority), 1);
    this.version++;
    this.shares.removed(band);
    this.listener.bandRemoved(band);
  }

  /** Some orders of bands ask for the oldest request of a band, and displacement asks for the newest. */
  private needsArrivals(priority: number): boolean {
    return this.settings.bandOrder.needsOldest || (this.settings.overflow === 'displace' && priority < 0);
  }
}

function isCompeting(band: PriorityBand): boolean {
  return band.waiting > band.aside.waiting.parked;
}

function isIdle(band: PriorityBand): boolean {
  return !band.isConfigured && band.waiting === 0 && band.trackedInFlight === 0;
}

/** Makes flows, remembers idle ones. Invariant: at most `maxFlows` named ones, and `overflowFlows` more a band. */
export class FlowTable {
  size = 0;
  /** The number of overflow flows, which fairness IDs share when the table is full. */
  private overflows = 0;
  readonly idle: LinkedList<Flow> = new LinkedList();
  private queuesByClass: boolean;
  private settings: FlowTableSettings;
  private readonly onRemoved: (flow: Flow) => void;

  constructor(settings: FlowTableSettings, onRemoved: (flow: Flow) => void) {
    this.settings = settings;
    this.queuesByClass = settings.holBlocking === 'none';
    this.onRemoved = onRemoved;
  }

  /** Takes new settings, and gives the flows of `bands` their new weights. */
  configure(settings: FlowTableSettings, bands: readonly PriorityBand[]): void {
    this.settings = settings;
    this.queuesByClass = settings.holBlocking === 'none';
    for (const band of bands) for (const flow of band.flows.values()) this.setWeight(flow);
  }

  /** Reads the settings of one fairness ID anew. O(bands), and O(flows of the band) where classes queue apart. */
  refresh(fairnessId: string, bands: readonly PriorityBand[]): void {
    for (const { flows, longestQueues } of bands) {
      const own = flows.get(fairnessId);
      for (const flow of this.queuesByClass ? flows.values() : own === undefined ? [] : [own]) {
        if (flow.fairnessId !== fairnessId) continue;
        this.setWeight(flow);
        longestQueues?.weighed(flow);
      }
    }
  }

  /** The flow of a request, made when missing; one for each class of requests where classes queue apart. O(1). */
  flowOf(band: PriorityBand, item: Pick<WaitingItem, 'fairnessId' | 'requestClass'>, nowMs: number): Flow {
    const { fairnessId } = item;
    let name = fairnessId;
    if (this.queuesByClass && item.requestClass !== undefined) name += `${classPrefix}${item.requestClass}`;
    return band.flows.get(name) ?? this.make(band, name, fairnessId, nowMs);
  }

  /** The flow got work. */
  markBusy(flow: Flow): void {
    if (!flow.isIdle) return;
    flow.isIdle = false;
    this.idle.remove(flow);
  }

  /** A request of an idle flow went without waiting. */
  touch(flow: Flow, nowMs: number): void {
    this.idle.remove(flow);
    this.markIdle(flow, nowMs);
  }

  /** Marks the flow idle when nothing of it waits or is tracked in flight any more. */
  markIdle(flow: Flow, nowMs: number): void {
    if (flow.waiting > 0 || flow.trackedInFlight > 0) return;
    flow.isIdle = true;
    flow.idleSinceMs = nowMs;
    this.idle.push(flow);
    const longest = this.idle.first ?? flow;
    if (nowMs - longest.idleSinceMs >= this.settings.flowIdleTimeoutMs) this.collect(nowMs);
  }

  /** Forgets flows that have been idle for the timeout. O(1): a few at a time. */
  collect(nowMs: number): void {
    for (let i = 0; i < collectedAtATime; i++) {
      const flow = this.idle.first;
      if (flow === undefined || nowMs - flow.idleSinceMs < this.settings.flowIdleTimeoutMs) return;
      this.remove(flow);
    }
  }

  removeAll(band: PriorityBand): void {
    for (const flow of [...band.flows.values()]) this.remove(flow);
  }

  /** When full, the flows idle longest make room. If none is idle, the fairness ID shares an overflow flow. */
  private hasRoomFor(name: string): boolean {
    if (name.length > longestName) return false;
    for (let i = 0; i < collectedAtATime && this.size >= this.settings.maxFlows && this.idle.first !== undefined; i++)
      this.remove(this.idle.first);
    return this.size < this.settings.maxFlows;
  }

  private make(band: PriorityBand, wanted: string, wantedId: string, nowMs: number): Flow {
    let name = wanted;
    let fairnessId = wantedId;
    // Requests of this very fairness ID may wait in the flow that it shared: they go first, so it shares on until
    // nothing waits there.
    const busy = this.overflows > 0 ? band.flows.get(overflowName(wanted)) : undefined;
    if (busy !== undefined && busy.waiting > 0) return busy;
    if (!this.hasRoomFor(wanted)) {
      name = overflowName(wanted);
      fairnessId = name;
      const existing = band.flows.get(name);
      if (existing !== undefined) return existing;
    }
    if (isOverflow(name)) this.overflows++;
    const flow = new Flow(name, fairnessId, band, band.policies.queueForFlow());
    this.setWeight(flow);
    band.flows.set(name, flow);
    this.size++;
    this.markIdle(flow, nowMs);
    return flow;
  }

  private setWeight(flow: Flow): void {
    flow.weight = isOverflow(flow.fairnessId) ? 1 : (this.settings.flows.get(flow.fairnessId)?.weight ?? 1);
  }

  private remove(flow: Flow): void {
    this.markBusy(flow);
    flow.band.flows.delete(flow.name);
    flow.band.policies.selector?.flowRemoved(flow);
    this.size--;
    if (isOverflow(flow.name)) this.overflows--;
    this.onRemoved(flow);
  }
}

function overflowName(name: string): string {
  return `${overflowPrefix}${textHash(name) % overflowFlows}`;
}

function isOverflow(name: string): boolean {
  return name.startsWith(overflowPrefix);
}

/** Keeps equal policies in place of new ones, so that a file that is read again loses nothing they have learnt. */
class PolicyReuse {
  /** New policy → the one in use that stands for it: bands that come later share what the others share. */
  private readonly kept = new Map<object, object>();

  /** `before`: the settings in force; undefined for a band that is new. Call it first for bands that exist. */
  of<S extends BandSettings>(next: S, before: BandSettings | undefined): S {
    const fairness = this.choose(next.fairness, before?.fairness);
    const ordering = this.choose(next.ordering, before?.ordering);
    return fairness === next.fairness && ordering === next.ordering ? next : { ...next, fairness, ordering };
  }

  private choose<P extends object>(next: P, before: P | undefined): P {
    if (before === undefined || !isSamePlugin(before, next)) return (this.kept.get(next) as P | undefined) ?? next;
    if (!this.kept.has(next)) this.kept.set(next, before);
    return before;
  }
}
