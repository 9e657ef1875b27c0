/** The controller of a call that no dispatcher has taken yet: there is nothing to pause, but the caller may abort. */
import type { Dispatcher } from 'undici';

export class WaitingController implements Dispatcher.DispatchController {
  aborted = false;
  reason: Error | null = null;
  readonly paused = false;
  private readonly onAbort: (reason: Error) => void;

  constructor(onAbort: (reason: Error) => void) {
    this.onAbort = onAbort;
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.onAbort(reason);
  }

  pause(): void {}

  resume(): void {}
}
