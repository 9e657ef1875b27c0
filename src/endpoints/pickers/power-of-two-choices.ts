/** Draws two endpoints and sends the request to the less loaded one. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import { seededRandom } from '../../base/seeded-random.js';
import type { EndpointView } from '../endpoint.js';
import type { EndpointPicker } from './endpoint-picker.js';
import { isLessLoaded } from './least-loaded.js';

/** Parameters that a configuration file can hold. */
export interface PowerOfTwoChoicesParameters {
  /** The seed of the random numbers, a safe integer; gateways in front of one pool should differ in it. @default 1 */
  seed?: number | undefined;
}

export interface PowerOfTwoChoicesOptions extends PowerOfTwoChoicesParameters {
  /** A source of numbers from 0 to less than 1, in place of the seeded one. */
  random?: (() => number) | undefined;
}

const type = 'weighted-random-two-picker';
const shape = { seed: s.optional(s.integer(), 1) };

const optionsSchema = s.object(s.withKeys(shape, { random: s.optional(s.randomSource()) }));

/** One endpoint by weight, `without` excepted; undefined when there is no other. */
function drawByWeight(endpoints: readonly EndpointView[], number: number, without?: EndpointView) {
  let weights = 0;
  for (const endpoint of endpoints) if (endpoint !== without) weights += endpoint.weight;
  let left = number * weights;
  let drawn: EndpointView | undefined;
  for (const endpoint of endpoints) {
    if (endpoint === without) continue;
    drawn = endpoint;
    left -= endpoint.weight;
    if (left < 0) break;
  }
  return drawn;
}

/**
 * Two different endpoints, each drawn by weight, and of these the less loaded: gateways that know nothing of each other
 * do not all choose the same, and the most loaded endpoint gets nothing. O(endpoints). Source: Azar, Broder, Karlin,
 * Upfal, Balanced Allocations (1994); Mitzenmacher, The Power of Two Choices (1996). @throws FlowConfigError
 */
export function powerOfTwoChoices(options: PowerOfTwoChoicesOptions = {}): EndpointPicker {
  const { seed, random = seededRandom(seed) } = s.parse(optionsSchema, options, 'powerOfTwoChoices');
  return {
    type,
    pick(endpoints) {
      const first = drawByWeight(endpoints, random());
      const second = drawByWeight(endpoints, random(), first);
      return first !== undefined && second !== undefined && isLessLoaded(second, first) ? second : first;
    },
  };
}

export const powerOfTwoChoicesPlugin: Definition<EndpointPicker> = define(type, s.object(shape), powerOfTwoChoices);
