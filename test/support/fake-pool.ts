/** Pools as detectors see them, made of figures. */
import type { EndpointView, PoolView } from '../../src/index.js';

export function fakeEndpoint(id: string, figures: Partial<EndpointView> = {}): EndpointView {
  return {
    id,
    labels: {},
    weight: 1,
    overloadedUntilMs: 0,
    metrics: undefined,
    inFlightRequests: 0,
    inFlightTokens: 0,
    unsampledRequests: 0,
    dispatchedRequests: 0,
    ...figures,
  };
}

/** Endpoints e0, e1, … with `[requests, tokens]` in flight. */
export function fakePool(figures: readonly (readonly [inFlightRequests: number, inFlightTokens: number])[]): PoolView {
  return poolOf(...figures.map(([inFlightRequests, inFlightTokens], i) => fakeEndpoint(`e${i}`, { inFlightRequests, inFlightTokens })));
}

export function poolOf(...endpoints: EndpointView[]): PoolView {
  const sum = (figure: 'inFlightRequests' | 'inFlightTokens'): number => endpoints.reduce((total, endpoint) => total + endpoint[figure], 0);
  return { endpoints, inFlightRequests: sum('inFlightRequests'), inFlightTokens: sum('inFlightTokens') };
}
