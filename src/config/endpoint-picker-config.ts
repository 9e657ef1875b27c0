/** An EndpointPickerConfig document: feature gates, plugins, and the options that they and `flowControl` make. */
import { didYouMean } from '../base/faults/did-you-mean.js';
import type { Problems } from '../base/problems.js';
import { option, row } from '../base/schema/json-schema.js';
import * as s from '../base/schema/schema.js';
import type { FlowControllerOptions, PluginRegistry, Schema } from '../index.js';
import { DeclaredPlugins } from './declared-plugins.js';
import type { ConfigDocument } from './documents.js';
import { type ConfigDefaults, readFlowControl, silentParameters } from './flow-control-section.js';

const apiVersions = ['llm-d.ai/v1alpha1', 'inference.networking.x-k8s.io/v1alpha1'] as const;

const gateName = 'flowControl';

const on: readonly string[] = ['1', 't', 'true'];
const off: readonly string[] = ['0', 'f', 'false'];

type FeatureGate = { readonly name: string; readonly isOn: boolean };

/** `name`, `name=true` or `name=false`. */
const featureGate: Schema<FeatureGate> = s.element((candidate, report) => {
  if (typeof candidate !== 'string' || candidate === '')
    return report(`the name of a feature gate, such as "${gateName}"`);
  const [name = '', value = 'true'] = candidate.split(/=(.*)/s);
  const word = value.trim().toLowerCase();
  const isOn = on.includes(word);
  const isKnown = isOn || off.includes(word);
  if (!isKnown) report(`"${name}", "${name}=true" or "${name}=false"`);
  const suggestion = name === gateName ? '' : didYouMean(name, [gateName]);
  if (suggestion !== '') report(`the name of a feature gate${suggestion}`);
  return !isKnown || suggestion !== '' ? undefined : { name, isOn };
});

type Section = 'plugins' | 'saturationDetector' | 'flowControl' | 'headgate';

function ownKeys(sections: Partial<Record<Section, s.Json>>) {
  return {
    apiVersion: row('`llm-d.ai/v1alpha1`, or the older one.', s.oneOf(...apiVersions)),
    kind: row('`EndpointPickerConfig`.', s.anything({ const: 'EndpointPickerConfig' })),
    metadata: row('Its name.', s.anything({ type: 'object' })),
    featureGates: row('`flowControl` switches flow control on.', s.optional(s.list(featureGate), [])),
    plugins: option('Policies and detectors.', s.value('an array', Array.isArray, sections.plugins)),
    saturationDetector: row('The older place for the detector.', s.anything(sections.saturationDetector)),
    flowControl: row('Bands, limits and policies.', s.anything(sections.flowControl)),
  };
}

/** The table of a document; the sections that are not in it are the scheduler's. */
export function documentTable(sections: Partial<Record<Section, s.Json>>): Schema<unknown> {
  const headgate = row('What `headgate epp` needs.', s.anything(sections.headgate));
  return s.openObject({ ...ownKeys(sections), headgate });
}

const own = ownKeys({});

/** The configuration that is used when no document has one. */
export const noDocument: ConfigDocument = {
  kind: 'EndpointPickerConfig',
  at: 'EndpointPickerConfig: ',
  body: { apiVersion: apiVersions[0], kind: 'EndpointPickerConfig' },
};

export function readEndpointPickerConfig(
  { at, body }: ConfigDocument,
  registry: PluginRegistry,
  defaults: ConfigDefaults,
  problems: Problems,
): { enabled: boolean; options: FlowControllerOptions } | undefined {
  const read = problems.check(s.openObject(own), body, at);
  noteOtherSections(Object.keys(body), problems, at);
  const gates = read?.featureGates ?? [];
  // The last entry for flow control decides; without one it is off.
  const enabled = gates.filter(({ name }) => name === gateName).at(-1)?.isOn ?? false;
  const others = new Set(gates.flatMap(({ name }) => (name === gateName ? [] : [name])));
  if (others.size > 0) problems.warn(at, `featureGates: not headgate's, ignored: ${[...others].join(', ')}`);
  const hasSettings = Object.keys(body.flowControl ?? {}).some((key) => key !== 'saturationDetector');
  if (!enabled && hasSettings) problems.warn(at, 'flowControl is ignored: the feature gate "flowControl" is off');

  const plugins = new DeclaredPlugins(registry, problems, at, silentParameters[defaults]);
  plugins.declareAll(Array.isArray(body.plugins) ? body.plugins : []);
  const section = readFlowControl(body.flowControl, plugins, defaults, problems, at);
  const pluginRef = plugins.reference('saturationDetector', 'utilization-detector');
  const saturationDetector =
    section?.saturationDetector ??
    problems.check(s.object({ pluginRef }), body.saturationDetector ?? {}, `${at}saturationDetector`)?.pluginRef;
  if (section?.saturationDetector !== undefined && body.saturationDetector !== undefined)
    problems.warn(at, 'saturationDetector is ignored: flowControl.saturationDetector takes its place');
  return read === undefined || section === undefined || saturationDetector === undefined
    ? undefined
    : { enabled, options: { ...section, saturationDetector } };
}

/** Sections of the scheduler get a warning, keys that look like a slip of one of ours an error. */
function noteOtherSections(keys: readonly string[], problems: Problems, at: string): void {
  const known = Object.keys(own);
  const others = keys.filter((key) => !known.includes(key));
  const ignored: string[] = [];
  for (const key of others) {
    const meant = didYouMean(key, known);
    if (meant === '') ignored.push(key);
    else problems.add(`${at}${key}`, `a known section${meant}`, 'an unknown key');
  }
  if (ignored.length > 0) problems.warn(at, `sections that are not flow control's are ignored: ${ignored.join(', ')}`);
}
