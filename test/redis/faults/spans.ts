/** The options of the replicas, scaled down so that a run takes seconds, and what is stated in terms of them. */
import { parseArgs } from 'node:util';
import type { Counter, Limits } from './messages.js';

const options = { slow: { type: 'string', default: '1' }, busy: { type: 'string', default: '700' } } as const;
const { values } = parseArgs({ options, strict: false });
/** `--slow 4`: everything takes four times as long, for a machine that has other work too. */
export const slowness = Number(values.slow);

export const refreshMs = 100 * slowness;
export const leaseMs = 1_000 * slowness;
export const longestMs = 300 * slowness;
/** The longest request, and what a busy machine adds. */
export const drainMs = 1_500 * slowness;
export const forgetMs = 2_000 * slowness;
export const callTimeoutMs = 50 * slowness;
/** `--busy 5000`: so many ms a busy machine may add to a time that is stated. */
export const busyMs = Number(values.busy) * slowness;
export const limit = 16;
export const limits: Limits = { requests: limit, tokens: 3 * limit, 'endpoint a': 6, 'endpoint b': 12 };

/** What a run knows of one limit when it is over. */
export interface Extent {
  readonly counter: Counter | 'quota';
  readonly limit: number;
  /** Replicas at the start of the run. */
  readonly replicas: number;
}

/** The most that may be in flight above a limit. */
export interface StatedExcess {
  readonly words: string;
  readonly most: (extent: Extent) => number;
}

/** After the end of a fault: how long until all seats are in use again, and none more. */
export interface StatedReturn {
  readonly words: string;
  readonly ms: number;
}

export const nothing: StatedExcess = { words: '0', most: () => 0 };

const spans = { refresh: refreshMs, lease: leaseMs, drain: drainMs, forget: forgetMs, longest: longestMs };

/** Such as `lease + drain`. Two refreshes are added, because who has seats must hear of who wants them. */
export function within(...parts: readonly (keyof typeof spans)[]): StatedReturn {
  const ms = parts.reduce((sum, part) => sum + spans[part], 2 * refreshMs);
  return { words: parts.join(' + ') || '0', ms };
}
