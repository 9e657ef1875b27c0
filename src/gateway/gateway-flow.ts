/** The controller of a gateway, and what its policies see of a request. */
import type { AdapterGate, HttpFlowRequest, NodeRequest } from '../adapters/node/index.js';
import type { EndpointFilter, EndpointPicker, FlowControllerOptions, ItemView } from '../index.js';
import { FlowController, labelFilter, leastLoaded } from '../index.js';
import type { Upstreams } from './forwarding/upstreams.js';
import { knownStateOf } from './request-state.js';
import type { GatewayConfig } from './settings/gateway-config.js';
import type { SharedState } from './shared/shared-state.js';

/** The request that policies see in `item.request`. */
export interface GatewayRequest extends HttpFlowRequest<NodeRequest> {
  /** The `x-request-id` of its answer, by which operators find it while it waits. */
  readonly id?: string | undefined;
  /** The model that the server will be asked for; for filters by label, and for metrics. */
  readonly model?: string | undefined;
  /** The model that the client asked for. */
  readonly askedModel?: string | undefined;
  /** Of the prompt, and the most that the answer may have; for quotas. */
  readonly inputTokens?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  /** What its size was taken for, `text+media+output`, for explanations. */
  readonly takenFor?: string | undefined;
  /** The servers that it was sent to before: they refused it, or were late. */
  readonly refusedBy?: readonly string[] | undefined;
}

type Options = FlowControllerOptions<GatewayRequest>;
type Estimate = NonNullable<Options['estimate']>;

/** The file's options. If servers say by a label which models they have, requests go to those that have theirs. */
export function flowOptions(config: Pick<GatewayConfig, 'flow' | 'upstreams'>, hasSockets = false): Options {
  const { upstreams } = config;
  const given = config.flow as Options;
  const { estimate, endpointPicker = leastLoaded() } = given;
  const options = { ...given, estimate: estimate && logged(estimate), endpointPicker: elsewhere(endpointPicker) };
  const hasModels = upstreams.some(({ labels }) => labels.model !== undefined);
  if (!hasModels && !hasSockets) return options;
  const of = ({ model }: GatewayRequest): string | undefined => (hasModels ? model : undefined);
  const byModel = labelFilter<GatewayRequest>({ label: 'model', of, allowsNoLabel: true });
  const { endpointFilters = [], holBlocking = 'none' } = options;
  const own = hasSockets ? [byModel, bySocket] : [byModel];
  // A model whose servers are full must not hold back the others.
  return { ...options, endpointFilters: [...endpointFilters, ...own], holBlocking };
}

/** Turns of a socket go to its server. */
const bySocket: EndpointFilter<GatewayRequest> = {
  type: 'socket-filter',
  classOf: ({ request }) => knownStateOf(request.req)?.pinnedTo,
  keep: (endpoints, pinnedTo) => endpoints.filter(({ id }) => id === pinnedTo),
};

/** The host's estimate, which log and metrics tell in place of the gateway's own. */
function logged(estimate: Estimate): Estimate {
  return (request) => {
    const own = estimate(request);
    const state = knownStateOf(request.req);
    const { inputTokens, outputTokens = 0 } = own ?? {};
    if (inputTokens !== undefined && state?.size !== undefined)
      state.size = { ...state.size, inputTokens, outputTokens, told: `${inputTokens}+${outputTokens}` };
    return own;
  };
}

/** The picker, which sees the servers that have refused a request only where no other one has room. */
function elsewhere(picker: EndpointPicker<GatewayRequest>): EndpointPicker<GatewayRequest> {
  return {
    type: picker.type,
    takesSamples: picker.takesSamples,
    pick(endpoints, item, nowMs) {
      const { refusedBy = [] } = item.request;
      const others = refusedBy.length === 0 ? endpoints : endpoints.filter(({ id }) => !refusedBy.includes(id));
      return picker.pick(others.length > 0 ? others : endpoints, item, nowMs);
    },
  };
}

/** `revocationOf`: why a request that waited may not go on, undefined when it may. */
export function createFlow(
  config: GatewayConfig,
  { pool }: Upstreams,
  shared: SharedState | undefined,
  revocationOf: (req: NodeRequest) => string | undefined,
): FlowController<GatewayRequest> {
  const onDispatch = (item: ItemView<GatewayRequest>): string | undefined => revocationOf(item.request.req);
  const flow = new FlowController<GatewayRequest>({ ...sharing(flowOptions(config), shared), pool, onDispatch });
  shared?.detector?.attach(flow);
  shared?.shareQuotas(config.constraints);
  shared?.workers?.start(flow, pool, config.constraints);
  return flow;
}

/** The options, with the limit that replicas share beside the file's detector. */
export function sharing(options: Options, shared: SharedState | undefined): Options {
  const { saturationDetector: own } = options;
  return shared === undefined || own === undefined ? options : { ...options, saturationDetector: shared.beside(own) };
}

/** The controller, as the adapter takes it. */
export function gateOf(flow: FlowController<GatewayRequest>): AdapterGate<HttpFlowRequest<NodeRequest>> {
  return {
    enter(request, key, waiting = () => request) {
      const state = knownStateOf(request.req);
      const { putOff } = state ?? {};
      if (state === undefined || putOff === undefined) return flow.enter(request, key, waiting);
      // The request goes back to its place in the queue, with the signal of this wait.
      state.putOff = undefined;
      return putOff.requeue(waiting());
    },
    enqueue: (request, key) => flow.enqueue(request, key),
    bandHeadroom: (priority) => flow.bandHeadroom(priority),
  };
}
