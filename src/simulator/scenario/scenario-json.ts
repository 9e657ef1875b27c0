/** What editors know of a scenario file. */
import { row } from '../../base/schema/json-schema.js';
import * as s from '../../base/schema/schema.js';
import { flowSectionsJson } from '../../config/index.js';
import { scenarioTable } from '../engine/simulation-options.js';

const { plugins, saturationDetector, flowControl } = flowSectionsJson;

/** @internal Made for each call, so that the bundle of a program that does not call it is without what it needs. */
export function scenarioFileTable(): s.Schema<unknown> {
  return s.object({
    ...scenarioTable,
    gateway: row('A gateway file, whose flow control is that of the scenario.', s.anything({ type: 'string' })),
    plugins: row('Policies and detectors, as in a gateway file.', s.anything(plugins)),
    saturationDetector: row('The older place for `flowControl.saturationDetector`.', s.anything(saturationDetector)),
    flowControl: row('Bands, limits and policies, as in a gateway file.', s.anything(flowControl)),
  });
}

/** @internal The JSON Schema of the table, as files have it. */
export function withTraceFiles(json: string): string {
  const schema: unknown = JSON.parse(json, (_key, value: unknown) =>
    isTrace(value) ? { ...value, properties: { ...value.properties, ...named }, required: ['type'] } : value,
  );
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** In a file, a trace is the name of another file. */
const named = { file: { type: 'string' }, columns: { type: 'object', additionalProperties: { type: 'string' } } };

function isTrace(value: unknown): value is { readonly properties: object } {
  const properties: unknown = Reflect.get(Object(value), 'properties');
  return typeof properties === 'object' && properties !== null && 'rows' in properties;
}
