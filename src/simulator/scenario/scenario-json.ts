/** What editors know of a scenario file. */
import { object } from '../../base/schema/containers.js';
import { anything } from '../../base/schema/element.js';
import { jsonSchemaOf, row } from '../../base/schema/json-schema.js';
import { flowSectionsJson } from '../../config/index.js';
import { scenarioTable } from '../engine/simulation-options.js';

const { plugins, saturationDetector, flowControl } = flowSectionsJson;

const table = object({
  ...scenarioTable,
  gateway: row('A gateway file, whose flow control is that of the scenario.', anything({ type: 'string' })),
  plugins: row('Policies and detectors, as in a gateway file.', anything(plugins)),
  saturationDetector: row('The older place for `flowControl.saturationDetector`.', anything(saturationDetector)),
  flowControl: row('Bands, limits and policies, as in a gateway file.', anything(flowControl)),
});

/**
 * The JSON Schema of a scenario file.
 * @internal
 */
export function scenarioJsonSchema(): string {
  const schema: unknown = JSON.parse(jsonSchemaOf('Scenario of headgate simulate', table), (_key, value: unknown) =>
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
