/** All schemas of options under one name, so that tables read as zod's do: `s.optional(s.flag(), false)`. */
export * from './element.js';
export * from './types.js';
