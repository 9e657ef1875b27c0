/**
 * Where may a request go, and under which name does it wait? The filters, marks and headroom once more, in plain words.
 */
import type { GroupTurn } from '../../src/base/endpoint-turns.js';
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
  return placesOf(flow, item, reachable, nowMs).some((places) => {
    const roomy = withRoomFor(places);
    if (headroom !== 'required') return roomy.length > 0;
    return (detector.filter?.(roomy, nowMs) ?? roomy).length > 0;
  });
}

/** The groups that it may use by now, of those that its band names; without groups, all of them. */
function placesOf(
  flow: FlowController<never>,
  item: ItemView,
  reachable: readonly EndpointView[],
  nowMs: number,
): (readonly EndpointView[])[] {
  const groups = groupsOf(flow, item.priority);
  if (groups === undefined) return [reachable];
  const members = groups.map(({ group }) => reachable.filter(({ labels }) => labels.group === group));
  return members.filter((_, i) => {
    const isOpen = nowMs >= item.enqueuedAtMs + (groups[i]?.afterMs ?? 0);
    return isOpen || members.slice(0, i).every(({ length }) => length === 0);
  });
}

/** The groups that requests of that priority may use. */
export function groupsOf(flow: FlowController<never>, priority: number): readonly GroupTurn[] | undefined {
  const { bands, defaultBand, defaultNegativeBand } = optionsOf(flow);
  const template = priority < 0 ? defaultNegativeBand : defaultBand;
  return (bands.find((band) => band.priority === priority) ?? template).endpoints;
}

/** The name of the flow that it must be filed under, unless the flow is one that many share. */
export function flowName(flow: FlowController<never>, { fairnessId }: ItemView, requestClass: unknown): string {
  const isApart = optionsOf(flow).holBlocking === 'none' && requestClass !== undefined;
  return isApart ? `${fairnessId}\u0000${String(requestClass)}` : fairnessId;
}
