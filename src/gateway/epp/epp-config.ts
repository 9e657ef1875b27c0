/** The file of an endpoint picker: EndpointPickerConfig, objectives, model rewrites, and a section `headgate`. */
import { Problems } from '../../base/problems.js';
import { option, row } from '../../base/schema/json-schema.js';
import * as s from '../../base/schema/schema.js';
import { type LoadConfigOptions, type LoadedConfig, loadConfig } from '../../config/index.js';
import { readYaml } from '../../config/read-yaml.js';
import { type AdmissionPolicy, defaultRegistry, type FlowControllerOptions } from '../../index.js';
import type { EndpointsSource } from './follow-endpoints.js';
import type { ReportedAttribute } from './reported-attributes.js';
import { defaultParsers, parserTypes } from './request-parsers.js';
import { scorerTypes, type WeightedScorer } from './scheduling-profile.js';

const tls = s.object({ cert: s.text(), key: s.text() });
const byName = s.object({
  dns: row('A name with the address of each.', s.text()),
  port: row('Their port.', s.integer({ from: 1, to: 65_535 })),
  interval: row('Between two questions.', s.optional(s.positiveDuration('5s'), 5_000)),
});
const port = (otherwise: number): s.Schema<number> => s.optional(s.integer({ from: 0, to: 65_535 }), otherwise);

/** The section `headgate`, resolved; durations in ms. */
export interface EppSettings {
  readonly host: string;
  readonly port: number;
  readonly healthPort: number;
  readonly metricsPort: number;
  /** Paths of PEM files. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly poolName: string;
  readonly trust: boolean;
  readonly contract: 'llm-d' | 'gateway-api' | 'dynamo';
  readonly maxRequestBytes: number;
  readonly emitScores: boolean;
  /** Undefined: the plugin `file-discovery` says where they are. */
  readonly endpoints?: { readonly dns: string; readonly port: number; readonly interval: number } | undefined;
  readonly drain: number;
  readonly drainStreams: number;
  readonly logRequests: boolean;
}

/** The table of the section, with the flag of llm-d that says the same. */
export const eppSettings: s.Schema<EppSettings> = s.object({
  host: row('The address to listen on.', s.optional(s.text(), '0.0.0.0')),
  port: row('For proxies, `--grpc-port`.', port(9002)),
  healthPort: row('For health, `--grpc-health-port`.', port(9003)),
  metricsPort: row('For `/metrics` and `/readyz`, `--metrics-port`.', port(9090)),
  tls: option('PEM files, `--cert-path`; plain text without it.', tls),
  poolName: row('The label `inference_pool`, `--pool-name`.', s.optional(s.text(), 'pool')),
  trust: row('Whether the proxy removes flow headers of clients.', s.optional(s.flag(), false)),
  contract: row('Statuses of drops.', s.optional(s.oneOf('llm-d', 'gateway-api', 'dynamo'), 'llm-d')),
  maxRequestBytes: row('A longer body gets 413.', s.optional(s.quantity('16Mi'), 16_777_216)),
  emitScores: row('Whether proxies are told scores, `--emit-endpoint-scores`.', s.optional(s.flag(), false)),
  endpoints: option('The servers, instead of `file-discovery`.', byName),
  drain: row('How long requests may wait then.', s.optional(s.duration('5s'), 5_000)),
  drainStreams: row('How long answers may take then, `--drain-timeout`.', s.optional(s.duration('30s'), 30_000)),
  logRequests: row('Whether requests are logged.', s.optional(s.flag(), true)),
});

/** Requests for one model go to another. Source: llm-d, InferenceModelRewrite. */
export interface RewriteRule {
  /** Undefined: every model. */
  readonly model: string | undefined;
  readonly targets: readonly { readonly model: string; readonly weight: number }[];
}

export interface EppConfig extends Omit<LoadedConfig, 'enabled'> {
  readonly rewrites: readonly RewriteRule[];
  readonly scorers: readonly WeightedScorer[];
  readonly maxEndpoints: number;
  readonly parsers: readonly string[];
  readonly attributes: readonly ReportedAttribute[];
  readonly endpoints: EndpointsSource;
  readonly settings: EppSettings;
}

export type LoadEppConfigOptions = Pick<LoadConfigOptions, 'registry'>;

const reference = s.openObject({ pluginRef: s.text(), weight: s.optional(s.atLeastZero(), 1) });
const references = s.optional(s.list(reference), []);
const plugin = s.openObject({ type: s.text(), name: s.optional(s.text()), parameters: s.optional(s.anything()) });
const sections = s.openObject({
  plugins: s.optional(s.list(plugin), []),
  schedulingProfiles: s.optional(s.list(s.openObject({ plugins: references })), []),
  requestHandler: s.orEmpty(s.openObject({ parsers: references })),
  dataLayer: s.orEmpty(s.openObject({ discovery: s.optional(s.openObject({ pluginRef: s.text() })) })),
});
const discovery = s.object({
  path: s.text('the path of the file with the endpoints'),
  watchFile: s.optional(s.flag(), false),
});
const picker = s.openObject({ maxNumOfEndpoints: s.optional(s.positiveInteger(), 1) });
const attribute = s.object({
  key: s.object({ namespace: s.optional(s.text(), 'envoy.lb'), name: s.text() }),
  expression: s.text('an expression of CEL'),
  condition: s.optional(s.text('an expression of CEL')),
});
const reporter = s.object({ attributes: s.list(attribute) });
const rule = s.openObject({
  matches: s.optional(s.list(s.openObject({ model: s.openObject({ value: s.text() }) }))),
  targets: s.list(s.openObject({ modelRewrite: s.text(), weight: s.optional(s.atLeastZero(), 1) })),
});
const rewrite = s.openObject({ spec: s.openObject({ rules: s.list(rule) }) });

const discoveryType = 'file-discovery';
const reporterType = 'request-attribute-reporter';
const pickerTypes: readonly string[] = ['max-score-picker', 'random-picker', 'weighted-random-picker'];
/** Those of the scheduler that are read here. */
const ownTypes: readonly string[] = [...scorerTypes, ...parserTypes, ...pickerTypes, discoveryType, reporterType];

/** A pool without room rejects whoever comes, as a filter of the scheduler does that leaves no server. */
const whileThereIsRoom: AdmissionPolicy = {
  type: 'scheduling-filter',
  admit: (_request, _key, view) =>
    view.pool.endpoints.length === 0 || view.saturation() < 1
      ? 'admit'
      : { reason: 'every server that the scheduler may choose is full', cause: 'saturated' },
};

/** Reads the file of an endpoint picker. @throws FlowConfigError that lists every problem */
export function loadEppConfig(source: string, { registry = defaultRegistry() }: LoadEppConfigOptions = {}): EppConfig {
  const problems = new Problems();
  const documents = readYaml(source, problems.sink).flatMap(({ value }) => (s.isRecord(value) ? [value] : []));
  const isMain = ({ kind }: Record<string, unknown>): boolean => kind === 'EndpointPickerConfig';
  const isRewrite = ({ kind }: Record<string, unknown>): boolean => kind === 'InferenceModelRewrite';
  const main = documents.find(isMain) ?? {};
  const { headgate, schedulingProfiles: _p, requestHandler: _r, dataLayer: _d, ...rest } = main;
  const read = problems.check(sections, main, 'EndpointPickerConfig: ');
  const settings = problems.check(eppSettings, headgate ?? {}, 'headgate');
  const rulesIn = (given: object) => problems.check(rewrite, given, 'InferenceModelRewrite: ')?.spec.rules ?? [];
  const rules = documents.filter(isRewrite).flatMap(rulesIn);
  if (read === undefined || settings === undefined) throw problems.toError('endpoint picker');

  const { plugins, schedulingProfiles, requestHandler, dataLayer } = read;
  const named = new Map(plugins.map((plugin) => [plugin.name ?? plugin.type, plugin]));
  const typeOf = (reference: string): string => named.get(reference)?.type ?? reference;
  const [profile, ...others] = schedulingProfiles;
  if (others.length > 0) problems.warn('', 'schedulingProfiles: only the first one is used');
  const used = (profile?.plugins ?? []).map((each) => ({ ...each, type: typeOf(each.pluginRef) }));
  const detector = used.find(({ type }) => registry.kindOf(type) === 'saturationDetector');
  const ignored = used.filter(({ type }) => !ownTypes.includes(type) && registry.kindOf(type) === undefined);
  if (ignored.length > 0)
    problems.warn('', `schedulingProfiles: not headgate's, ignored: ${ignored.map(({ type }) => type).join(', ')}`);

  const located = named.get(dataLayer.discovery?.pluginRef ?? discoveryType)?.parameters;
  const file = settings.endpoints ?? problems.check(discovery, located ?? {}, `plugins: ${discoveryType}`);
  const chosen = used.find(({ type }) => pickerTypes.includes(type));
  const { maxNumOfEndpoints = 1 } =
    problems.check(picker, named.get(chosen?.pluginRef ?? '')?.parameters ?? {}, 'plugins: picker') ?? {};
  const reporters = plugins.filter(({ type }) => type === reporterType);
  const attributes = reporters.flatMap(
    ({ parameters }) => problems.check(reporter, parameters ?? {}, `plugins: ${reporterType}`)?.attributes ?? [],
  );
  const objects = documents.filter((each) => !isMain(each) && !isRewrite(each));
  const flow = problems.during(() => loadConfig([flowDocument(rest, detector?.pluginRef), ...objects], { registry }));
  if (flow === undefined || file === undefined || problems.hasIssues) throw problems.toError('endpoint picker');
  const { enabled, options, objectives, warnings } = flow;
  const parsers = requestHandler.parsers.map(({ pluginRef }) => typeOf(pluginRef));
  return {
    options: enabled ? options : withoutQueue(options, detector !== undefined),
    objectives,
    warnings: [...problems.warnings, ...warnings],
    rewrites: rules.map(({ matches = [], targets }) => ({
      model: matches[0]?.model.value,
      targets: targets.map(({ modelRewrite, weight }) => ({ model: modelRewrite, weight })),
    })),
    scorers: used.filter(({ type }) => scorerTypes.includes(type)),
    maxEndpoints: maxNumOfEndpoints,
    attributes,
    parsers: parsers.length === 0 ? defaultParsers : parsers,
    endpoints: 'dns' in file ? file : { path: file.path, isWatched: file.watchFile },
    settings,
  };
}

/** The document without what is the scheduler's. A detector among its filters says how full the pool is. */
function flowDocument(document: Record<string, unknown>, detector: string | undefined): object {
  const { plugins = [], flowControl, saturationDetector = detector && { pluginRef: detector }, ...rest } = document;
  const others = Array.isArray(plugins) ? plugins.filter(({ type }) => !ownTypes.includes(type)) : plugins;
  const body = { ...rest, ...(saturationDetector !== undefined && { saturationDetector }), plugins: others };
  if (!s.isRecord(flowControl)) return flowControl === undefined ? body : { ...body, flowControl };
  // llm-d's files give the template of bands a priority, which means nothing.
  const { defaultPriorityBand, ...section } = flowControl;
  const { priority: _, ...template } = s.isRecord(defaultPriorityBand) ? defaultPriorityBand : {};
  return { ...body, flowControl: { ...section, defaultPriorityBand: template } };
}

/** Without the feature gate nothing waits: sheddable requests are rejected while the pool is full, others go. */
function withoutQueue({ saturationDetector }: FlowControllerOptions, isFiltered: boolean): FlowControllerOptions {
  return {
    saturationDetector,
    mode: 'admission',
    ...(isFiltered ? { admission: whileThereIsRoom, headroom: 'required' } : { headroom: 'preferred' }),
  };
}
