/** How long to wait before the next attempt when nobody says how long. */
import * as s from '../base/schema/schema.js';

/** The pause in ms after `attempt` failed; attempts count from 0. `random` is a source of 0 <= value < 1. */
export type Backoff = (attempt: number, random: () => number) => number;

export interface FullJitterOptions {
  /** Longest pause after the first attempt, ms above 0; it doubles with every attempt. */
  initialMs: number;
  /** Longest pause of all, ms above 0. */
  maxMs: number;
}

const jitterOptions = s.object({ initialMs: s.msAboveZero(), maxMs: s.msAboveZero() });

/**
 * `random() · min(maxMs, initialMs · 2^attempt)`, so that refused clients do not come back together. Source: Brooker,
 * "Exponential Backoff And Jitter", AWS Architecture Blog, 2015. @throws FlowConfigError
 */
export function fullJitter(options: FullJitterOptions): Backoff {
  const { initialMs, maxMs } = s.parse(jitterOptions, options, 'fullJitter');
  return (attempt, random) => random() * Math.min(maxMs, initialMs * 2 ** attempt);
}

/** Dynamo's advice: `min(60, 2^attempt + random())` seconds, for five attempts. Source: its guidance for clients. */
export function dynamoBackoff(): Backoff {
  return (attempt, random) => Math.min(60, 2 ** attempt + random()) * 1000;
}
