/**
 * What schemas of options are built from, for authors of plugins and for the configuration loader: the package exports it as `schemas`.
 */
export { nounOf, pluginOf } from '../../plugins/kinds.js';
export { describeValue } from '../faults/flow-config-error.js';
export { bandOutlivesFlows, distinctPriorities, mostBands, opensBelowClosing, roomForBands } from './cross-field-rules.js';
export { parseDuration } from './duration.js';
export { element, object, optional, rule, value } from './element.js';
export { below, joinPath, parse, validate } from './parse.js';
export { parseQuantity } from './quantity.js';
export { didYouMean } from './suggest.js';
export {
  aboveZero,
  atLeastZero,
  duration,
  flag,
  integer,
  number,
  oneOf,
  positiveDuration,
  positiveInteger,
  quantity,
  ratio,
  ratioAboveZero,
  text,
} from './types.js';
