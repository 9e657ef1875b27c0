/** Saturation of this process: how late and how busy its event loop is, while subscribed to. Keeps no process alive. */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import * as s from '../../base/schema/schema.js';
import { definePlugin, type SaturationDetector } from '../../index.js';
import type { PluginDefinition } from '../../types/index.js';

/** Above which lag of the event loop this process counts as full, and how the lag is measured. */
export interface EventLoopLagOptions {
  /** Time between two samples, ms, above 0. @default 500 */
  intervalMs?: number | undefined;
  /** How often lateness is looked at between two samples, ms, an integer from 1 up. @default 10 */
  resolutionMs?: number | undefined;
  /** Lateness at which the process is full, ms, above 0. @default 100 */
  lagTargetMs?: number | undefined;
  /** Share of the time in which the loop is busy at which the process is full, above 0, at most 1. @default 0.95 */
  utilizationTarget?: number | undefined;
  /** Weight of a sample that is higher than the saturation, above 0, at most 1. @default 0.3 */
  riseSmoothing?: number | undefined;
  /** Weight of a sample that is lower, above 0, at most 1. @default 0.1 */
  fallSmoothing?: number | undefined;
}

const eventLoopLagOptions = s.object({
  intervalMs: s.optional(s.aboveZero(), 500),
  resolutionMs: s.optional(s.positiveInteger(), 10),
  lagTargetMs: s.optional(s.aboveZero(), 100),
  utilizationTarget: s.optional(s.ratioAboveZero(), 0.95),
  riseSmoothing: s.optional(s.ratioAboveZero(), 0.3),
  fallSmoothing: s.optional(s.ratioAboveZero(), 0.1),
});

/** The measurement of one interval. */
export interface EventLoopSample {
  /** How late the loop was, ms: the 99th percentile, and the worst. */
  readonly p99LagMs: number;
  readonly maxLagMs: number;
  /** Share of the interval in which the loop was busy, 0…1. */
  readonly utilization: number;
}

export interface EventLoopLagDetector extends SaturationDetector {
  /** Undefined until the first interval is over. */
  readonly lastSample: EventLoopSample | undefined;
  /** Ends the measurement; the last reading stays. */
  close(): void;
}

const type = 'event-loop-lag-detector';

/**
 * `max(p99 lag / lagTargetMs, utilization / utilizationTarget)` of each interval, smoothed: fast upward, slowly
 * downward. Lag misses a loop that is busy in small slices, utilization one long block. O(1). @throws FlowConfigError
 */
export function eventLoopLag(options: EventLoopLagOptions = {}): EventLoopLagDetector {
  const settings = s.parse(eventLoopLagOptions, options, 'eventLoopLag');
  const { intervalMs, resolutionMs, lagTargetMs, utilizationTarget, riseSmoothing, fallSmoothing } = settings;
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  const listeners = new Set<() => void>();
  let sinceStart = performance.eventLoopUtilization();
  let timer: ReturnType<typeof setInterval> | undefined;
  let saturation = 0;
  let lastSample: EventLoopSample | undefined;

  /** The histogram's values are ns, and contain the resolution. */
  const lagOf = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolutionMs);

  function look(): void {
    if (timer === undefined) return;
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, sinceStart);
    sinceStart = now;
    lastSample = { p99LagMs: lagOf(histogram.percentile(99)), maxLagMs: lagOf(histogram.max), utilization };
    histogram.reset();
    const reading = Math.max(lastSample.p99LagMs / lagTargetMs, utilization / utilizationTarget);
    const before = saturation;
    saturation += (reading - before) * (reading > before ? riseSmoothing : fallSmoothing);
    if (saturation < before) for (const listener of [...listeners]) listener();
  }

  function start(): void {
    if (timer !== undefined) return;
    histogram.enable();
    sinceStart = performance.eventLoopUtilization();
    // After a block this timer may run before the histogram's own, and the reset would lose the block: look after all.
    timer = setInterval(() => setImmediate(look).unref(), intervalMs).unref();
  }

  function close(): void {
    clearInterval(timer);
    timer = undefined;
    histogram.disable();
    histogram.reset();
  }

  start();
  return {
    type,
    get lastSample() {
      return lastSample;
    },
    saturation: ({ endpoints }) => (endpoints.length === 0 ? Math.max(1, saturation) : saturation),
    subscribe(listener) {
      const entry = (): void => listener();
      listeners.add(entry);
      start();
      return () => {
        if (listeners.delete(entry) && listeners.size === 0) close();
      };
    },
    close,
  };
}

/** For `defaultRegistry().add(eventLoopLagPlugin)`: the core, which runs on every runtime, cannot know it. */
export const eventLoopLagPlugin: PluginDefinition<'saturationDetector'> = /* @__PURE__ */ definePlugin({
  kind: 'saturationDetector',
  type,
  parameters: eventLoopLagOptions,
  create: eventLoopLag,
});
