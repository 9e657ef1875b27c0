/** Requests, endpoints and pools as plugins see them, made of figures. */
import type { EndpointView, ItemView, PoolView } from '../../index.js';

export function itemView(figures: Partial<ItemView> = {}): ItemView {
  return {
    request: { byteSize: 1 },
    fairnessId: 'a',
    priority: 0,
    byteSize: 1,
    tokens: 0,
    sequence: 0,
    receivedAtMs: 0,
    enqueuedAtMs: 0,
    ttlMs: Number.POSITIVE_INFINITY,
    ttftDeadlineAtMs: Number.POSITIVE_INFINITY,
    ...figures,
  };
}

export function endpointView(id: string, figures: Partial<EndpointView> = {}): EndpointView {
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

export function poolView(...endpoints: EndpointView[]): PoolView {
  const sum = (figure: 'inFlightRequests' | 'inFlightTokens'): number =>
    endpoints.reduce((total, endpoint) => total + endpoint[figure], 0);
  return { endpoints, inFlightRequests: sum('inFlightRequests'), inFlightTokens: sum('inFlightTokens') };
}
