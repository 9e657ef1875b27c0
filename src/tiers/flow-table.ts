/**
 * Makes flows on first use, remembers the idle ones for a while, and bounds how many there are.
 *
 * Invariant: at most `maxFlows` named flows exist, and at most `overflowFlows` more in each band.
 */

import { LinkedList } from '../base/queues/linked-list.js';
import { textHash } from '../base/text-hash.js';
import { Flow, type FlowProfiles } from './flow.js';
import type { PriorityBand } from './priority-band.js';

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
}

export class FlowTable {
  size = 0;
  /** The number of overflow flows, which fairness IDs share when the table is full. */
  private overflows = 0;
  readonly idle: LinkedList<Flow> = new LinkedList();
  private settings: FlowTableSettings;
  private readonly onRemoved: (flow: Flow) => void;

  constructor(settings: FlowTableSettings, onRemoved: (flow: Flow) => void) {
    this.settings = settings;
    this.onRemoved = onRemoved;
  }

  /** Takes new settings, and gives the flows of `bands` their new weights. */
  configure(settings: FlowTableSettings, bands: readonly PriorityBand[]): void {
    this.settings = settings;
    for (const band of bands) for (const flow of band.flows.values()) this.setWeight(flow);
  }

  /** Reads the settings of one fairness ID anew. O(bands), and O(flows of the band) where classes queue apart. */
  refresh(fairnessId: string, bands: readonly PriorityBand[], queuesByClass: boolean): void {
    for (const { flows } of bands) {
      const own = flows.get(fairnessId);
      for (const flow of queuesByClass ? flows.values() : own === undefined ? [] : [own]) {
        if (flow.fairnessId === fairnessId) this.setWeight(flow);
      }
    }
  }

  /** The flow of a fairness ID, made when missing; one for each class of requests where classes queue apart. O(1). */
  flowOf(band: PriorityBand, fairnessId: string, nowMs: number, requestClass?: string): Flow {
    const name = requestClass === undefined ? fairnessId : `${fairnessId}${classPrefix}${requestClass}`;
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
    this.linkIdle(flow, nowMs);
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

  /** Forgets every flow of an empty band. */
  removeAll(band: PriorityBand): void {
    for (const flow of [...band.flows.values()]) this.remove(flow);
  }

  /**
   * When the table is full, the flows idle longest make room. If none is idle, the fairness ID shares an overflow flow.
   */
  private hasRoomFor(name: string): boolean {
    if (name.length > longestName) return false;
    for (let i = 0; i < collectedAtATime && this.size >= this.settings.maxFlows && this.idle.first !== undefined; i++) {
      this.remove(this.idle.first);
    }
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
    const flow = new Flow(name, fairnessId, band, band.queueForFlow());
    this.setWeight(flow);
    band.flows.set(name, flow);
    this.size++;
    this.linkIdle(flow, nowMs);
    return flow;
  }

  private setWeight(flow: Flow): void {
    flow.weight = isOverflow(flow.fairnessId) ? 1 : (this.settings.flows.get(flow.fairnessId)?.weight ?? 1);
  }

  private linkIdle(flow: Flow, nowMs: number): void {
    flow.isIdle = true;
    flow.idleSinceMs = nowMs;
    this.idle.push(flow);
  }

  private remove(flow: Flow): void {
    this.markBusy(flow);
    flow.band.removeFlow(flow);
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
