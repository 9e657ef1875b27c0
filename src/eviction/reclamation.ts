/**
 * How many running requests to evict for a band that the gate holds back, and when to look again.
 * It works by stop and wait: it decides again only when every victim of the last decision has left, and the room that
 * they freed had time to show.
 *
 *     issued ──confirmed──► cooling for graceMs ──► forgotten
 *        └──timeoutMs──────►
 */
import type { EvictorSettings } from './eviction-policy.js';

type ReclamationSettings = Pick<EvictorSettings, 'maxPerDecision' | 'graceMs' | 'timeoutMs'>;

/** The input of a decision. */
export interface Demand {
  readonly inFlight: number;
  readonly evictable: number;
  readonly saturation: number;
  /** Of the band that waits. */
  readonly ceiling: number;
}

interface Revocation {
  readonly credit: number;
  /** The instant at which it stops counting, unless it is confirmed before. */
  deadlineMs: number;
  isCooling: boolean;
}

export class Reclamation<Id> {
  private readonly settings: () => ReclamationSettings;
  private readonly revocations = new Map<Id, Revocation>();
  /** Saturation that the victims still leaving will free. */
  pending = 0;

  /** `settings`: those in force. */
  constructor(settings: () => ReclamationSettings) {
    this.settings = settings;
  }

  /** True when nothing is outstanding or cooling. O(maxPerDecision). */
  isSettled(nowMs: number): boolean {
    for (const [id, revocation] of this.revocations) {
      if (nowMs < revocation.deadlineMs) continue;
      if (revocation.isCooling) this.forget(id, revocation);
      else this.left(id, revocation, nowMs);
    }
    return this.revocations.size === 0;
  }

  /** When `isSettled` may next become true although no victim leaves; Infinity when it is true. */
  get settlesAtMs(): number {
    let earliest = Infinity;
    for (const { deadlineMs } of this.revocations.values()) earliest = Math.min(earliest, deadlineMs);
    return earliest;
  }

  /** Requests to evict: one frees `saturation / inFlight`; exactly at the ceiling costs one, as the gate is strict. */
  size({ inFlight, evictable, saturation, ceiling }: Demand): number {
    const credit = saturation / inFlight;
    if (!(credit > 0 && credit < Infinity)) return 0;
    const net = saturation - ceiling - this.pending;
    if (net < 0 || (net === 0 && this.pending > 0)) return 0;
    return Math.min(Math.max(1, Math.ceil(net / credit)), this.settings().maxPerDecision, evictable);
  }

  issued(id: Id, credit: number, nowMs: number): void {
    this.revocations.set(id, { credit, deadlineMs: nowMs + this.settings().timeoutMs, isCooling: false });
    this.pending += credit;
  }

  /** The victim left. Other requests are ignored. Returns whether it was a victim. */
  confirmed(id: Id, nowMs: number): boolean {
    const revocation = this.revocations.get(id);
    if (revocation === undefined || revocation.isCooling) return false;
    this.left(id, revocation, nowMs);
    return true;
  }

  /** The victim has left, or counts as gone: the room that it freed now needs time to show. */
  private left(id: Id, revocation: Revocation, nowMs: number): void {
    revocation.isCooling = true;
    revocation.deadlineMs = nowMs + this.settings().graceMs;
    if (this.settings().graceMs === 0) this.forget(id, revocation);
  }

  private forget(id: Id, { credit }: Revocation): void {
    this.revocations.delete(id);
    this.pending = this.revocations.size === 0 ? 0 : Math.max(0, this.pending - credit);
  }
}
