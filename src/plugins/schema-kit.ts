/** The names of the schema kit, for the type of `schemas`. */

export { didYouMean } from '../base/faults/did-you-mean.js';
export { describeValue } from '../base/faults/flow-config-error.js';
export { list, object, openObject, orEmpty, record, withKeys } from '../base/schema/containers.js';
export {
  bandOutlivesFlows,
  distinctPriorities,
  mostBands,
  opensBelowClosing,
  roomForBands,
} from '../base/schema/cross-field-rules.js';
export { parseDuration } from '../base/schema/duration.js';
export { anything, callable, element, objectWith, optional, value } from '../base/schema/element.js';
export { below, joinPath, parse, validate } from '../base/schema/parse.js';
export { parseQuantity } from '../base/schema/quantity.js';
export {
  aboveZero,
  atLeastZero,
  clock,
  duration,
  durationAboveZero,
  flag,
  integer,
  number,
  oneOf,
  positiveDuration,
  positiveInteger,
  quantity,
  randomSource,
  ratio,
  ratioAboveZero,
  text,
} from '../base/schema/types.js';
export { nounOf, pluginOf } from './kinds.js';
