/**
 * Where may a request go, and under which name does it wait? The filters, marks and headroom once more, in plain words.
 */
import type { EndpointFilter, EndpointPool, EndpointView, FlowController, ItemView } from '../../src/index.js';
import type { TestRequest } from './host.js';
import { constraintsOf, implicitEndpointOf, optionsOf, ownDetectorOf } from './inside.js';

/** Requests without a model may go anywhere, and to endpoints without one all may. */
export const byModel: EndpointFilter = {
  type: 'by-model',
  classOf: ({ request }) => (request as TestRequest).model,
  keep: (endpoints, model) => endpoints.filter(({ labels }) => labels.model === undefined || labels.model === model),
};

/** By the filters in force; undefined when they are not to be trusted. */
export function mayServe(
  flow: FlowController<never>,
  { labels }: EndpointView,
  { model }: TestRequest,
): boolean | undefined {
  const { endpointFilters } = optionsOf(flow);
  if (endpointFilters.some(({ type }) => type === 'nonsense-filter')) return undefined;
  // The filters of sessions, which come with their detectors, keep every endpoint.
  if (!endpointFilters.includes(byModel)) return true;
  return model === undefined || labels.model === undefined || labels.model === model;
}

/**
 * Is there an endpoint for it now, or will there never be one, so that it has to leave? Undefined when nobody can know.
 */
export function room(
  flow: FlowController<never>,
  pool: EndpointPool | undefined,
  item: ItemView,
  nowMs: number,
): boolean | undefined {
  const { headroom, saturationDetector } = optionsOf(flow);
  const detector = ownDetectorOf(flow, item.priority) ?? saturationDetector;
  const withRoomFor = (endpoints: readonly EndpointView[]): readonly EndpointView[] =>
    constraintsOf(flow, detector).reduce((left, constraint) => constraint.withRoomFor(left, item, nowMs), endpoints);
  if (pool === undefined) return withRoomFor(implicitEndpointOf(flow)).length > 0;
  const request = item.request as TestRequest;
  const served = pool.endpoints.map((endpoint) => mayServe(flow, endpoint, request));
  if (served.includes(undefined)) return undefined;
  if (!served.includes(true)) return true;
  const reachable = pool.endpoints.filter((endpoint, i) => {
    const isSeen = saturationDetector.isBlindTo?.(endpoint, nowMs) !== true;
    return served[i] === true && endpoint.state === 'ready' && endpoint.overloadedUntilMs <= nowMs && isSeen;
  });
  const roomy = withRoomFor(reachable);
  if (headroom !== 'required') return roomy.length > 0;
  return (detector.filter?.(roomy, nowMs) ?? roomy).length > 0;
}

/** The name of the flow that it must be filed under, unless the flow is one that many share. */
export function flowName(flow: FlowController<never>, { fairnessId }: ItemView, requestClass: unknown): string {
  const isApart = optionsOf(flow).holBlocking === 'none' && requestClass !== undefined;
  return isApart ? `${fairnessId}\u0000${String(requestClass)}` : fairnessId;
}
