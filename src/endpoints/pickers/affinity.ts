/** Sends a key's requests to one endpoint, which has the prefix. Invariant: to ⌈loadCap · its share of all⌉ at most. */
import { type Definition, define } from '../../base/policy-definition.js';
import { requestField } from '../../base/request-field.js';
import * as s from '../../base/schema/schema.js';
import { textHash } from '../../base/text-hash.js';
import type { ItemView } from '../../tiers/views.js';
import type { EndpointView } from '../endpoint.js';
import type { EndpointPicker } from './endpoint-picker.js';
import { leastLoadedOf } from './least-loaded.js';

/** Parameters that a configuration file can hold. */
export interface AffinityParameters {
  /** The key that requests share: the text in `request.affinityKey`, or their fairness ID. @default 'affinityKey' */
  by?: 'affinityKey' | 'fairnessId' | undefined;
  /** How far above the average an endpoint may be loaded, from 1: lower spreads, higher gathers. @default 1.25 */
  loadCap?: number | undefined;
}

export interface AffinityOptions<R = unknown> extends Omit<AffinityParameters, 'by'> {
  /** Or a function that tells the key; undefined or empty text: none. */
  by?: AffinityParameters['by'] | ((item: ItemView<R>) => string | undefined);
}

const loadCapSchema = s.optional(s.number({ from: 1 }), 1.25);

type KeyOf<R> = (item: ItemView<R>) => unknown;

function readKeyOf<R>(given: unknown, report: s.Report): KeyOf<R> | undefined {
  if (given === 'affinityKey') return ({ request }) => requestField(request, 'affinityKey');
  if (given === 'fairnessId') return ({ fairnessId }) => fairnessId;
  if (typeof given === 'function') return (item) => given(item);
  return report('"affinityKey", "fairnessId", or a function of the request in the queue');
}

/** The score of an endpoint for a key. It rises with the weight, and gives each key its own order of the endpoints. */
function rendezvousScore(keyHash: number, { id, weight }: EndpointView): number {
  const fraction = (textHash(id, keyHash) + 0.5) / 2 ** 32;
  return -weight / Math.log(fraction);
}

/**
 * The first endpoint in the key's own order of the pool that is below its cap; weights say how often one comes first.
 * When an endpoint joins or leaves, only its own keys move. Requests without a key go to the least loaded. O(endpoints
 * · length of their names), and the length of the key. Source: rendezvous hashing, Thaler and Ravishankar (1998), with
 * the weights of Schindelhauer and Schomaker (2005); bounded loads, Mirrokni, Thorup and Zadimoghaddam (2016).
 * @throws FlowConfigError
 */
export function affinity<R = unknown>(options: AffinityOptions<R> = {}): EndpointPicker<R> {
  const schema = s.object({ by: s.element(readKeyOf<R>), loadCap: loadCapSchema });
  const { by: keyOf, loadCap } = s.parse(schema, { ...options, by: options.by ?? 'affinityKey' }, 'affinity');
  return {
    type: 'affinity-picker',
    pick(endpoints, item) {
      const key = keyOf(item);
      if (typeof key !== 'string' || key === '') return leastLoadedOf(endpoints);
      let requests = 1;
      let weights = 0;
      for (const { inFlightRequests, weight } of endpoints) {
        requests += inFlightRequests;
        weights += weight;
      }
      const keyHash = textHash(key);
      let best: EndpointView | undefined;
      let highest = -Infinity;
      for (const endpoint of endpoints) {
        if (endpoint.inFlightRequests >= Math.ceil((loadCap * requests * endpoint.weight) / weights)) continue;
        const score = rendezvousScore(keyHash, endpoint);
        if (score <= highest) continue;
        best = endpoint;
        highest = score;
      }
      // The sum of the caps leaves room for one more request, except for rounding.
      return best ?? leastLoadedOf(endpoints);
    },
  };
}

/**
 * The `affinity` key of the first `characters`: so many that system prompts differ, so few that users of one do not.
 * Keys collide once in 2³², which shares a server. O(characters).
 */
export function prefixKey(prompt: string, characters = 256): string {
  return textHash(prompt, undefined, Math.min(characters, prompt.length)).toString(36);
}

const parameters = s.object({ by: s.optional(s.oneOf('affinityKey', 'fairnessId')), loadCap: loadCapSchema });
export const affinityPlugin: Definition<EndpointPicker> = define('affinity-picker', parameters, affinity);
