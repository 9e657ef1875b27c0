/**
 * Schemas of options, as one namespace: `import * as s`, so that tables read as those of zod do, `s.optional(s.flag(), false)`.
 */
export * from './element.js';
export * from './types.js';
