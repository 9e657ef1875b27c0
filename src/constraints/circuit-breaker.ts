/**
 * Spares a model server that fails or is slow: it gets nothing for a while, then a few requests to try it.
 *
 *     closed ── too many failures or slow answers in the window ──► open ── time ──► half-open ── probes went well ──► closed
 *                                                                    ▲                  │
 *                                                                    └── a probe failed ─┘   twice as long, up to a bound
 *
 * Invariant: an open endpoint gets no request; a half-open one has at most `probes` requests that try it, whatever else
 * runs there.
 */
import type { output } from 'zod/v4/core';
import { type Definition, define } from '../base/policy-definition.js';
import { put } from '../base/put.js';
import type { Duration } from '../base/schema/duration.js';
import * as s from '../base/schema/schema.js';
import type { EndpointView } from '../endpoints/endpoint.js';
import type { Constraint } from '../gate/constraint.js';
import { isPuttingOff, type SeatView } from '../gate/server-answer.js';

/** When an endpoint is left alone, and for how long. */
export interface CircuitBreakerOptions {
  /** How far back calls count. @default '10s' */
  window?: Duration | undefined;
  /** With fewer calls in the window the circuit does not open. @default 10 */
  minCalls?: number | undefined;
  /** Share of failures in the window that opens the circuit, above 0, at most 1. @default 0.5 */
  failureRatio?: number | undefined;
  /** An answer that takes longer is slow. @default none is */
  slowCall?: Duration | undefined;
  /** Share of slow answers in the window that opens the circuit, above 0, at most 1. @default 0.5 */
  slowRatio?: number | undefined;
  /** How long the circuit stays open the first time; each failed try doubles it. @default '5s' */
  openFor?: Duration | undefined;
  /** The most that doubling leads to. @default '60s' */
  maxOpenFor?: Duration | undefined;
  /** Requests that try a half-open endpoint at a time; as many must go well to close it. @default 1 */
  probes?: number | undefined;
}

/** The state of the circuit of an endpoint. */
export type CircuitState = 'closed' | 'open' | 'half-open';

export interface CircuitBreaker extends Constraint {
  /** The state of an endpoint at an instant of the controller's clock. */
  stateOf(endpoint: EndpointView, nowMs: number): CircuitState;
  /** Counts a failure that no answer tells of, such as a refused connection. */
  failed(endpoint: EndpointView, nowMs: number): void;
}

const type = 'circuit-breaker-detector';
/** Parts of the window: a call leaves it a tenth of the window late at most. */
const parts = 10;

const parameters = s.object({
  window: s.optional(s.positiveDuration('10s'), 10_000),
  minCalls: s.optional(s.positiveInteger(), 10),
  failureRatio: s.optional(s.ratioAboveZero(), 0.5),
  slowCall: s.optional(s.positiveDuration('30s')),
  slowRatio: s.optional(s.ratioAboveZero(), 0.5),
  openFor: s.optional(s.positiveDuration('5s'), 5_000),
  maxOpenFor: s.optional(s.positiveDuration('60s'), 60_000),
  probes: s.optional(s.positiveInteger(), 1),
});

type Settings = output<typeof parameters>;

/** Calls of one part of the window. */
interface Tally {
  part: number;
  calls: number;
  failures: number;
  slow: number;
}

class Circuit {
  /** Seats that try a half-open endpoint. */
  readonly trying = new Set<SeatView>();
  private openUntilMs = 0;
  private openForMs: number;
  private isTripped = false;
  private wentWell = 0;
  private readonly tallies: Tally[] = [];
  private readonly settings: Settings;

  constructor(settings: Settings) {
    this.settings = settings;
    this.openForMs = settings.openFor;
  }

  state(nowMs: number): CircuitState {
    if (!this.isTripped) return 'closed';
    return nowMs < this.openUntilMs ? 'open' : 'half-open';
  }

  hasRoom(nowMs: number): boolean {
    const state = this.state(nowMs);
    return state === 'closed' || (state === 'half-open' && this.trying.size < this.settings.probes);
  }

  /** The instant at which it has room. The controller sees the end of a probe anyway. */
  roomAtMs(nowMs: number): number {
    return this.openUntilMs > nowMs ? this.openUntilMs : Infinity;
  }

  ended(nowMs: number, isFailure: boolean, isSlow: boolean, wasProbe: boolean): void {
    const state = this.state(nowMs);
    if (state === 'closed') this.count(nowMs, isFailure, isSlow);
    else if (state === 'half-open' && wasProbe) this.tried(nowMs, !isFailure && !isSlow);
  }

  private count(nowMs: number, isFailure: boolean, isSlow: boolean): void {
    const { window, minCalls, failureRatio, slowRatio } = this.settings;
    const part = Math.floor((nowMs * parts) / window);
    let tally = this.tallies[this.tallies.length - 1];
    if (tally?.part !== part) {
      tally = { part, calls: 0, failures: 0, slow: 0 };
      this.tallies.push(tally);
      while ((this.tallies[0] as Tally).part <= part - parts) this.tallies.shift();
    }
    tally.calls++;
    if (isFailure) tally.failures++;
    if (isSlow) tally.slow++;
    const calls = this.sum('calls');
    if (calls < minCalls) return;
    if (this.sum('failures') >= failureRatio * calls || this.sum('slow') >= slowRatio * calls) this.open(nowMs);
  }

  private sum(figure: keyof Tally): number {
    return this.tallies.reduce((sum, tally) => sum + tally[figure], 0);
  }

  private tried(nowMs: number, wentWell: boolean): void {
    if (!wentWell) {
      this.openForMs = Math.min(this.openForMs * 2, this.settings.maxOpenFor);
      this.open(nowMs);
    } else if (++this.wentWell >= this.settings.probes) {
      this.isTripped = false;
      this.openForMs = this.settings.openFor;
    }
  }

  private open(nowMs: number): void {
    this.isTripped = true;
    this.openUntilMs = nowMs + this.openForMs;
    this.wentWell = 0;
    this.tallies.length = 0;
  }
}

/**
 * Judges endpoints, and not how full they are. A failure is an answer with status 500 or more, as `lease.answered`
 * reports it; 429 and 529 are no failures, because they only ask to come back later. A request that ends without an
 * answer counts where it took longer than `slowCall`, as slow. O(1) for each call, O(endpoints) where a request goes.
 * Source: the circuit breaker of Nygard, "Release It!" (2007), with the sliding window that Resilience4j gives it.
 * @throws FlowConfigError
 * @example new FlowController({ maxConcurrency: 64, constraints: [circuitBreaker({ slowCall: '20s' })] })
 */
export function circuitBreaker(options: CircuitBreakerOptions = {}): CircuitBreaker {
  const settings = s.parse(parameters, options, 'circuitBreaker');
  const { slowCall = Infinity } = settings;
  const circuits = new WeakMap<EndpointView, Circuit>();
  const begunAtMs = new WeakMap<SeatView, number>();

  function circuitOf(endpoint: EndpointView): Circuit {
    return circuits.get(endpoint) ?? put(circuits, endpoint, new Circuit(settings));
  }

  return {
    type,
    withRoomFor: (endpoints, _item, nowMs) =>
      endpoints.filter((endpoint) => circuits.get(endpoint)?.hasRoom(nowMs) !== false),
    waitOf(endpoints, _item, nowMs) {
      const atMs = Math.min(...endpoints.map((endpoint) => circuitOf(endpoint).roomAtMs(nowMs)));
      return { atMs, notBeforeMs: nowMs, missing: 'a server whose circuit is closed' };
    },
    dispatched(endpoint, nowMs, seat) {
      begunAtMs.set(seat, nowMs);
      const circuit = circuits.get(endpoint);
      if (circuit?.state(nowMs) === 'half-open') circuit.trying.add(seat);
    },
    answered(endpoint, nowMs, seat, answer) {
      const startedAtMs = begunAtMs.get(seat);
      if (startedAtMs === undefined || isPuttingOff(answer)) return;
      begunAtMs.delete(seat);
      const circuit = circuitOf(endpoint);
      circuit.ended(nowMs, answer.status >= 500, nowMs - startedAtMs > slowCall, circuit.trying.has(seat));
    },
    released(endpoint, nowMs, seat) {
      const startedAtMs = begunAtMs.get(seat);
      begunAtMs.delete(seat);
      const wasProbe = circuits.get(endpoint)?.trying.delete(seat) === true;
      const isSlow = startedAtMs !== undefined && !seat.isUnsent && nowMs - startedAtMs > slowCall;
      if (isSlow) circuitOf(endpoint).ended(nowMs, false, true, wasProbe);
    },
    stateOf: (endpoint, nowMs) => circuits.get(endpoint)?.state(nowMs) ?? 'closed',
    failed(endpoint, nowMs) {
      const circuit = circuitOf(endpoint);
      circuit.ended(nowMs, true, false, circuit.trying.size > 0);
    },
  };
}

export const circuitBreakerPlugin: Definition<Constraint> = define(type, parameters, circuitBreaker);
