/**
 * Finds leases that are held longer than `maxLeaseMs`. Reports each once, and takes its seat back if the host asked for
 * that.
 *
 *     running:  oldest ──► … ──► newest          one timer, for the oldest that was not told of
 *
 * Invariant: the timer is set while a lease runs that was not reported. It keeps no process alive.
 */
import { type Clock, letProcessEnd } from '../../base/clock.js';
import { warnOperator } from '../../base/faults/warn-operator.js';
import { OneTimer } from '../../base/one-timer.js';
import type { EventHub } from '../event-hub.js';
import type { Lease } from '../outcome/lease.js';

export interface WatchedLease extends Lease {
  /** The next younger one. */
  readonly next: WatchedLease | undefined;
  readonly face: Lease;
  /** False when it was noted before. */
  noteOverdue(): boolean;
}

export class LeaseWatch extends OneTimer {
  readonly maxLeaseMs: number;
  readonly takesBack: boolean;
  private isTold = false;

  /** `onTime` is called when `look` is due. */
  constructor(maxLeaseMs: number, takesBack: boolean, clock: Clock, onTime: () => void) {
    super(clock, onTime);
    this.maxLeaseMs = maxLeaseMs;
    this.takesBack = takesBack;
  }

  /** Sets the timer that a lease of `ageMs` needs. */
  wait(ageMs: number): void {
    letProcessEnd(this.set(Infinity, this.maxLeaseMs - ageMs));
  }

  /** Reports the due leases from the `oldest` on; returns how many. O(leases that are held too long). */
  look(oldest: WatchedLease | undefined, events: EventHub, nowMs: number): number {
    let told = 0;
    let lease = oldest;
    for (; lease !== undefined && nowMs - lease.dispatchedAtMs >= this.maxLeaseMs; lease = lease.next) {
      if (!lease.noteOverdue()) continue;
      told++;
      const heldMs = nowMs - lease.dispatchedAtMs;
      if (events.heard.leaseOverdue)
        events.emit('leaseOverdue', { lease: lease.face, heldMs, isTakenBack: this.takesBack });
      else this.tell(lease, heldMs);
      if (this.takesBack) takeBack(lease);
    }
    if (lease !== undefined && !this.isSet) this.wait(nowMs - lease.dispatchedAtMs);
    return told;
  }

  private tell({ priority }: Lease, heldMs: number): void {
    if (this.isTold) return;
    this.isTold = true;
    const what = `a lease of priority ${priority} is held for ${Math.round(heldMs)} ms, longer than maxLeaseMs`;
    warnOperator(`${what}. This is written once; flow.on('leaseOverdue', …) tells of every one.`);
  }
}

/** Ends a lease in place of a host that did not. */
export function takeBack(lease: Lease): void {
  lease.abort(new DOMException('The lease was held longer than it may be.', 'TimeoutError'));
  lease.release();
}
