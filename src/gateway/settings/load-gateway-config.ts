/** Reads a gateway file into the configuration of a gateway, or reports everything that is wrong with it. */
import { readFileSync } from 'node:fs';
import { groupLabel } from '../../base/endpoint-turns.js';
import { didYouMean } from '../../base/faults/did-you-mean.js';
import { Problems } from '../../base/problems.js';
import * as s from '../../base/schema/schema.js';
import { loadSections } from '../../config/index.js';
import { readOneObject, registryOption } from '../../config/read-yaml.js';
import { type Constraint, defaultRegistry, type PluginRegistry, type SaturationDetector } from '../../index.js';
import { type FileSender, fileSchema, type GatewayFile } from './file-schema.js';
import type { GatewayConfig, SenderConfig } from './gateway-config.js';
import { type BudgetsSection, planBudgets, withPlans } from './plan-budgets.js';
import { modulesOf, withoutModules } from './plugin-modules.js';
import type { SecretSources } from './secrets.js';

export interface LoadGatewayConfigOptions extends Partial<SecretSources> {
  /** Plugin types that the file may name; `importPlugins` adds those of its own modules. @default defaultRegistry() */
  readonly registry?: PluginRegistry | undefined;
}

const subject = 'gateway file';

const optionsSchema = s.object({
  registry: registryOption,
  env: s.optional(s.objectWith<SecretSources['env']>('an object of variables, such as process.env')),
  readFile: s.optional(s.callable<SecretSources['readFile']>()),
  onMissing: s.optional(s.callable<NonNullable<SecretSources['onMissing']>>()),
});

/**
 * Reads a gateway file: YAML text, or a parsed object. @throws FlowConfigError that lists every problem
 * @example const gateway = await createGateway(loadGatewayConfig(await readFile('gateway.yaml', 'utf8')));
 */
export function loadGatewayConfig(source: string | object, options: LoadGatewayConfigOptions = {}): GatewayConfig {
  const problems = new Problems();
  const given = s.parse(optionsSchema, options, 'loadGatewayConfig');
  const { env = process.env, readFile = (path) => readFileSync(path, 'utf8'), registry, onMissing } = given;
  const parsed = readOneObject(source, problems.sink);
  if (parsed === undefined) throw problems.toError(subject);
  if (registry === undefined) {
    const expected = 'plugins whose module was imported: give the option registry what importPlugins returns';
    for (const { path, name } of modulesOf(parsed.plugins)) problems.add(path, expected, name);
  }
  const file = problems.check(fileSchema({ env, readFile, onMissing }, parsed), parsed);
  const flow = readFlow(parsed, file?.budgets, registry ?? defaultRegistry(), problems);
  if (file === undefined) throw problems.toError(subject);
  checkNames(file, problems);
  if (flow !== undefined) checkGroups(flow.flow, file, problems);
  const { scrape } = parsed;
  if (file.scrape.enabled === false && Object.keys(Object(scrape)).length > 1)
    problems.add('scrape.enabled', 'true where the section says more', 'false (boolean)');
  checkOperatorPaths(file, problems);
  const needsScraping = scrape !== undefined || Object(flow?.flow.saturationDetector).needsPool === true;
  const sections = resolve(file, needsScraping, problems);
  if (flow === undefined || problems.hasIssues) throw problems.toError(subject);
  return { ...flow, ...sections, warnings: problems.warnings };
}

type Flow = Pick<GatewayConfig, 'flow' | 'hasDefaultDetector' | 'detectors' | 'constraints' | 'flowFingerprint'>;

/** The sections that an EndpointPickerConfig has as well; undefined when they have problems. */
function readFlow(
  file: Record<string, unknown>,
  budgets: BudgetsSection | undefined,
  registry: PluginRegistry,
  problems: Problems,
): Flow | undefined {
  const { plugins, saturationDetector, flowControl: given, auth } = file;
  const flowControl = withPlans(given, auth, budgets, problems);
  const sections = { plugins: withoutModules(plugins), saturationDetector, flowControl };
  const loaded = loadSections(sections, registry, problems);
  const ofPlans = budgets && planBudgets(budgets, flowControl, problems);
  if (loaded === undefined) return undefined;
  const { options, made } = loaded;
  if (ofPlans !== undefined) {
    made.push(ofPlans);
    options.constraints = [...(options.constraints ?? []), ofPlans];
  }
  return {
    // Bodies wait in the memory of this process, so a file without a limit must not mean all of it.
    flow: {
      ...options,
      ...(Object(flowControl).maxBytes === undefined && { limits: { ...options.limits, maxBytes: 2 ** 30 } }),
    },
    hasDefaultDetector: saturationDetector === undefined && Object(flowControl).saturationDetector === undefined,
    detectors: made.filter((plugin): plugin is SaturationDetector => 'saturation' in plugin),
    constraints: made.filter((plugin): plugin is Constraint => 'withRoomFor' in plugin),
    flowFingerprint: JSON.stringify({ ...sections, plugins, ...budgets, file: '', headers: '' }),
  };
}

function checkNames({ upstreams, auth }: GatewayFile, problems: Problems): void {
  const checkUnique = (names: readonly string[], path: (index: number) => string, expected: string, shows: boolean) => {
    for (const [index, name] of names.entries()) {
      const first = names.indexOf(name);
      if (first < index) problems.add(path(index), expected, shows ? JSON.stringify(name) : `that of ${path(first)}`);
    }
  };
  const ids = upstreams.map(({ id }) => id);
  checkUnique(ids, (index) => `upstreams[${index}].id`, 'a name that no other upstream has', true);
  const keys = auth.keys.map(({ key }) => key).filter((key) => key !== 'missing');
  checkUnique(keys, (index) => `auth.keys[${index}].key`, 'a key that stands only once', false);
}

/** Each group of servers that a band names has an upstream. */
function checkGroups(flow: GatewayConfig['flow'], { upstreams }: GatewayFile, problems: Problems): void {
  const known = [...new Set(upstreams.flatMap(({ labels }) => labels[groupLabel] ?? []))];
  const bands = flow.bands?.map((band, index) => [`priorityBands[${index}]`, band] as const) ?? [];
  const templates = { defaultPriorityBand: flow.defaultBand, defaultNegativePriorityBand: flow.defaultNegativeBand };
  for (const [at, band] of [...bands, ...Object.entries(templates)]) {
    for (const [index, turn] of band?.endpoints?.entries() ?? []) {
      const group = typeof turn === 'string' ? turn : turn.group;
      if (known.includes(group)) continue;
      const expected = `one of the groups ${known.join(', ') || '(none)'} (label ${groupLabel} of an upstream)`;
      const path = `flowControl.${at}.endpoints[${index}]`;
      problems.add(path, expected + didYouMean(group, known), JSON.stringify(group));
    }
  }
}

const takenPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics', '/busy_threshold']);

/** The inspector needs a password, and paths of operators are no paths of others. */
function checkOperatorPaths({ inspector, demand, admin }: GatewayFile, problems: Problems): void {
  if (inspector !== undefined && inspector.password === undefined && admin.token === undefined)
    problems.add('inspector.password', 'a password, or admin.token, which stands in for it', 'undefined');
  for (const [at, path] of Object.entries({ 'inspector.path': inspector?.path ?? '', 'demand.path': demand.path })) {
    if (takenPaths.has(path) || /^\/v1(?:\/|$)|[?#]/.test(path))
      problems.add(at, 'a path that nothing else has, without a query', JSON.stringify(path));
  }
  if (inspector?.path === demand.path)
    problems.add('demand.path', 'another path than the inspector', JSON.stringify(demand.path));
}

/** The priority that an objective stands for; 0 for one that is not there, which is a fault. */
function priorityOf(objective: string, at: string, { objectives }: GatewayFile, problems: Problems): number {
  if (!Object.hasOwn(objectives, objective)) {
    const known = Object.keys(objectives);
    const expected = `one of the objectives ${known.join(', ') || '(none)'}${didYouMean(objective, known)}`;
    problems.add(at, expected, JSON.stringify(objective));
  }
  return objectives[objective] ?? 0;
}

function senderOf(sender: FileSender, at: string, file: GatewayFile, problems: Problems): SenderConfig {
  const { tenant, objective, priority, maxPriority, trusted } = sender;
  if (objective !== undefined && priority !== undefined)
    problems.add(at, 'only one of "objective" and "priority"', 'both');
  const named = objective === undefined ? 0 : priorityOf(objective, `${at}.objective`, file, problems);
  return { tenant, trusted, priority: priority ?? named, maxPriority };
}

/** Undefined for servers of which it is not known. */
function rankOf(at: string, upstream: GatewayFile['upstreams'][number], file: GatewayFile, problems: Problems) {
  const { priority: told, metrics } = upstream;
  if (told === 'auto') return metrics === 'vllm' || metrics === 'sglang' ? metrics : undefined;
  if (typeof told !== 'object') return told;
  const ranks = Object.entries(told.map).map(([objective, rank]) => {
    return { rank, priority: priorityOf(objective, `${at}.${objective}`, file, problems) };
  });
  if (ranks.length === 0) problems.add(at, 'an object with at least one objective', '{}');
  return { field: told.field, ranks: ranks.sort((a, b) => b.priority - a.priority) };
}

/** The sender of all requests where the file has no keys. */
const everybody: FileSender = { tenant: 'default-flow', trusted: false };

type Sections = Omit<GatewayConfig, keyof Flow | 'warnings'>;

/** The settings of all sections, also those that depend on other sections. */
function resolve(file: GatewayFile, needsScraping: boolean, problems: Problems): Sections {
  const { admin, inspector, auth, scrape, ...settled } = file;
  const { host = file.listen.host, port, ...operators } = admin;
  const { enabled = needsScraping, ...scraping } = scrape;
  const keys = auth.keys.map(({ key, ...who }, index) => {
    return { key, ...senderOf(who, `auth.keys[${index}]`, file, problems) };
  });
  const tiers = Object.entries(file.serviceTiers).map(([tier, objective]) => {
    return [tier, priorityOf(objective, `serviceTiers.${tier}`, file, problems)];
  });
  const classes = file.policyClasses.map((name, index) => {
    return [priorityOf(name, `policyClasses[${index}]`, file, problems), name] as const;
  });
  const anonymous = auth.anonymous ?? (keys.length === 0 ? everybody : undefined);
  return {
    ...settled,
    admin: { ...operators, listen: port === undefined ? undefined : { host, port } },
    upstreams: file.upstreams.map((upstream, i) => {
      return { ...upstream, priority: rankOf(`upstreams[${i}].priority.map`, upstream, file, problems) };
    }),
    serviceTiers: Object.fromEntries(tiers),
    policyClasses: new Map(classes),
    inspector: inspector && { ...inspector, password: inspector.password ?? admin.token ?? '' },
    scrape: enabled ? { ...scraping, idleInterval: Math.max(scraping.idleInterval, scraping.interval) } : undefined,
    auth: { keys, anonymous: anonymous && senderOf(anonymous, 'auth.anonymous', file, problems) },
  };
}
