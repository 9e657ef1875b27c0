/**
 * The parts of a controller, made and configured together.
 *
 *     operation ─┬─ intake ── may it come in? ──► backlog ── what waits ──► dispatcher ── the walk ──► seats
 *                └─ wakeups ── when the walk runs although nobody calls
 */
import { GuardedAdmission } from '../../admission/guarded-admission.js';
import { SeatPool } from '../../endpoints/seat-pool.js';
import { Gate } from '../../gate/gate.js';
import { BandSelector } from '../../tiers/1-priority/band-selector.js';
import type { EventHub } from '../event-hub.js';
import type { EvictionMaker } from '../eviction.js';
import type { ResolvedOptions } from '../options.js';
import type { ShadowFigures } from '../outcome/shadow-figures.js';
import { Backlog } from './backlog.js';
import { bandAccounts } from './band-accounts.js';
import { Dispatcher, Wakeups } from './dispatcher.js';
import { Drops } from './drops.js';
import { EndpointGroups, turnsIn } from './endpoint-groups.js';
import type { InFlightEviction } from './in-flight-eviction.js';
import { Intake } from './intake.js';
import { LeaseTracer } from './lease-tracer.js';
import { takeBack } from './lease-watch.js';
import { Operation } from './operation.js';
import { Parking } from './parking.js';
import { isMaker, type PartMaker, Parts } from './parts.js';
import { Placement } from './placement.js';
import { revalidation } from './revalidation.js';
import { Seats } from './seats.js';
import { Shutdown } from './shutdown.js';

/** Takes the calls of hosts in place of the intake. */
export interface Standing extends Pick<Intake, 'enter' | 'tryEnqueue'> {
  readonly figures: ShadowFigures;
  /** The controller closes. */
  endWithCallers(): void;
  /** It stands there no more. */
  stop(): void;
}

export class Engine {
  readonly operation: Operation;
  readonly backlog: Backlog;
  readonly gate: Gate;
  readonly placement: Placement;
  readonly selector: BandSelector;
  readonly seats: Seats;
  readonly parking: Parking;
  readonly admission: GuardedAdmission;
  readonly drops: Drops;
  readonly wakeups: Wakeups;
  readonly dispatcher: Dispatcher;
  readonly intake: Intake;
  readonly shutdown: Shutdown;
  readonly parts: Parts = new Parts();
  /** Undefined while nobody may be evicted. */
  eviction: InFlightEviction | undefined = undefined;
  /** Undefined while no band names groups of endpoints. */
  groups: EndpointGroups | undefined = undefined;
  /** In mode `shadow`, what stands before it. Written by `ShadowMode`. */
  shadow: Standing | undefined;
  readonly onPoolChange = (): void => this.operation.wake();
  options: ResolvedOptions;
  readonly events: EventHub;
  /** Undefined unless leases are traced. */
  private tracer: LeaseTracer | undefined = undefined;

  constructor(options: ResolvedOptions, events: EventHub) {
    const { clock } = options;
    const pool = options.pool ?? SeatPool.implicit();
    this.options = options;
    this.events = events;
    const operation = new Operation(clock);
    this.operation = operation;
    const available = options.pool?.available() ?? pool;
    const expired = (): void => operation.perform(() => this.drops.evictExpired());
    this.backlog = new Backlog(options, events, operation, expired, (items) => this.drops.cancelled(items));
    const { bands } = this.backlog;
    this.gate = new Gate(available, bands, events, options, this.onPoolChange);
    this.seats = new Seats(this, pool, options, (item, lease, settle) => this.intake.waitAgain(item, lease, settle));
    this.placement = new Placement(pool, this.gate, events, options);
    this.selector = new BandSelector(bands, this.gate, this.placement, options.bandOrder);
    this.admission = new GuardedAdmission(options.admission, available, this.gate, events);
    this.parking = new Parking(this.backlog, this.parts);
    this.drops = new Drops(this, events);
    const evictAll = (): void => operation.perform(() => this.drops.evictAll());
    this.shutdown = new Shutdown(clock, evictAll, () => this.closed(detach));
    this.wakeups = new Wakeups(this, options);
    this.dispatcher = new Dispatcher(this, events);
    this.intake = new Intake(this, options, events);
    this.dispatcher.noteRegime();
    this.reportFaultsOf(options);
    this.installParts(options);
    const detach = pool.attach(this, clock);
    operation.start(this.dispatcher, this.wakeups);
  }

  /** Calls of `enqueue` so far: each has ended or waits. */
  get enqueued(): number {
    return this.seats.dispatched + this.drops.total + this.backlog.waiting;
  }

  /** Takes a picture while nothing can change; in the middle of an operation it shows what is done so far. */
  look<T>(picture: (nowMs: number) => T): T {
    const { operation } = this;
    if (operation.isBusy) return picture(operation.nowMs);
    let taken: T | undefined;
    operation.perform(() => {
      taken = picture(operation.nowMs);
    });
    return taken as T;
  }

  /** The same of what is not idle for too long, and with a reading of the detector. In an operation with the last. */
  figures<T>(taken: (nowMs: number) => T): T {
    const { backlog, operation, gate, wakeups } = this;
    if (!operation.isBusy) {
      operation.perform(() => backlog.bands.collectAndSample(operation.nowMs));
      operation.perform(() => {
        gate.measure(operation.nowMs);
        // A detector that fails at this reading no longer announces its changes.
        wakeups.notePoll();
      });
    }
    return this.look(taken);
  }

  close(drainMs: number): Promise<void> {
    const { operation, shutdown } = this;
    if (shutdown.state === 'closed') return Promise.resolve();
    const closed = shutdown.closed();
    operation.perform(() => {
      this.wakeups.turnOn(false);
      shutdown.drain(drainMs, operation.nowMs);
    });
    return closed;
  }

  reconfigure(options: ResolvedOptions): void {
    this.operation.perform(() => this.apply(options));
  }

  refreshFlow(fairnessId: string): void {
    this.operation.perform(() => {
      const { bands } = this.backlog;
      this.options.flows.refresh?.(fairnessId);
      bands.flows.refresh(fairnessId, bands.all());
      this.parking.unpark(fairnessId);
      this.operation.want();
    });
  }

  private apply(options: ResolvedOptions): void {
    if (this.shutdown.state === 'closed') return;
    this.options = options;
    const { nowMs } = this.operation;
    this.reportFaultsOf(options);
    this.wakeups.configure(options);
    this.gate.configure(options, this.seats.running);
    this.placement.configure(options);
    this.backlog.unparkAll();
    for (const item of this.backlog.items()) this.placement.classify(item);
    this.backlog.configure(options, nowMs);
    this.selector.configure(options.bandOrder);
    this.intake.configure(options);
    this.admission.configure(options.admission);
    this.seats.configure(options);
    this.installParts(options);
    this.operation.want();
  }

  /** Connects the host's functions to plugin errors. Call it before the first lookup. */
  private reportFaultsOf({ flows, bandOrder }: ResolvedOptions): void {
    flows.reportTo?.(this.events);
    bandOrder.reportTo?.(this.events);
  }

  /** Makes the parts that the options ask for. No flow may be parked. O(in flight) where flows have caps. */
  private installParts(options: ResolvedOptions): void {
    const { admission, backlog, drops, events, gate, parking, seats } = this;
    const { bandOrder, eviction, onDispatch, traceLeases } = options;
    if (eviction === undefined || !isMaker<EvictionMaker>(eviction.maker, 'begin')) {
      this.eviction = undefined;
      gate.keepFree(undefined);
    } else if (this.eviction === undefined) this.eviction = eviction.maker.begin(this, eviction);
    else this.eviction.configure(eviction);
    parking.configure(options, seats.running);
    this.tracer = traceLeases ? (this.tracer ?? this.makeTracer()) : undefined;
    const turns = turnsIn(options);
    this.groups = turns.length > 0 ? new EndpointGroups(turns, this.groups) : undefined;
    const accountsBands = backlog.bands.shares.isUsed || bandOrder.hearsDispatches === true;
    this.parts.install([
      this.tracer,
      this.eviction,
      accountsBands ? bandAccounts(backlog.bands, bandOrder) : undefined,
      parking.caps && parking,
      onDispatch && revalidation(onDispatch, drops, events),
      admission.hearsEnds ? admission : undefined,
      this.groups,
      ...options.partMakers.flatMap((each) => (isMaker<PartMaker>(each, 'makePart') ? each.makePart(this) : [])),
    ]);
  }

  private makeTracer(): LeaseTracer | undefined {
    if (typeof FinalizationRegistry === 'undefined') return undefined;
    const { operation, events } = this;
    const tracer = new LeaseTracer((lease) => {
      if (lease.isReleased) return;
      operation.perform(() => {
        tracer.tell(lease, events, operation.nowMs);
        if (this.options.overdueLeases === 'release') takeBack(lease);
      });
    });
    return tracer;
  }

  /** The last request has left a closing controller. */
  private closed(detachFromPool: () => void): void {
    this.gate.stop();
    this.seats.stop();
    detachFromPool();
  }
}
