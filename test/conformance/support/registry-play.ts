/**
 * A registry script, played on a controller whose gate is closed. A lease on a flow is a request that waits in it; a
 * priority that a control plane desires is a band that is asked for the first time; a collection is a look at the
 * figures.
 */
import { FlowConfigError, overviewOf } from '../../../src/index.js';
import { engineOf } from '../../property/inside.js';
import { Rig, Ticket } from './rig.js';
import { Series } from './series.js';

export interface LimitFigures {
  readonly maxBytes?: number;
  readonly maxRequests?: number;
}

interface LeaseStep {
  readonly op: 'lease';
  readonly flowId?: string;
  readonly priority?: number;
}

interface DesiredStep {
  readonly op: 'desired';
  readonly priorities: readonly number[];
}

export type Step = string | LeaseStep | DesiredStep;

export interface Stage {
  /** Configured bands; the three words are the vectors'. */
  bands?: readonly number[];
  static?: readonly number[];
  provisioned?: readonly number[];
  /** Bands that no configuration names. */
  dynamic?: readonly number[];
  /** The flow and the priority of steps that name none. */
  flowId?: string;
  priority?: number;
  flowGCTimeoutMs?: number;
  priorityBandGCTimeoutMs?: number;
  timeoutMs?: number;
  defaultPriorityBand?: LimitFigures;
  defaultNegativePriorityBand?: LimitFigures;
}

interface Key {
  readonly fairnessId: string;
  readonly priority: number;
}

/** Of a flow: how many requests hold it, and since when none does. */
export interface FlowState {
  readonly leases: number;
  readonly idleSinceMs: number | null;
}

export class RegistryPlay {
  readonly rig: Rig;
  /** The last error, in the reference's words. */
  error: string | null = null;
  errors = 0;
  readonly removedFlows: string[] = [];
  /** Series of the flow when a step looked at them. */
  seriesSeen: Promise<number> | undefined = undefined;
  private readonly series: Series;
  private readonly leases: Ticket[] = [];
  private latest: Key | undefined;
  private readonly stage: Stage;
  private readonly flowGcMs: number;
  private readonly bandGcMs: number;

  constructor(stage: Stage, startMs: number) {
    this.stage = stage;
    this.flowGcMs = stage.timeoutMs ?? stage.flowGCTimeoutMs ?? 300_000;
    this.bandGcMs = Math.max(stage.priorityBandGCTimeoutMs ?? 600_000, this.flowGcMs);
    const configured = [...(stage.bands ?? []), ...(stage.static ?? []), ...(stage.provisioned ?? [])];
    const options = {
      limits: undefined,
      bands: configured.map((priority) => ({ priority })),
      defaultBand: { limits: stage.defaultPriorityBand },
      defaultNegativeBand: stage.defaultNegativePriorityBand && { limits: stage.defaultNegativePriorityBand },
      flowIdleTimeout: this.flowGcMs,
      bandIdleTimeout: this.bandGcMs,
      defaultRequestTtl: 0,
    };
    this.rig = new Rig(options, { startMs });
    this.series = new Series(this.rig);
    this.rig.flow.on('flowRemoved', ({ fairnessId }) => this.removedFlows.push(fairnessId));
  }

  /** False when the step is none that can be played. */
  play(step: Step): boolean {
    if (typeof step === 'string') return this.playText(step);
    if (step.op === 'lease') this.lease({ fairnessId: step.flowId ?? 'flow', priority: step.priority ?? 0 });
    else if (step.op === 'desired') {
      for (const priority of step.priorities) this.lease({ fairnessId: 'first', priority });
      this.release();
    } else return false;
    return true;
  }

  lease(key: Key = this.keys()[0]!): void {
    this.latest = key;
    try {
      this.rig.flow.tryEnqueue(new Ticket('probe', {}), key);
    } catch (error) {
      const isEmptyId = error instanceof FlowConfigError && error.issues.some(({ path }) => path === 'key.fairnessId');
      this.fail(isEmptyId ? 'ErrFlowIDEmpty' : String(error));
      return;
    }
    const ticket = this.rig.enqueue(key);
    if (ticket.state === 'queued') this.leases.push(ticket);
    else this.fail(String(ticket.state));
  }

  release(): void {
    for (const ticket of this.leases.splice(0)) ticket.abort.abort();
  }

  /** Series of the flow that was asked for last. */
  countSeries(): Promise<number> {
    return this.series.ofFlow(this.keys()[0]!.fairnessId);
  }

  collect(): void {
    overviewOf(this.rig.flow, { flows: 'all' });
  }

  /** Nothing public tells since when a flow is idle; it only shows in when the flow is collected. */
  stateOf({ fairnessId, priority }: Key = this.keys()[0]!): FlowState {
    const flow = engineOf(this.rig.flow).backlog.bands.get(priority)?.flows.get(fairnessId);
    const startedAtMs = this.rig.clock.now() - this.rig.nowMs;
    return { leases: flow?.waiting ?? 0, idleSinceMs: flow?.isIdle === true ? flow.idleSinceMs - startedAtMs : null };
  }

  private fail(error: string): void {
    this.errors++;
    this.error = error;
  }

  private playText(step: string): boolean {
    const [verb = '', argument = ''] = step.split(' ');
    const keys = argument === 'each' ? this.keys() : this.keys().slice(0, 1);
    switch (verb) {
      case 'lease':
      case 'pin':
        for (const key of keys) this.lease(key);
        return true;
      case 'leaseAndRelease':
        for (const key of keys) this.lease(key);
        this.release();
        return true;
      case 'release':
        this.release();
        return true;
      case 'unpin':
        this.leases.pop()?.abort.abort();
        return true;
      case 'gc':
        this.collect();
        return true;
      case 'observe':
        this.seriesSeen = this.countSeries();
        return true;
      case 'forceLeaseCount':
        for (let index = 0; index < Number(argument); index++) this.lease();
        return true;
      // A stamp of the past is a stamp that has grown old.
      case 'forceIdleStamp':
        return this.advance(String(-Number(argument)));
      case 'advance':
        return this.advance(argument);
      default:
        return false;
    }
  }

  /** `301000`, `flowGC`, `flowGC+1s`, `bandGC-1s`. */
  private advance(text: string): boolean {
    const match = /^(?:(\d+)|(flowGC|bandGC)(?:([+-]\d+)s)?)$/.exec(text);
    if (match === null) return false;
    const [, ms, name, seconds = '0'] = match;
    const named = (name === 'flowGC' ? this.flowGcMs : this.bandGcMs) + Number(seconds) * 1000;
    this.rig.clock.advance(ms === undefined ? named : Number(ms));
    return true;
  }

  /** What `each` stands for; the first is meant where a step names nothing. */
  private keys(): Key[] {
    const { bands = [], static: fixed = [], dynamic = [], flowId: fairnessId = 'flow', priority } = this.stage;
    const named = [...fixed, ...dynamic].map((each) => ({ fairnessId, priority: each }));
    if (named.length > 0) return named;
    return [this.latest ?? { fairnessId, priority: priority ?? bands[0] ?? 0 }];
  }
}
