/** The contract of endpoint pickers: which endpoint a dispatched request gets. */
import type { PluginShape } from '../../base/plugin-shape.js';
import type { ItemView } from '../../tiers/views.js';
import type { EndpointView } from '../endpoint.js';

/**
 * Chooses the endpoint of a request at the moment of its dispatch.
 * Contract: returns one of `endpoints` (never empty). Anything else is reported as a plugin error, and the least loaded
 * goes. Cost: once for each dispatched request, where the pool has two endpoints or more. State: its own.
 */
export interface EndpointPicker<R = unknown> {
  readonly type: string;
  /** True when one of a few endpoints is as good as one of all: of more than 64 it gets eight, drawn, with room. */
  readonly takesSamples?: boolean | undefined;
  pick(endpoints: readonly EndpointView[], item: ItemView<R>, nowMs: number): EndpointView | undefined;
}

export const endpointPickerShape: PluginShape<EndpointPicker> = {
  noun: 'an endpoint picker',
  example: 'leastLoaded()',
  required: ['pick'],
  optional: [],
};
