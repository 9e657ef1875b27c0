/**
 * When the walk runs although nobody calls: deadlines, a closed gate whose detector announces nothing, and the turn of
 * the event loop after one that has dispatched as many waiting requests as it may.
 *
 * Invariant: while nothing waits no timer is set, except until the end of the turn in which something waited.
 */
import type { Gate } from '../../gate/gate.js';
import type { ResolvedOptions } from '../options.js';
import type { Backlog } from './backlog.js';
import { GatePoller } from './gate-poller.js';
import type { Operation } from './operation.js';
import type { Parts } from './parts.js';
import type { Placement } from './placement.js';
import type { Shutdown } from './shutdown.js';

export interface WakeupsParts {
  readonly operation: Operation;
  readonly backlog: Backlog;
  readonly gate: Gate;
  readonly placement: Placement;
  readonly parts: Parts;
  readonly shutdown: Shutdown;
}

export class Wakeups {
  /** True from the moment that a request waits, or the controller closes, until nothing is left to wake up for. */
  isOn = false;
  /** True when this turn has dispatched as many waiting requests as it may; false again in the next turn. */
  isPaused = false;
  readonly poller: GatePoller;
  private dispatchedInTurn = 0;
  private mostInTurn: number;
  private recheckIntervalMs: number;
  /** True when the poller may need another time, because the gate or the endpoints were read. */
  private isPollDue = false;
  /** True when the first request of a band holds it back, and its ordering policy may give it up as time passes. */
  private isGivingUp = false;
  private readonly engine: WakeupsParts;

  constructor(engine: WakeupsParts, { clock, gate, maxDispatchesPerTurn }: ResolvedOptions) {
    this.engine = engine;
    this.mostInTurn = maxDispatchesPerTurn;
    this.recheckIntervalMs = gate.recheckIntervalMs;
    this.poller = new GatePoller(clock, () => this.lookAgain());
  }

  configure({ gate, maxDispatchesPerTurn }: ResolvedOptions): void {
    this.mostInTurn = maxDispatchesPerTurn;
    this.recheckIntervalMs = gate.recheckIntervalMs;
    this.poller.stop();
  }

  /** Something waits from now on, before a gate that was read or behind others; or the controller closes. */
  turnOn(isGateRead: boolean): void {
    this.isOn = true;
    if (isGateRead) this.isPollDue = true;
  }

  /** The gate or the endpoints were read. */
  notePoll(): void {
    this.isPollDue = true;
  }

  /** A walk begins. */
  walkBegins(): void {
    this.isPollDue = true;
    this.isGivingUp = false;
    if (!this.engine.operation.tellsTurns && !this.isPaused) this.dispatchedInTurn = 0;
  }

  /** The first request of a band holds it back, and its ordering policy may give it up as time passes. */
  mayGiveUp(): void {
    this.isGivingUp = true;
  }

  /** Counts a dispatch of a waiting request. When the turn has used its allowance, the others wait for the next. */
  spend(): void {
    this.dispatchedInTurn++;
    if (this.dispatchedInTurn >= this.mostInTurn) this.isPaused = true;
    const { operation } = this.engine;
    if (!operation.isTurnAwaited) operation.awaitTurn();
  }

  turnBegins(): void {
    const wasPaused = this.isPaused;
    this.renewAllowance();
    if (wasPaused) this.engine.operation.wake();
    else if (this.isOn && this.engine.backlog.waiting === 0) this.turnOff();
  }

  /** An operation is over. */
  end(): void {
    const { operation, backlog, shutdown } = this.engine;
    if (backlog.waiting > 0) {
      const { expiry } = backlog;
      if (expiry.isTimerLate) expiry.arm(operation.nowMs);
      if (this.isPollDue) this.poll();
      return;
    }
    if (!operation.tellsTurns) this.renewAllowance();
    // Requests that wait later in this turn find the timers set (bench: wake-up).
    if (!operation.isTurnAwaited) this.turnOff();
    if (shutdown.state === 'draining') shutdown.finish();
  }

  private poll(): void {
    this.isPollDue = false;
    const { operation, backlog, gate, placement, parts } = this.engine;
    const { nowMs } = operation;
    const { waiting, isPoolEmpty, bands } = backlog;
    // A flow at its cap waits for its own leases, whatever the gate says.
    const isGateAwaited = !isPoolEmpty && waiting > bands.parked;
    let delayMs = isGateAwaited ? gate.recheckMs : Number.POSITIVE_INFINITY;
    if (placement.implicitEndpoint === undefined) delayMs = Math.min(delayMs, placement.nextReturnAtMs(nowMs) - nowMs);
    if (isGateAwaited) for (const part of parts.looksAtMs) delayMs = Math.min(delayMs, part.looksAtMs(nowMs) - nowMs);
    delayMs = Math.min(delayMs, gate.constraints.roomAtMs - nowMs);
    if (this.isGivingUp) delayMs = Math.min(delayMs, this.recheckIntervalMs);
    if (this.isPaused && !operation.tellsTurns) delayMs = 0;
    if (this.poller.isSet || delayMs < Number.POSITIVE_INFINITY) this.poller.in(delayMs, nowMs);
  }

  private lookAgain(): void {
    const { operation } = this.engine;
    if (!operation.tellsTurns) this.renewAllowance();
    operation.wake();
  }

  private renewAllowance(): void {
    this.dispatchedInTurn = 0;
    this.isPaused = false;
  }

  private turnOff(): void {
    this.isOn = false;
    this.engine.backlog.expiry.disarm();
    this.poller.stop();
  }
}
