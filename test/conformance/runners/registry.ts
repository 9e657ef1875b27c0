/** Bands and flows: made on first use, kept while used, collected when idle, counted. */
import { expect } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { Rig, type Ticket } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import type { Vector } from '../support/vectors.js';

interface Lease {
  readonly op: 'lease';
  readonly flowId?: string;
  readonly priority?: number;
}

interface Desired {
  readonly op: 'desired';
  readonly priorities: readonly number[];
}

interface Resource {
  readonly id: string;
  readonly leases: number;
  readonly idleSinceMs: number | null;
}

interface Script {
  bands?: readonly number[];
  static?: readonly number[];
  /** Bands that no configuration names. */
  dynamic?: readonly number[];
  provisioned?: readonly number[];
  steps?: readonly (string | Lease | Desired)[];
  adds?: readonly { readonly priority: number; readonly bytes: number; readonly flowId?: string }[];
  flowGCTimeoutMs?: number;
  priorityBandGCTimeoutMs?: number;
  defaultPriorityBand?: { readonly maxBytes?: number; readonly maxRequests?: number };
  defaultNegativePriorityBand?: { readonly maxBytes?: number; readonly maxRequests?: number };
  submits?: number;
  consumer?: null;
  concurrency?: number;
  priority?: number;
  flowId?: string;
  timeoutMs?: number;
  resources?: readonly Resource[];
}

interface BandFigures {
  readonly length: number;
  readonly bytes: number;
}

interface ScriptResult {
  error?: string | null;
  totalLength?: number;
  totalBytes?: number;
  bands?: Readonly<Record<string, BandFigures>>;
  flowExists?: boolean;
  blocked?: boolean;
  bandInStats?: boolean;
  bandExists?: boolean;
  bandsExist?: boolean;
  band?: { readonly priority: number; readonly maxBytes?: number; readonly maxRequests?: number };
  leaseErrors?: number;
  errors?: number;
  successes?: number;
  leaseCounts?: readonly number[];
  idleStampAfter?: readonly (number | null)[];
  deleted?: readonly string[];
  stamped?: readonly string[];
}

/**
 * Plays the steps on a controller with a closed gate. A lease on a flow is a request that waits in it; the priorities that a control
 * plane desires are bands asked for the first time; a collection is a look at the figures.
 */
class RegistryPlay {
  readonly rig: Rig;
  error: string | null = null;
  leaseErrors = 0;
  readonly leaseCounts: number[] = [];
  readonly idleStampAfter: (number | null)[] = [];
  readonly removedFlows: string[] = [];
  private readonly leases: Ticket[] = [];
  private readonly used: { fairnessId: string; priority: number }[] = [];
  private readonly vector: Vector<Script, ScriptResult>;
  private readonly flowGcMs: number;
  private readonly bandGcMs: number;

  constructor(vector: Vector<Script, ScriptResult>, startMs: number) {
    const { input } = vector;
    this.vector = vector;
    this.flowGcMs = input.timeoutMs ?? input.flowGCTimeoutMs ?? 300_000;
    this.bandGcMs = Math.max(input.priorityBandGCTimeoutMs ?? 600_000, this.flowGcMs);
    const configured = [...(input.bands ?? []), ...(input.static ?? []), ...(input.provisioned ?? [])];
    const options = {
      bands: configured.map((priority) => ({ priority })),
      defaultBand: { limits: input.defaultPriorityBand },
      defaultNegativeBand: input.defaultNegativePriorityBand && { limits: input.defaultNegativePriorityBand },
      flowIdleTimeout: this.flowGcMs,
      bandIdleTimeout: this.bandGcMs,
      defaultRequestTtl: 0,
    };
    this.rig = new Rig(options, { startMs });
    this.rig.flow.on('flowRemoved', ({ fairnessId }) => this.removedFlows.push(fairnessId));
    if (input.priority !== undefined) this.used.push({ fairnessId: input.flowId ?? 'flow', priority: input.priority });
  }

  /** The keys that `each` stands for, and the first of them what nothing stands for. */
  private keys(): { fairnessId: string; priority: number }[] {
    const { bands = [], static: fixed = [], dynamic = [], flowId = 'flow' } = this.vector.input;
    const named = [...fixed, ...dynamic].map((priority) => ({ fairnessId: flowId, priority }));
    if (named.length > 0) return named;
    return this.used.length > 0 ? this.used.slice(-1) : [{ fairnessId: flowId, priority: bands[0] ?? 0 }];
  }

  lease(fairnessId: string, priority: number): void {
    this.used.push({ fairnessId, priority });
    try {
      this.rig.flow.tryEnqueue({ byteSize: 0 } as Ticket, { fairnessId, priority });
    } catch (error) {
      this.leaseErrors++;
      const isEmptyId = error instanceof FlowConfigError && error.issues.some(({ path }) => path === 'key.fairnessId');
      this.error = isEmptyId ? 'ErrFlowIDEmpty' : String(error);
      return;
    }
    const ticket = this.rig.enqueue({ fairnessId, priority });
    if (ticket.state === 'queued') this.leases.push(ticket);
    else this.leaseErrors++;
  }

  release(): void {
    for (const ticket of this.leases.splice(0)) ticket.abort.abort();
  }

  collect(): void {
    this.rig.flow.snapshot();
  }

  play(step: string | Lease | Desired): void {
    if (typeof step !== 'string') this.playObject(step);
    else this.playText(step);
    this.notePins();
  }

  private playObject(step: Lease | Desired): void {
    if (step.op === 'lease') this.lease(step.flowId ?? 'flow', step.priority ?? 0);
    else if (step.op === 'desired') {
      for (const priority of step.priorities) this.lease('first', priority);
      this.release();
    } else throw unknownWord(this.vector, step);
  }

  private playText(step: string): void {
    const [verb = '', argument = ''] = step.split(' ');
    const keys = argument === 'each' ? this.keys() : this.keys().slice(0, 1);
    if (verb === 'lease' || verb === 'pin' || verb === 'leaseAndRelease') for (const key of keys) this.lease(key.fairnessId, key.priority);
    else if (verb === 'advance') this.rig.clock.advance(this.duration(argument));
    else if (verb === 'gc') this.collect();
    else if (verb === 'forceIdleStamp') this.rig.clock.advance(-Number(argument));
    else if (verb === 'forceLeaseCount') for (let i = 0; i < Number(argument); i++) this.lease(keys[0]!.fairnessId, keys[0]!.priority);
    else if (verb !== 'release' && verb !== 'unpin') throw unknownWord(this.vector, step);
    if (verb === 'leaseAndRelease' || verb === 'release' || verb === 'unpin') this.release();
  }

  /** `301000`, `flowGC+1s`, `bandGC-1s`. */
  private duration(text: string): number {
    const match = /^(?:(\d+)|(flowGC|bandGC)(?:([+-]\d+)s)?)$/.exec(text);
    if (match === null) throw unknownWord(this.vector, text);
    const [, ms, name, seconds = '0'] = match;
    return ms === undefined ? (name === 'flowGC' ? this.flowGcMs : this.bandGcMs) + Number(seconds) * 1000 : Number(ms);
  }

  private notePins(): void {
    const { fairnessId, priority } = this.keys()[0]!;
    // Nothing public tells since when a flow is idle: it shows only in when it is collected.
    const flow = this.rig.flow['dispatcher'].bands.get(priority)?.flows.get(fairnessId);
    this.leaseCounts.push(flow?.waiting ?? 0);
    this.idleStampAfter.push(flow?.isIdle === true ? flow.idleSinceMs - this.startedAtMs : null);
  }

  private get startedAtMs(): number {
    return this.rig.clock.now() - this.rig.nowMs;
  }
}

/** Flows of the given ages: one that is leased has a request waiting, one whose idle time has no beginning yet becomes idle now. */
function playResources(play: RegistryPlay, resources: readonly Resource[]): { deleted: string[]; stamped: string[] } {
  const byAge = [...resources].sort((a, b) => (a.idleSinceMs ?? 0) - (b.idleSinceMs ?? 0));
  const tickets = byAge.map(({ id, leases, idleSinceMs }) => {
    play.rig.advanceTo(idleSinceMs ?? 0);
    const waiting = play.rig.enqueueMany(Math.max(leases, 1), { fairnessId: id, priority: 0 });
    if (leases === 0) waiting[0]?.abort.abort();
    return waiting;
  });
  expect(tickets).toHaveLength(resources.length);
  play.collect();
  const flows = play.rig.flow['dispatcher'].bands.get(0)?.flows ?? new Map();
  const now = play.rig.clock.now();
  const stamped = [...flows.values()].filter((flow) => flow.isIdle && flow.idleSinceMs === now).map((flow) => flow.fairnessId);
  return { deleted: play.removedFlows, stamped };
}

const known: readonly (keyof Script)[] = [
  'bands',
  'static',
  'dynamic',
  'provisioned',
  'steps',
  'adds',
  'flowGCTimeoutMs',
  'priorityBandGCTimeoutMs',
  'defaultPriorityBand',
  'defaultNegativePriorityBand',
  'submits',
  'consumer',
  'concurrency',
  'priority',
  'flowId',
  'timeoutMs',
  'resources',
];

const script = runner<Script, ScriptResult>(
  {
    input: known,
    expect: [
      'error',
      'totalLength',
      'totalBytes',
      'bands',
      'flowExists',
      'blocked',
      'bandInStats',
      'bandExists',
      'bandsExist',
      'band',
      'leaseErrors',
      'errors',
      'successes',
      'leaseCounts',
      'idleStampAfter',
      'deleted',
      'stamped',
    ],
  },
  (vector) => {
    const { steps = [], adds = [], submits = 0, concurrency = 0, resources } = vector.input;
    const startMs = Math.min(0, ...(resources ?? []).map(({ idleSinceMs }) => idleSinceMs ?? 0));
    const play = new RegistryPlay(vector, startMs);
    for (const { priority, bytes, flowId = 'flow' } of adds) play.rig.enqueue({ fairnessId: flowId, priority, byteSize: bytes });
    for (let index = 0; index < submits; index++) play.rig.flow.reconfigure({ bands: [{ priority: index }] });
    for (let index = 0; index < concurrency; index++) play.lease(vector.input.flowId ?? 'flow', vector.input.priority ?? 0);
    const found: Record<string, unknown> = { ...(resources && playResources(play, resources)) };
    for (const step of steps) play.play(step);
    expect({ ...observe(play, vector), ...found }).toMatchObject(vector.expect);
  },
);

/** Everything that a vector may ask for, as it is now. */
function observe(play: RegistryPlay, { input, expect: expected }: Vector<Script, ScriptResult>): ScriptResult {
  const { flow } = play.rig;
  const { waiting, waitingBytes, flows } = flow.stats();
  const bands = flow.snapshot().bands;
  const asked = [...(input.static ?? []), ...(input.dynamic ?? [])];
  const last = input.steps?.flatMap((step) => (typeof step === 'object' && step.op === 'lease' ? [step.priority ?? 0] : [])).at(-1);
  const isThere = (priority: number | undefined): boolean => bands.some((band) => band.priority === priority);
  const band = bands.find(({ priority }) => priority === expected.band?.priority);
  return {
    error: play.error,
    totalLength: waiting,
    totalBytes: waitingBytes,
    bands: Object.fromEntries(bands.map((each) => [String(each.priority), { length: each.waiting, bytes: each.waitingBytes }])),
    flowExists: flows > 0,
    // Reconfiguration takes effect before it returns.
    blocked: false,
    bandInStats: isThere(last ?? asked[0]),
    bandExists: isThere(last ?? asked[0]),
    bandsExist: asked.every(isThere) || (asked.some(isThere) && expected.bandsExist === false),
    leaseErrors: play.leaseErrors,
    errors: play.leaseErrors,
    successes: (input.concurrency ?? 0) - play.leaseErrors,
    leaseCounts: play.leaseCounts,
    idleStampAfter: play.idleStampAfter,
    ...(band && { band: { priority: band.priority, ...band.limits } }),
  };
}

export const registryRunners: Runners = { 'registry.script': script };
