/** Everything that is measured of one run. It hears of requests and tokens, and decides nothing. */
import { jainIndex } from '../../base/jain-index.js';
import { put } from '../../base/put.js';
import type { FlowController } from '../../index.js';
import type { VirtualClock } from '../clock/virtual-clock.js';
import { Group, isWithin } from '../measures/group.js';
import { serviceDifference } from '../measures/service-difference.js';
import { SeriesRecorder } from '../measures/time-series.js';
import { type Ending, type RequestRecord, recordOf, type SimRequest } from '../requests/sim-request.js';
import { TimeAverage } from '../servers/sim-server.js';
import type { SimulationResult } from './result.js';
import type { ResolvedSimulation } from './simulation-options.js';

/** Tenants beyond these are counted together. */
const mostTenants = 1000;

interface Groups {
  /** All requests, those of its tenant, and those of its class. */
  readonly each: readonly Group[];
  readonly className: string;
}

type MeasuredResult = Pick<
  SimulationResult,
  'all' | 'tenants' | 'classes' | 'meanInSystem' | 'jainIndex' | 'series' | 'serviceDifference' | 'requests'
>;

export class RunMeasures {
  readonly inSystem: TimeAverage = new TimeAverage();
  readonly series: SeriesRecorder;
  private readonly options: ResolvedSimulation;
  private readonly all = new Group();
  private readonly tenants = new Map<string, Group>();
  private readonly classes = new Map<string, Group>();
  /** By the key object of the request, which sources share. */
  private readonly groupsOf = new Map<object, Groups>();
  private readonly records: RequestRecord[] | undefined;
  /** Requests that have not ended; kept only if records are. */
  private readonly open: Set<SimRequest> | undefined;

  constructor(options: ResolvedSimulation) {
    this.options = options;
    this.series = new SeriesRecorder(options.bucketMs);
    this.records = options.keepsRequests ? [] : undefined;
    this.open = options.keepsRequests ? new Set() : undefined;
  }

  sent(request: SimRequest): void {
    this.open?.add(request);
    if (!this.isMeasured(request)) return;
    const isRetry = request.attempts > 1;
    for (const group of this.groups(request).each) group.sent(isRetry);
  }

  /** `cost` was served at this instant. */
  served(request: SimRequest, cost: number, nowMs: number): void {
    this.series.served(request.key.fairnessId, cost);
    if (nowMs < this.options.warmUpMs) return;
    for (const group of this.groups(request).each) group.service += cost;
  }

  /** A server begins to work on it, or no longer does. */
  seatsTaken(request: SimRequest, sign: 1 | -1, nowMs: number): void {
    const { warmUpMs, durationMs } = this.options;
    const measuredMs = Math.max(0, Math.min(nowMs, durationMs) - warmUpMs);
    for (const group of this.groups(request).each) group.seatsTaken(sign * request.seats, measuredMs);
  }

  ended(request: SimRequest, ending: Ending, nowMs: number): void {
    this.records?.push(recordOf(request, ending, nowMs));
    this.open?.delete(request);
    const { each, className } = this.groups(request);
    if (ending === 'completed') this.series.completed(className, request.firstTokenAtMs - request.arrivedAtMs);
    else this.series.droppedOne();
    if (!this.isMeasured(request)) return;
    const isGood = ending === 'completed' && isWithin(this.options.traffic[request.traffic]?.slo, request, nowMs);
    for (const group of each) group.ended(request, ending, isGood, nowMs);
  }

  /** Reads the controller at the end of each bucket. */
  watch(flow: FlowController<SimRequest>, clock: VirtualClock): void {
    const closeBucket = (): void => {
      this.series.closeBucket(clock.now(), flow.figures());
      if (!this.series.isFull) clock.after(this.options.bucketMs, closeBucket);
    };
    clock.after(this.options.bucketMs, closeBucket);
  }

  figures(endedAtMs: number): MeasuredResult {
    const { warmUpMs, durationMs } = this.options;
    const measuredMs = endedAtMs - warmUpMs;
    const requests = this.records && [
      ...this.records,
      ...[...(this.open ?? [])].map((request) => recordOf(request, 'unfinished', endedAtMs)),
    ];
    const figuresOf = (groups: ReadonlyMap<string, Group>): MeasuredResult['tenants'] =>
      Object.fromEntries([...groups].map(([name, group]) => [name, group.figures(measuredMs, durationMs - warmUpMs)]));
    return {
      all: this.all.figures(measuredMs, durationMs - warmUpMs),
      tenants: figuresOf(this.tenants),
      classes: figuresOf(this.classes),
      meanInSystem: this.inSystem.mean(endedAtMs),
      jainIndex: this.all.service > 0 ? jainIndex([...this.tenants.values()].map(({ service }) => service)) : NaN,
      series: this.series.figures(),
      serviceDifference:
        this.options.serviceDifference && requests && serviceDifference(requests, this.options.serviceDifference),
      requests,
    };
  }

  private isMeasured(request: SimRequest): boolean {
    return request.arrivedAtMs >= this.options.warmUpMs;
  }

  private groups(request: SimRequest): Groups {
    const known = this.groupsOf.get(request.key);
    if (known !== undefined) return known;
    const { fairnessId, priority = 0 } = request.key;
    const className = this.options.traffic[request.traffic]?.class ?? `priority ${priority}`;
    const tenant = this.tenants.has(fairnessId) || this.tenants.size < mostTenants ? fairnessId : 'others';
    const [ofTenant, ofClass] = [this.tenants.get(tenant), this.classes.get(className)];
    const each = [
      this.all,
      ofTenant ?? put(this.tenants, tenant, new Group()),
      ofClass ?? put(this.classes, className, new Group()),
    ];
    return put(this.groupsOf, request.key, { each, className });
  }
}
