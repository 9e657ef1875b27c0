/** Running requests asked to leave. Only meanwhile `released` is listened to, because it comes for every request. */
import type { Lease } from '../../index.js';

export class Victims {
  /** Gave their seats up. */
  confirmed = 0;
  private readonly leaving = new Set<Lease>();
  private readonly onReleased: (listener: (lease: Lease) => void) => () => void;
  private stopListening: (() => void) | undefined = undefined;

  constructor(onReleased: (listener: (lease: Lease) => void) => () => void) {
    this.onReleased = onReleased;
  }

  add(lease: Lease): void {
    this.leaving.add(lease);
    this.stopListening ??= this.onReleased((released) => this.left(released));
  }

  stop(): void {
    this.stopListening?.();
    this.stopListening = undefined;
  }

  private left(lease: Lease): void {
    if (!this.leaving.delete(lease)) return;
    this.confirmed++;
    if (this.leaving.size === 0) this.stop();
  }
}
