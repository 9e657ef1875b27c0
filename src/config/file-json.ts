/** The sections that several files have, plugins and flow control: what editors know of them, and how they are read. */
import { $ZodType } from 'zod/v4/core';
import type { Problems } from '../base/problems.js';
import { jsonSchemaOf } from '../base/schema/json-schema.js';
import * as s from '../base/schema/schema.js';
import type { FlowControllerOptions, PluginRegistry } from '../index.js';
import { defaultRegistry, EndpointPool, resolveOptions } from '../index.js';
import { documentTable } from './endpoint-picker-config.js';
import { flowControlTable } from './flow-control-section.js';
import { loadConfig, objective } from './load-config.js';

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

/** @internal JSON Schema of an EndpointPickerConfig, or of objectives. `headgate`: the table of that section. */
export function endpointPickerJsonSchema(headgate: s.Schema<unknown>): string {
  const flowControl: s.Json = (of) => of(flowControlTable('llm-d'));
  const { saturationDetector } = flowSectionsJson;
  const section: s.Json = (of) => of(headgate);
  const config = documentTable({ plugins: pluginsJson, saturationDetector, flowControl, headgate: section });
  const anyOfThem = s.anything((of) => ({ anyOf: [of(config), of(objective)] }));
  return jsonSchemaOf('EndpointPickerConfig and InferenceObjective', anyOfThem);
}

/** `made`: every plugin, also those inside others, which cannot be found otherwise. */
type LoadedSections = { readonly options: FlowControllerOptions; readonly made: object[] };

/** @internal Sections of an EndpointPickerConfig in a file of another kind; undefined with problems, which it notes. */
export function loadSections(
  sections: object,
  registry: PluginRegistry,
  problems: Problems,
): LoadedSections | undefined {
  const plain = (text: string): string => text.replace(/^EndpointPickerConfig: /, '');
  const made: object[] = [];
  const recording: PluginRegistry = Object.create(registry);
  recording.create = (type, parameters, references = recording) => {
    const plugin = registry.create(type, parameters, references);
    made.push(plugin);
    return plugin;
  };
  const kind = { apiVersion: 'llm-d.ai/v1alpha1', kind: 'EndpointPickerConfig', featureGates: ['flowControl'] };
  return problems.during(() => {
    const { options, warnings } = loadConfig({ ...kind, ...sections }, { registry: recording, defaults: 'headgate' });
    problems.warnings.push(...warnings.map(plain));
    resolveOptions({ ...options, pool: new EndpointPool() }, 'flowControl');
    return { options, made };
  }, plain);
}
