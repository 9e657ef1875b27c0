/** The controller of a gateway, and what its policies see of a request. */

import type { AdapterGate, HttpFlowRequest, NodeRequest } from '../adapters/node/index.js';
import { FlowController, type FlowControllerOptions, labelFilter } from '../index.js';
import type { Call } from './call.js';
import type { GatewayConfig } from './gateway-config.js';
import type { Upstreams } from './upstreams.js';

/** In `item.request`. */
export interface GatewayRequest extends HttpFlowRequest<NodeRequest> {
  /** The model that the server will be asked for; for filters by label, and for metrics. */
  readonly model?: string | undefined;
  /** The model that the client asked for. */
  readonly askedModel?: string | undefined;
}

/** The file's options. Where servers say by a label which models they have, requests go to those that have theirs. */
export function flowOptions({ flow, upstreams }: Pick<GatewayConfig, 'flow' | 'upstreams'>): FlowControllerOptions<GatewayRequest> {
  const options = flow as FlowControllerOptions<GatewayRequest>;
  if (upstreams.every(({ labels }) => labels.model === undefined)) return options;
  const byModel = labelFilter<GatewayRequest>({ label: 'model', of: ({ model }) => model, allowsNoLabel: true });
  const { endpointFilters = [], holBlocking = 'none' } = options;
  // A model whose servers are full must not hold back the others.
  return { ...options, endpointFilters: [...endpointFilters, byModel], holBlocking };
}

export function createFlow(config: GatewayConfig, { pool }: Upstreams): FlowController<GatewayRequest> {
  return new FlowController<GatewayRequest>({ ...flowOptions(config), pool });
}

/** The controller, as the adapter takes it: adds to its requests what the gateway knows of them. */
export function gateOf(
  flow: FlowController<GatewayRequest>,
  callOf: (req: NodeRequest) => Call,
): AdapterGate<HttpFlowRequest<NodeRequest>> {
  const enriched = (request: HttpFlowRequest<NodeRequest>): GatewayRequest => {
    const { targetModel, model } = callOf(request.req);
    return { ...request, model: targetModel, askedModel: model };
  };
  return {
    tryEnqueue: (request, key) => flow.tryEnqueue(enriched(request), key),
    enqueue: (request, key) => flow.enqueue(enriched(request), key),
  };
}
