/** Feeds an adaptive detector whole windows, without a server. */
import type { AdaptiveDetector } from '../../src/types/index.js';
import { fakeEndpoint, poolOf } from './fake-pool.js';

/** So many requests in flight on one endpoint. */
export function inFlight(inFlightRequests: number) {
  return poolOf(fakeEndpoint('a', { inFlightRequests }));
}

interface FedWindow {
  /** The latency of all its requests. */
  ttftMs: number;
  /** @default the limit: the pool is as full as it may be */
  peak?: number;
  drops?: number;
}

/** Plays windows of ten requests and one second, one after the other. */
export class WindowFeed {
  private nowMs = 0;
  private readonly detector: AdaptiveDetector;

  constructor(detector: AdaptiveDetector) {
    this.detector = detector;
  }

  /** The limit after the window. */
  play({ ttftMs, peak = this.detector.limit, drops = 0 }: FedWindow): number {
    this.detector.saturation(inFlight(peak), this.nowMs);
    for (let i = 0; i < 9; i++) this.detector.observe(i < drops ? { isDrop: true } : { ttftMs }, this.nowMs);
    this.nowMs += 1000;
    this.detector.saturation(inFlight(0), this.nowMs);
    this.detector.observe(drops < 10 ? { ttftMs } : { isDrop: true }, this.nowMs);
    return this.detector.limit;
  }
}
