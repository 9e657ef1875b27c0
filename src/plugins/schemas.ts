/** The schema kit, for authors of plugins and for the subpaths of the package. */
import { describeValue } from '../base/faults/flow-config-error.js';
import { list, object, openObject, orEmpty, record, withKeys } from '../base/schema/containers.js';
import { bandOutlivesFlows, distinctPriorities, mostBands, opensBelowClosing, roomForBands } from '../base/schema/cross-field-rules.js';
import { parseDuration } from '../base/schema/duration.js';
import { anything, callable, element, objectWith, optional, value } from '../base/schema/element.js';
import { below, joinPath, parse, validate } from '../base/schema/parse.js';
import { parseQuantity } from '../base/schema/quantity.js';
import { didYouMean } from '../base/schema/suggest.js';
import {
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
import { nounOf, pluginOf } from './kinds.js';
import type * as kit from './schema-kit.js';

/** An object and not a namespace, because a bundler can drop an unused object. */
export const schemas: typeof kit = {
  aboveZero,
  anything,
  atLeastZero,
  bandOutlivesFlows,
  below,
  callable,
  clock,
  describeValue,
  didYouMean,
  distinctPriorities,
  duration,
  durationAboveZero,
  element,
  flag,
  integer,
  joinPath,
  list,
  mostBands,
  nounOf,
  number,
  object,
  objectWith,
  oneOf,
  openObject,
  opensBelowClosing,
  optional,
  orEmpty,
  parse,
  parseDuration,
  parseQuantity,
  pluginOf,
  positiveDuration,
  positiveInteger,
  quantity,
  randomSource,
  ratio,
  ratioAboveZero,
  record,
  roomForBands,
  text,
  validate,
  value,
  withKeys,
};
