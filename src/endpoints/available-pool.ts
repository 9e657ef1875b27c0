/**
 * The available members of a pool: not ill, draining or marked as overloaded. Each controller judges its pool by one.
 * Invariant: `refresh(nowMs)` brings `endpoints` to that instant; another array whenever something of it changed.
 */
import { sum } from '../base/sum.js';
import type { EndpointView, PoolView } from './endpoint.js';
import type { Endpoint, SeatPool } from './seat-pool.js';

export class AvailablePool implements PoolView {
  endpoints: readonly Endpoint[];
  /** When the next mark of overload ends; Infinity while there is none. */
  returnsAtMs: number = Infinity;
  /** True while every member is available. */
  isWhole = true;
  /** Rises with every change of the pool's, and when a mark ends. */
  version = 0;
  private seenVersion = -1;
  private readonly pool: SeatPool;

  constructor(pool: SeatPool) {
    this.pool = pool;
    this.endpoints = pool.endpoints;
  }

  get inFlightRequests(): number {
    return this.isWhole ? this.pool.inFlightRequests : sum(this.endpoints, (endpoint) => endpoint.inFlightRequests);
  }

  get inFlightTokens(): number {
    return this.isWhole ? this.pool.inFlightTokens : sum(this.endpoints, (endpoint) => endpoint.inFlightTokens);
  }

  /** O(1), and O(members) after a change. */
  refresh(nowMs: number): void {
    if (this.pool.version === this.seenVersion && nowMs < this.returnsAtMs) return;
    this.seenVersion = this.pool.version;
    this.version++;
    const members = this.pool.endpoints;
    const available = members.filter((endpoint) => isAvailable(endpoint, nowMs));
    this.isWhole = available.length === members.length;
    this.endpoints = Object.freeze(available);
    const ends = members.map(({ overloadedUntilMs }) => overloadedUntilMs).filter((endMs) => endMs > nowMs);
    this.returnsAtMs = Math.min(Infinity, ...ends);
  }
}

/** True while the last report is at most `stalenessMs` old; the next one that was announced begins the count. */
export function hasFreshMetrics({ metrics, reportDueAtMs }: EndpointView, stalenessMs: number, nowMs: number): boolean {
  return metrics !== undefined && nowMs - Math.max(metrics.sampledAtMs, reportDueAtMs ?? -Infinity) <= stalenessMs;
}

/** False for one that is ill, draining or marked as overloaded. */
export function isAvailable({ state, overloadedUntilMs }: EndpointView, nowMs: number): boolean {
  return (state === undefined || state === 'ready') && overloadedUntilMs <= nowMs;
}
