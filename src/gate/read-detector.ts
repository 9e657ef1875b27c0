/** The option `saturationDetector`: a detector, or a function that returns the saturation. */
import { abandon, isAsyncFunction, isPromise } from '../base/async-function.js';
import { FlowConfigError } from '../base/faults/flow-config-error.js';
import { readPlugin } from '../base/plugin-shape.js';
import type { Report } from '../base/schema/element.js';
import type { PoolView } from '../endpoints/endpoint.js';
import { type SaturationDetector, type SaturationFunction, saturationDetectorShape } from './saturation-detector.js';

/** The detector that `candidate` is; otherwise reports what it lacks and returns undefined. */
export function readDetector(candidate: unknown, report: Report): SaturationDetector | undefined {
  if (typeof candidate !== 'function') return readPlugin(saturationDetectorShape, candidate, report);
  const mistake = mistakeOf(candidate as SaturationFunction);
  if (mistake !== undefined) report(...mistake);
  return { type: 'function', saturation: candidate as SaturationFunction };
}

const noPool: PoolView = Object.freeze({ endpoints: Object.freeze([]), inFlightRequests: 0, inFlightTokens: 0 });

/**
 * One call with an empty pool shows whether a factory was passed instead of its result: a factory returns a detector,
 * or rejects the pool as its options. Any other exception with an empty pool is no mistake.
 */
function mistakeOf(saturation: SaturationFunction): Parameters<Report> | undefined {
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
const { noun, example } = saturationDetectorShape;
const uncalled: Parameters<Report> = [
  `${noun}, such as ${example}`,
  [],
  'a function that makes detectors, and has to be called',
];
