/** Stability by the mean latency alone. */
import { parse } from '../../../src/base/schema/element.js';
import { aboveZero } from '../../../src/base/schema/types.js';

import { mean, nothingSeen, type Stability } from './stability.js';

export interface ThresholdOptions {
  /** Mean end-to-end latency from which a run counts as overloaded, ms above 0. @default 5000 */
  thresholdMs?: number | undefined;
}

/**
 * Mean latency m against the threshold T. m < T: STABLE, score `m/2T`. Else OVERLOADED, score
 * `3/4 + min(1/4, (m − T)/4T)`. Confidence = `1 − 1/√(n + 1)` for n latencies. Source: BLIS, its threshold detector.
 * @throws FlowConfigError
 */
export function thresholdStability(
  latenciesMs: readonly number[],
  { thresholdMs = 5000 }: ThresholdOptions = {},
): Stability {
  const threshold = parse(aboveZero(), thresholdMs, 'thresholdStability thresholdMs');
  if (latenciesMs.length === 0) return nothingSeen;
  const latencyMs = mean(latenciesMs);
  const confidence = 1 - 1 / Math.sqrt(latenciesMs.length + 1);
  if (latencyMs < threshold) return { level: 'STABLE', score: (0.5 * latencyMs) / threshold, confidence };
  return { level: 'OVERLOADED', score: 0.75 + Math.min(0.25, (latencyMs - threshold) / threshold / 4), confidence };
}
