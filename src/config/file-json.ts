/** What editors know of the sections that several files have: the plugins that they declare, and flow control. */
import { $ZodType } from 'zod/v4/core';
import { jsonSchemaOf } from '../base/schema/json-schema.js';
import * as s from '../base/schema/schema.js';
import { defaultRegistry } from '../index.js';
import { documentTable } from './endpoint-picker-config.js';
import { flowControlTable } from './flow-control-section.js';
import { objective } from './load-config.js';

/** Each entry has the parameters of its type. A type that is none of ours is the scheduler's, or one of your own. */
function pluginsJson(of: (schema: s.Schema<unknown>) => s.Keywords, ...others: readonly s.Keywords[]): s.Keywords {
  const registry = defaultRegistry();
  const types = registry.types();
  const parameters = types.map((type) => {
    const schema = registry.parametersOf(type);
    return {
      if: { properties: { type: { const: type } }, required: ['type'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { parameters: schema instanceof $ZodType ? of(schema) : {} } },
    };
  });
  const entry = {
    type: 'object',
    properties: {
      type: { description: 'What it is.', anyOf: [{ enum: types }, { type: 'string' }] },
      name: { description: 'By which the rest of the file refers to it.', type: 'string', minLength: 1 },
      parameters: { description: 'As its type has them.', type: 'object' },
    },
    required: ['type'],
    additionalProperties: false,
    allOf: parameters,
  };
  return { type: 'array', items: others.length === 0 ? entry : { anyOf: [entry, ...others] } };
}

/** @internal The sections of flow control, for tables of other files. */
export const flowSectionsJson: Readonly<Record<'plugins' | 'saturationDetector' | 'flowControl', s.Json>> = {
  plugins: (of) => pluginsJson(of, { type: 'string', description: 'A module of your own.' }),
  saturationDetector: { type: 'object', properties: { pluginRef: { type: 'string' } }, additionalProperties: false },
  flowControl: (of) => of(flowControlTable('headgate')),
};

/** @internal JSON Schema of an EndpointPickerConfig or of objectives. `headgate`: the table of the section of that name. */
export function endpointPickerJsonSchema(headgate: s.Schema<unknown>): string {
  const flowControl: s.Json = (of) => of(flowControlTable('llm-d'));
  const { saturationDetector } = flowSectionsJson;
  const section: s.Json = (of) => of(headgate);
  const config = documentTable({
    plugins: (of) => pluginsJson(of),
    saturationDetector,
    flowControl,
    headgate: section,
  });
  const anyOfThem = s.anything((of) => ({ anyOf: [of(config), of(objective)] }));
  return jsonSchemaOf('EndpointPickerConfig and InferenceObjective', anyOfThem);
}
