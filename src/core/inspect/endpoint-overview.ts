/** Model servers as a page shows them. */
import type { EndpointMetrics, EndpointState } from '../../endpoints/endpoint.js';
import type { Engine } from '../engine/engine.js';

export interface EndpointOverview {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly inFlightRequests: number;
  readonly inFlightTokens: number;
  /** Requests that fit there by the controller's detector; undefined where that goes by something else. */
  readonly seats: number | undefined;
  /** True while it gets no work because it refused some requests. */
  readonly isOverloaded: boolean;
  /**
   * True when it may get requests: it is not ill, draining or overloaded, and has the metrics that the detector needs.
   */
  readonly isAvailable: boolean;
  readonly state: EndpointState;
  readonly metrics: EndpointMetrics | undefined;
}

/** The first `count` members of the pool. */
export function endpointOverviews({ seats: { pool }, gate }: Engine, nowMs: number, count: number): EndpointOverview[] {
  const available = new Set(gate.available(nowMs));
  return pool.endpoints
    .slice(0, count)
    .filter((endpoint) => !endpoint.isImplicit)
    .map((endpoint) => {
      const { id, labels, inFlightRequests, inFlightTokens, overloadedUntilMs, metrics, state } = endpoint;
      const isOverloaded = overloadedUntilMs > pool.now();
      const seats = gate.seatsOf(endpoint, nowMs);
      const isAvailable = available.has(endpoint);
      return { id, labels, inFlightRequests, inFlightTokens, seats, isOverloaded, isAvailable, state, metrics };
    });
}
