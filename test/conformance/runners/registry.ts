/** Bands and flows: made on first use, kept while used, collected when idle, counted. */

import { expect } from 'vitest';
import { overviewOf } from '../../../src/index.js';
import { type LimitFigures, RegistryPlay, type Stage, type Step } from '../support/registry-play.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import type { Vector } from '../support/vectors.js';

interface Resource {
  readonly id: string;
  readonly leases: number;
  /** Null: its idle time has not begun. */
  readonly idleSinceMs: number | null;
}

interface Script extends Stage {
  steps?: readonly Step[];
  adds?: readonly { readonly priority: number; readonly bytes: number; readonly flowId?: string }[];
  /** Sets of desired priorities, submitted one after the other with nobody to take them. */
  submits?: number;
  consumer?: null;
  /** Requests that come at the same time. */
  concurrency?: number;
  resources?: readonly Resource[];
}

interface ScriptResult {
  error?: string | null;
  errors?: number;
  leaseErrors?: number;
  successes?: number;
  totalLength?: number;
  totalBytes?: number;
  bands?: Readonly<Record<string, { readonly length: number; readonly bytes: number }>>;
  band?: LimitFigures & { readonly priority: number };
  bandInStats?: boolean;
  bandExists?: boolean;
  bandsExist?: boolean;
  flowExists?: boolean;
  blocked?: boolean;
  leaseCounts?: readonly number[];
  idleStampAfter?: readonly (number | null)[];
  deleted?: readonly string[];
  seriesWithFlowId?: number;
  stamped?: readonly string[];
}

/** Flows of the given ages: a leased one has a request waiting, one whose idle time has not begun becomes idle now. */
function playResources(play: RegistryPlay, resources: readonly Resource[]): Pick<ScriptResult, 'deleted' | 'stamped'> {
  for (const { id, leases, idleSinceMs } of [...resources].sort(
    (a, b) => (a.idleSinceMs ?? 0) - (b.idleSinceMs ?? 0),
  )) {
    play.rig.advanceTo(idleSinceMs ?? 0);
    const waiting = play.rig.enqueueMany(Math.max(leases, 1), { fairnessId: id, priority: 0 });
    if (leases === 0) waiting[0]?.abort.abort();
  }
  play.rig.advanceTo(0);
  play.collect();
  const now = play.rig.nowMs;
  const stamped = resources.filter(({ id }) => play.stateOf({ fairnessId: id, priority: 0 }).idleSinceMs === now);
  return { deleted: play.removedFlows, stamped: stamped.map(({ id }) => id) };
}

async function playScript(vector: Vector<Script, ScriptResult>): Promise<ScriptResult> {
  const { steps = [], adds = [], submits = 0, concurrency = 0, resources = [], ...stage } = vector.input;
  const play = new RegistryPlay(stage, Math.min(0, ...resources.map(({ idleSinceMs }) => idleSinceMs ?? 0)));
  for (const { priority, bytes, flowId } of adds) play.rig.enqueue({ fairnessId: flowId, priority, byteSize: bytes });
  for (let index = 0; index < submits; index++) play.rig.flow.reconfigure({ bands: [{ priority: index }] });
  for (let index = 0; index < concurrency; index++) play.lease();
  const states = steps.map((step) => {
    if (!play.play(step)) throw unknownWord(vector, step);
    return play.stateOf();
  });
  // What was never there cannot have been deleted.
  if (play.seriesSeen !== undefined) expect(await play.seriesSeen).toBeGreaterThan(0);
  return {
    ...observe(play, vector),
    ...playResources(play, resources),
    successes: concurrency - play.errors,
    leaseCounts: states.map(({ leases }) => leases),
    idleStampAfter: states.map(({ idleSinceMs }) => idleSinceMs),
    seriesWithFlowId: await play.countSeries(),
  };
}

function prioritiesOf(step: Step): readonly number[] {
  if (typeof step === 'string') return [];
  return step.op === 'desired' ? step.priorities : [step.priority ?? 0];
}

/** Everything else that a vector may ask for, as it is at the end. */
function observe(play: RegistryPlay, { input, expect: expected }: Vector<Script, ScriptResult>): ScriptResult {
  const { static: fixed = [], dynamic = [], steps = [] } = input;
  const { waiting, waitingBytes, flows } = play.rig.flow.stats();
  const { bands } = overviewOf(play.rig.flow, { flows: 'all' });
  const asked = [...fixed, ...dynamic, ...steps.flatMap(prioritiesOf)];
  const existing = asked.filter((priority) => bands.some((band) => band.priority === priority));
  const band = bands.find(({ priority }) => priority === expected.band?.priority);
  return {
    ...(band && { band: { priority: band.priority, ...band.limits } }),
    error: play.error,
    errors: play.errors,
    leaseErrors: play.errors,
    totalLength: waiting,
    totalBytes: waitingBytes,
    bands: Object.fromEntries(bands.map((band) => [band.priority, { length: band.waiting, bytes: band.waitingBytes }])),
    bandInStats: existing.length > 0,
    bandExists: existing.length > 0,
    // Some of them is neither yes nor no.
    ...(existing.length === asked.length || existing.length === 0 ? { bandsExist: existing.length > 0 } : {}),
    flowExists: flows > 0,
    // A reconfiguration takes effect before it returns.
    blocked: false,
  };
}

const inputKeys: readonly (keyof Script)[] = [
  ...([
    'bands',
    'static',
    'provisioned',
    'dynamic',
    'flowId',
    'priority',
    'flowGCTimeoutMs',
    'priorityBandGCTimeoutMs',
  ] as const),
  ...(['timeoutMs', 'defaultPriorityBand', 'defaultNegativePriorityBand'] as const),
  ...(['steps', 'adds', 'submits', 'consumer', 'concurrency', 'resources'] as const),
];

const expectKeys: readonly (keyof ScriptResult)[] = [
  ...(['error', 'errors', 'leaseErrors', 'successes', 'totalLength', 'totalBytes'] as const),
  ...(['bands', 'band', 'bandInStats', 'bandExists', 'bandsExist', 'flowExists', 'blocked'] as const),
  ...(['leaseCounts', 'idleStampAfter', 'deleted', 'stamped', 'seriesWithFlowId'] as const),
];

export const registryRunners: Runners = {
  'registry.script': runner<Script, ScriptResult>({ input: inputKeys, expect: expectKeys }, async (vector) => {
    expect(await playScript(vector)).toMatchObject(vector.expect);
  }),
};
