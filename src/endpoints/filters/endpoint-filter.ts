/** The contract of endpoint filters: which endpoints a request may go to at all. */
import type { PluginShape } from '../../base/plugin-shape.js';
import type { ItemView } from '../../tiers/views.js';
import type { EndpointView } from '../endpoint.js';

/**
 * Restricts a request to some endpoints: those that serve its model, or that a load balancer in front allows.
 * Contract: requests with the same class may go to the same endpoints; undefined is the class of unrestricted requests.
 * `keep` depends on names and labels of endpoints and on the class alone: its answer is used until the pool changes.
 * Cost: `classOf` once for each request, `keep` once for each class and change of the pool. State: none.
 */
export interface EndpointFilter<R = unknown> {
  readonly type: string;
  classOf(item: ItemView<R>): string | undefined;
  keep(endpoints: readonly EndpointView[], requestClass: string): readonly EndpointView[];
}

export const endpointFilterShape: PluginShape<EndpointFilter> = {
  noun: 'an endpoint filter',
  example: "labelFilter({ label: 'model' })",
  required: ['classOf', 'keep'],
  optional: [],
};
