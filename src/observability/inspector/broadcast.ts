/** Frames for all who watch, each at its own pace. Invariant: no watcher, no timer; each holds one frame. */
import type { Clock } from '../../index.js';

type Watcher = ReadableStreamDefaultController<Uint8Array>;

export interface Broadcast {
  readonly watchers: number;
  /** Server-sent events: a frame at once, then one every interval. Ends when the reader cancels, or with `close`. */
  watch(): ReadableStream<Uint8Array>;
  close(): void;
}

/** `nextFrame` answers JSON; it is asked when a watcher has taken its last one. If it fails, that stream breaks off. */
export function broadcast(clock: Clock, intervalMs: number, nextFrame: () => Promise<string>): Broadcast {
  /** Each with the timer of its next frame. */
  const watchers = new Map<Watcher, unknown>();
  const encoder = new TextEncoder();

  function leave(watcher: Watcher): void {
    clock.clearTimeout(watchers.get(watcher));
    watchers.delete(watcher);
  }

  async function tell(watcher: Watcher): Promise<void> {
    try {
      // JSON has no line breaks.
      watcher.enqueue(encoder.encode(`data: ${await nextFrame()}\n\n`));
    } catch (error) {
      leave(watcher);
      watcher.error(error);
    }
  }

  return {
    get watchers() {
      return watchers.size;
    },
    watch() {
      let watcher: Watcher;
      return new ReadableStream<Uint8Array>(
        {
          start: (controller) => {
            watcher = controller;
            watchers.set(watcher, undefined);
            return tell(watcher);
          },
          pull: () =>
            new Promise((resolve) => {
              const due = (): void => void tell(watcher).then(resolve);
              watchers.set(watcher, clock.setTimeout(due, intervalMs));
            }),
          cancel: () => leave(watcher),
        },
        { highWaterMark: 1 },
      );
    },
    close() {
      for (const watcher of [...watchers.keys()]) {
        leave(watcher);
        watcher.close();
      }
    },
  };
}
