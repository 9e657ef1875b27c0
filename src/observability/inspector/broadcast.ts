/**
 * Sends frames to everybody who watches: one timer, one frame for all. A slow watcher misses some.
 *
 * Invariant: without watchers there is no timer. A watcher holds at most one frame that it has not taken.
 */
import type { Clock } from '../../index.js';

type Watcher = ReadableStreamDefaultController<Uint8Array>;

export class Broadcast {
  private readonly watchers = new Set<Watcher>();
  private timer: unknown = undefined;
  private readonly encoder = new TextEncoder();
  private readonly clock: Clock;
  private readonly intervalMs: number;
  private readonly nextFrame: () => string;

  /** `nextFrame` answers JSON; it is called when at least one watcher is ready for it. */
  constructor(clock: Clock, intervalMs: number, nextFrame: () => string) {
    this.clock = clock;
    this.intervalMs = intervalMs;
    this.nextFrame = nextFrame;
  }

  get size(): number {
    return this.watchers.size;
  }

  /** Server-sent events: a frame at once, then one every interval. Ends when the reader cancels, or with `close`. */
  watch(): ReadableStream<Uint8Array> {
    let watcher: Watcher;
    const first = this.event();
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          watcher = controller;
          this.watchers.add(watcher);
          watcher.enqueue(first);
          this.timer ??= this.clock.setTimeout(() => this.tick(), this.intervalMs);
        },
        cancel: () => this.leave(watcher),
      },
      { highWaterMark: 1 },
    );
  }

  close(): void {
    for (const watcher of [...this.watchers]) {
      this.leave(watcher);
      watcher.close();
    }
  }

  private tick(): void {
    this.timer = this.clock.setTimeout(() => this.tick(), this.intervalMs);
    const ready = [...this.watchers].filter(({ desiredSize }) => desiredSize !== null && desiredSize > 0);
    if (ready.length === 0) return;
    try {
      const event = this.event();
      for (const watcher of ready) watcher.enqueue(event);
    } catch (error) {
      // An exception in a timer would end the process, so the watchers are told of it instead.
      for (const watcher of [...this.watchers]) {
        this.leave(watcher);
        watcher.error(error);
      }
    }
  }

  private leave(watcher: Watcher): void {
    this.watchers.delete(watcher);
    if (this.watchers.size > 0) return;
    this.clock.clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** JSON has no line breaks. */
  private event(): Uint8Array {
    return this.encoder.encode(`data: ${this.nextFrame()}\n\n`);
  }
}
