/** The gateway queue of BLIS, played on a controller: classes for priorities, tenants for fairness IDs. */
import {
  type AdmissionPolicy,
  type BandTemplate,
  type FlowControllerOptions,
  fcfs,
  globalStrict,
  inFlightEviction,
  interpolatedUsageLimit,
  overviewOf,
  roundRobin,
  type SaturationDetector,
  sloClasses,
  sloDeadline,
} from '../../../src/index.js';
import { Rig, type Ticket } from './rig.js';

export interface GatewayConfig {
  dispatchOrder?: string;
  fairness?: string;
  /** 0 is unlimited, as for the next. */
  maxDepth?: number;
  perBandCapacity?: number;
  queueShedding?: boolean;
  usageLimitThreshold?: number;
  sloTargetsUs?: Readonly<Record<string, number>>;
  priorities?: Readonly<Record<string, number>>;
}

export const gatewayKeys = [
  'dispatchOrder',
  'fairness',
  'maxDepth',
  'perBandCapacity',
  'queueShedding',
  'usageLimitThreshold',
  'sloTargetsUs',
  'priorities',
] as const satisfies readonly (keyof GatewayConfig)[];

/** What a scenario has beside the queue. */
export interface Surroundings {
  instances?: number;
  detector?: SaturationDetector;
  mode?: 'queue' | 'admission';
  admission?: AdmissionPolicy | undefined;
  inFlightEviction?: boolean;
  requestTtlUs?: number;
}

/** A microsecond of the vectors is a millisecond here, so that instants stay whole. */
export interface GatewayRequest {
  id?: string | null;
  class?: string;
  tenant?: string;
  enqueueTimeUs?: number;
  sloTargetUs?: number;
}

export class GatewayPlay {
  readonly rig: Rig;
  /** In the order in which they lost their places in the queue. */
  readonly displaced: Ticket[] = [];
  private readonly config: GatewayConfig;
  private readonly played: ReadonlyMap<string, number>;
  private readonly own: ReadonlyMap<string, number>;

  /**
   * `classes`: all that the vector names. Their bands are configured, so that their ceilings do not depend on who comes
   * when.
   */
  constructor(config: GatewayConfig, classes: readonly string[], surroundings: Surroundings = {}) {
    this.config = config;
    const priorities = sloClasses({ overrides: config.priorities });
    this.own = new Map(classes.map((name) => [name, priorities.priorityOf(name)]));
    this.played = new Map(
      [...this.own].map(([name, priority]) => [name, playedPriority(priority, [...this.own.values()])]),
    );
    const {
      instances = 1,
      detector,
      mode,
      admission,
      inFlightEviction: evicts = false,
      requestTtlUs = 0,
    } = surroundings;
    const options = {
      ...queueOptions(config, [...new Set(this.played.values())]),
      ...(detector === undefined ? {} : { saturationDetector: detector }),
      mode,
      admission,
      eviction: evicts ? inFlightEviction({ maxPerDecision: 1 }) : undefined,
      defaultRequestTtl: requestTtlUs,
    };
    this.rig = new Rig(options, { endpoints: instances });
    this.rig.flow.on('dropped', ({ request, outcome }) => {
      if (outcome.reason === 'displaced') this.displaced.push(request);
    });
  }

  /** The queue's clock may say another time than the vector: a deadline counts from the vector's. */
  enqueue({ id, class: sloClass = '', tenant, enqueueTimeUs = this.rig.nowMs, sloTargetUs }: GatewayRequest): Ticket {
    const target = sloTargetUs || this.config.sloTargetsUs?.[sloClass];
    const sloTtftMs = target === undefined ? undefined : enqueueTimeUs + target - this.rig.nowMs;
    return this.rig.enqueue(
      { fairnessId: tenant || 'default', priority: this.played.get(sloClass), sloTtftMs },
      id ?? '',
    );
  }

  /** The one request that goes at this saturation; null when none may. */
  dequeue(saturation = 0): string | null {
    const { gate, dispatched } = this.rig;
    const before = dispatched.length;
    gate.saturationWhenOpen = saturation;
    gate.open(1);
    gate.close();
    dispatched[before]?.lease?.release();
    return dispatched[before]?.id ?? null;
  }

  /**
   * Waiting requests by the vector's priorities, for the bands that it names; 0 for a band of which nothing is known.
   */
  waitingIn(priorities: readonly string[]): Record<string, number> {
    const bands = overviewOf(this.rig.flow, { flows: 'all' }).bands;
    const waiting = (priority: number): number => {
      const name = [...this.own].find(([, own]) => own === priority)?.[0] ?? '';
      return bands.find((band) => band.priority === this.played.get(name))?.waiting ?? 0;
    };
    return Object.fromEntries(priorities.map((priority) => [priority, waiting(Number(priority))]));
  }
}

/**
 * Priority 0 has a band here in any case: the lowest class that is not sheddable gets it. Order and sheddability stay.
 */
function playedPriority(priority: number, all: readonly number[]): number {
  return priority < 0 ? priority : new Set(all.filter((other) => other >= 0 && other < priority)).size;
}

function queueOptions(config: GatewayConfig, priorities: readonly number[]): Partial<FlowControllerOptions<Ticket>> {
  const { dispatchOrder, fairness, maxDepth, perBandCapacity, queueShedding, usageLimitThreshold } = config;
  const limitsOf = (maxRequests: number | undefined) => ({ maxRequests: maxRequests || Infinity, maxBytes: Infinity });
  const template: BandTemplate<Ticket> = {
    limits: limitsOf(perBandCapacity),
    fairness: fairness === 'round-robin' ? roundRobin() : globalStrict(),
    ordering: dispatchOrder === 'slo-deadline' ? sloDeadline() : fcfs(),
  };
  return {
    limits: limitsOf(maxDepth),
    bands: priorities.map((priority) => ({ priority, ...template })),
    defaultBand: template,
    overflow: queueShedding === true ? 'displace' : 'reject',
    bandOrder: dispatchOrder === 'fifo' ? 'fifo' : 'strict',
    usageLimitPolicy: interpolatedUsageLimit({ threshold: usageLimitThreshold }),
  };
}
