/** Reads configuration files into the options of a FlowController. */
import { Problems } from '../base/problems.js';
import * as s from '../base/schema/schema.js';
import { defaultRegistry, type FlowControllerOptions, type PluginRegistry, type Schema } from '../index.js';
import { type ConfigDocument, type ConfigSource, readDocuments } from './documents.js';
import { noDocument, readEndpointPickerConfig } from './endpoint-picker-config.js';
import type { ConfigDefaults } from './flow-control-section.js';
import { registryOption } from './read-yaml.js';

/** What a file is read with. */
export interface LoadConfigOptions {
  /** Plugin types that files may name. @default defaultRegistry() */
  registry?: PluginRegistry | undefined;
  /**
   * The meaning of a file that is silent. `llm-d`: `global-strict-fairness-policy`, `overflow: reject`, and
   * `queueDepthThreshold: 5`. `headgate`: `round-robin-fairness-policy`, `overflow: fair`, and what stands in code.
   * @default 'llm-d'
   */
  defaults?: ConfigDefaults | undefined;
}

export interface LoadedConfig {
  /** For the FlowController; add what no file can hold, such as the pool. */
  readonly options: FlowControllerOptions;
  /** InferenceObjective name → priority. */
  readonly objectives: Map<string, number>;
  /** Whether the feature gate `flowControl` is on; off unless a file says so. */
  readonly enabled: boolean;
  /** Settings that are valid but probably not intended; one sentence each. */
  readonly warnings: readonly string[];
}

const schema = s.object({ registry: registryOption, defaults: s.optional(s.oneOf('llm-d', 'headgate'), 'llm-d') });

/**
 * Reads one EndpointPickerConfig and any number of InferenceObjective documents.
 * @throws FlowConfigError that lists every problem of every document, or those of the options
 * @example
 * const { options, objectives, enabled, warnings } = loadConfig(await readFile('gateway.yaml', 'utf8'));
 * const flow = new FlowController({ ...options, pool });
 */
export function loadConfig(source: ConfigSource, options: LoadConfigOptions = {}): LoadedConfig {
  const { registry = defaultRegistry(), defaults } = s.parse(schema, options, 'loadConfig');
  const problems = new Problems();
  const documents = readDocuments(source, problems);
  const configs = documents.filter(({ kind }) => kind === 'EndpointPickerConfig');
  const objectives = documents.filter(({ kind }) => kind === 'InferenceObjective');
  for (const document of documents) {
    if (!configs.includes(document) && !objectives.includes(document))
      problems.warn(document.at, 'documents of this kind are ignored');
  }
  for (const { at } of configs.slice(1)) problems.add(`${at}kind`, 'only one EndpointPickerConfig', 'another one');
  const [document = noDocument] = configs;
  if (document === noDocument) problems.warn(noDocument.at, 'there is none; defaults apply, and flow control is off');
  const config = readEndpointPickerConfig(document, registry, defaults, problems);
  const priorities = readObjectives(objectives, problems);
  if (config === undefined || problems.hasIssues) throw problems.toError('configuration');
  return { ...config, objectives: priorities, warnings: problems.warnings };
}

/** An InferenceObjective: a name that requests may carry, and the priority that it stands for. */
export const objective: Schema<Objective> = s.openObject({
  apiVersion: s.oneOf('inference.networking.x-k8s.io/v1alpha2', 'llm-d.ai/v1alpha2'),
  metadata: s.openObject({ name: s.text('the name of the objective') }),
  // The pool is the deployment's business; here one controller stands for one pool.
  spec: s.optional(s.object({ priority: s.optional(s.integer()), poolRef: s.anything() })),
});

interface Objective {
  readonly metadata: { readonly name: string };
  readonly spec?: { readonly priority?: number | undefined } | undefined;
}

/** Objective name → priority; an objective without one has 0. */
function readObjectives(documents: readonly ConfigDocument[], problems: Problems): Map<string, number> {
  const objectives = new Map<string, number>();
  for (const { at, body } of documents) {
    const read = problems.check(objective, body, at);
    if (read === undefined) continue;
    const { name } = read.metadata;
    if (objectives.has(name))
      problems.add(`${at}metadata.name`, 'a name that no other InferenceObjective has', JSON.stringify(name));
    objectives.set(name, read.spec?.priority ?? 0);
  }
  return objectives;
}
