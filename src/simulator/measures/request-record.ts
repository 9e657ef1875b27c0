/** One request of a run, for those who want to look at each: kept only where asked for. */
import type { Ending, SimRequest } from '../requests/sim-request.js';

/** Instants in ms of simulated time; undefined where it did not come so far. */
export interface RequestRecord {
  readonly tenant: string;
  readonly priority: number;
  readonly promptTokens: number;
  /** Of its answer, as far as it was written. */
  readonly outputTokens: number;
  readonly arrivedAtMs: number;
  readonly dispatchedAtMs: number | undefined;
  readonly firstTokenAtMs: number | undefined;
  readonly endedAtMs: number | undefined;
  readonly attempts: number;
  /** `unfinished`: the run ended first. */
  readonly ending: Ending | 'unfinished';
  readonly dropReason: string | undefined;
}

export function recordOf(request: SimRequest, ending: Ending | 'unfinished', nowMs: number): RequestRecord {
  const known = (atMs: number): number | undefined => (Number.isNaN(atMs) ? undefined : atMs);
  return {
    tenant: request.key.fairnessId,
    priority: request.key.priority ?? 0,
    promptTokens: request.promptTokens,
    outputTokens: request.tokensOut,
    arrivedAtMs: request.arrivedAtMs,
    dispatchedAtMs: known(request.dispatchedAtMs),
    firstTokenAtMs: known(request.firstTokenAtMs),
    endedAtMs: ending === 'unfinished' ? undefined : nowMs,
    attempts: request.attempts,
    ending,
    dropReason: ending === 'dropped' ? request.dropReason : undefined,
  };
}
