/** The option `saturationDetector`: a detector, or a function that returns the saturation. */
import { abandon, isAsyncFunction, isPromise } from '../base/async-function.js';
import { type ConfigIssue, describeValue, FlowConfigError } from '../base/faults/flow-config-error.js';
import { memberOf } from '../base/faults/foreign-values.js';
import { pluginOfShape } from '../base/plugin-shape.js';
import * as s from '../base/schema/schema.js';
import type { PoolView } from '../endpoints/endpoint.js';
import { type SaturationDetector, type SaturationFunction, saturationDetectorShape } from './saturation-detector.js';

const { noun, example } = saturationDetectorShape;
const detector = pluginOfShape(saturationDetectorShape);

/** The detector that `candidate` is; otherwise reports what it lacks and returns undefined. */
export function readDetector(candidate: unknown, report: s.Report): SaturationDetector | undefined {
  if (isOnlyConstraint(candidate)) {
    const { expected, got } = misplaced(candidate);
    return report(expected, [], got);
  }
  if (typeof candidate !== 'function') return s.readBy(detector, candidate, report);
  const mistake = mistakeOf(candidate as SaturationFunction);
  if (mistake !== undefined) report(...mistake);
  return { type: 'function', saturation: candidate as SaturationFunction };
}

/** The fault of what stands at `path` in a detector that is made of others; undefined for a detector. */
export function detectorIssue(path: string, candidate: unknown): ConfigIssue | undefined {
  if (isOnlyConstraint(candidate)) return { path, ...misplaced(candidate) };
  if (typeof (candidate as Partial<SaturationDetector> | undefined)?.saturation === 'function') return undefined;
  return { path, expected: noun, got: describeValue(candidate) };
}

function isOnlyConstraint(candidate: unknown): candidate is object {
  if (typeof candidate !== 'object' || candidate === null) return false;
  return memberOf(candidate, 'saturation') === undefined && memberOf(candidate, 'withRoomFor') !== undefined;
}

function misplaced(constraint: object): Omit<ConfigIssue, 'path'> {
  const got = `the constraint ${String(memberOf(constraint, 'type'))}`;
  return { expected: `${noun}; constraints go into the controller's option "constraints: [...]"`, got };
}

const noPool: PoolView = Object.freeze({ endpoints: Object.freeze([]), inFlightRequests: 0, inFlightTokens: 0 });

/** A call with an empty pool shows a factory in place of its result; other exceptions then are no mistake. */
function mistakeOf(saturation: SaturationFunction): Parameters<s.Report> | undefined {
  if (isAsyncFunction(saturation)) return [expectedAtOnce, [], 'an async function'];
  try {
    const answer: unknown = saturation(noPool, 0);
    if (isPromise(answer)) {
      abandon(answer);
      return [expectedAtOnce, [], 'a function that returns a promise'];
    }
    return typeof answer === 'object' && answer !== null ? uncalled : undefined;
  } catch (error) {
    return error instanceof FlowConfigError ? uncalled : undefined;
  }
}

const expectedAtOnce = 'a function that returns the saturation at once, a number';
const uncalled: Parameters<s.Report> = [
  `${noun}, such as ${example}`,
  [],
  'a function that makes detectors, and has to be called',
];

/** The reading of a controller whose constraints alone hold requests back. */
export const noDetector: SaturationDetector = {
  type: 'none',
  saturation: ({ endpoints }) => (endpoints.length === 0 ? 1 : 0),
  subscribe: () => () => {},
};
