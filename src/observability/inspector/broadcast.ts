/** One timer and frame for all; slow ones miss some. Invariant: no watcher, no timer; each holds one frame. */
import type { Clock } from '../../index.js';

type Watcher = ReadableStreamDefaultController<Uint8Array>;

export interface Broadcast {
  readonly watchers: number;
  /** Server-sent events: a frame at once, then one every interval. Ends when the reader cancels, or with `close`. */
  watch(): ReadableStream<Uint8Array>;
  close(): void;
}

/** `nextFrame` answers JSON; it is called when at least one watcher is ready for it. */
export function broadcast(clock: Clock, intervalMs: number, nextFrame: () => string): Broadcast {
  const watchers = new Set<Watcher>();
  const encoder = new TextEncoder();
  let timer: unknown;

  /** JSON has no line breaks. */
  const event = (): Uint8Array => encoder.encode(`data: ${nextFrame()}\n\n`);

  function tick(): void {
    timer = clock.setTimeout(tick, intervalMs);
    const ready = [...watchers].filter(({ desiredSize }) => desiredSize !== null && desiredSize > 0);
    if (ready.length === 0) return;
    try {
      const next = event();
      for (const watcher of ready) watcher.enqueue(next);
    } catch (error) {
      // An exception in a timer would end the process, so the watchers are told of it instead.
      dismiss((watcher) => watcher.error(error));
    }
  }

  function leave(watcher: Watcher): void {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clock.clearTimeout(timer);
    timer = undefined;
  }

  function dismiss(tell: (watcher: Watcher) => void): void {
    for (const watcher of [...watchers]) {
      leave(watcher);
      tell(watcher);
    }
  }

  return {
    get watchers() {
      return watchers.size;
    },
    watch() {
      let watcher: Watcher;
      const first = event();
      return new ReadableStream<Uint8Array>(
        {
          start: (controller) => {
            watcher = controller;
            watchers.add(watcher);
            watcher.enqueue(first);
            timer ??= clock.setTimeout(tick, intervalMs);
          },
          cancel: () => leave(watcher),
        },
        { highWaterMark: 1 },
      );
    },
    close: () => dismiss((watcher) => watcher.close()),
  };
}
