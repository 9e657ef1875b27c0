/** The result of a simulation. Plain data: the same scenario and seed give the same text as JSON, on every engine. */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import type { GroupFigures } from '../measures/group.js';
import type { ServiceDifference } from '../measures/service-difference.js';
import type { TimeSeries } from '../measures/time-series.js';
import type { RequestRecord } from '../requests/sim-request.js';
import type { ServerUse } from '../servers/sim-server.js';

/** Counts of the whole run, with the warm-up. `dispatched = completed + evicted + cancelled + broken + inFlight`. */
export interface RunCounts {
  /** Requests that clients sent, retries apart. */
  readonly requests: number;
  /** Calls of `enqueue`. `attempts + requeued = dispatched + dropped + waiting`. */
  readonly attempts: number;
  readonly dispatched: number;
  readonly completed: number;
  /** Requests that were evicted while they ran, queued again or not. */
  readonly evicted: number;
  /** Evicted requests that were queued again. */
  readonly requeued: number;
  /** Cancelled while they ran. */
  readonly cancelled: number;
  /** Running on a server that died, tried again or not. */
  readonly broken: number;
  /** Attempts that the gateway rejected or evicted from its queue, by reason. */
  readonly dropped: Readonly<Record<string, number>>;
  readonly inFlight: number;
  readonly waiting: number;
}

export interface ServerFigures extends ServerUse {
  readonly id: string;
  /** Its label `group`. */
  readonly group?: string | undefined;
  /** What was spent on it in the whole run, where it has a price. */
  readonly cost?: number | undefined;
}

export interface SimulationResult {
  readonly name: string;
  readonly seed: number;
  readonly durationMs: number;
  readonly warmUpMs: number;
  /** The instant at which the last request ended, or the run was over. */
  readonly endedAtMs: number;
  /** True when the run was over before everything had ended. */
  readonly isCutShort: boolean;
  readonly counts: RunCounts;
  readonly all: GroupFigures;
  readonly tenants: Readonly<Record<string, GroupFigures>>;
  readonly classes: Readonly<Record<string, GroupFigures>>;
  readonly servers: readonly ServerFigures[];
  /** Requests in the system on average over time, waiting or running: the L of Little's law. */
  readonly meanInSystem: number;
  /** Jain's index of what the tenants were served, 1 is equal; NaN, `null` in JSON, when nobody was. */
  readonly jainIndex: number;
  readonly series: TimeSeries;
  readonly serviceDifference: ServiceDifference | undefined;
  /** In the order of their ends; undefined unless kept. */
  readonly requests: readonly RequestRecord[] | undefined;
  /** Events of the clock that were run. */
  readonly events: number;
  /** Faults of policies and detectors: not 0 means that something is wrong. */
  readonly pluginErrors: number;
}

export const oneResult: Schema<SimulationResult> = s.value(
  'a result of simulate',
  (given): given is SimulationResult => {
    const { all, classes, tenants, servers, series }: Record<string, unknown> = { ...Object(given) };
    return [all, classes, tenants, servers, series].every((part) => typeof part === 'object' && part !== null);
  },
);
