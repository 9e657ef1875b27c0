/** Reads a gateway file into the configuration of a gateway, or reports everything that is wrong with it. */
import { readFileSync } from 'node:fs';
import { loadConfig } from '../config/index.js';
import { readOneObject, registryOption } from '../config/read-yaml.js';
import {
  type ConfigIssue,
  defaultRegistry,
  EndpointPool,
  FlowConfigError,
  type FlowControllerOptions,
  type PluginRegistry,
  resolveOptions,
  type SaturationDetector,
  schemas,
} from '../index.js';
import { fileSchema } from './file-schema.js';
import type { GatewayConfig, SenderConfig } from './gateway-config.js';
import type { FileSender, GatewayFile } from './gateway-file.js';
import { modulesOf, withoutModules } from './plugin-modules.js';
import { readSharedState } from './read-shared-state.js';
import { resolveLimits, resolveTimeouts } from './resolve-limits.js';
import type { SecretSources } from './secrets.js';

export interface LoadGatewayConfigOptions extends Partial<SecretSources> {
  /**
   * Plugin types that the file may name; `importPlugins` returns one with those of the file's own modules.
   * @default defaultRegistry()
   */
  readonly registry?: PluginRegistry | undefined;
}

const { callable, objectWith, optional } = schemas;

const optionsSchema = schemas.object({
  registry: registryOption,
  env: optional(objectWith<SecretSources['env']>('an object of variables, such as process.env')),
  readFile: optional(callable<SecretSources['readFile']>()),
  onMissing: optional(callable<NonNullable<SecretSources['onMissing']>>()),
});

/**
 * Reads a gateway file: YAML text, or a parsed object.
 * @throws FlowConfigError that lists every problem
 * @example
 * const gateway = await createGateway(loadGatewayConfig(await readFile('gateway.yaml', 'utf8')));
 */
export function loadGatewayConfig(source: string | object, options: LoadGatewayConfigOptions = {}): GatewayConfig {
  const warnings: string[] = [];
  const issues: ConfigIssue[] = [];
  const given = schemas.parse(optionsSchema, options, 'loadGatewayConfig');
  const { env = process.env, readFile = (path) => readFileSync(path, 'utf8'), registry, onMissing } = given;
  const parsed = readOneObject(source, (issue) => issues.push(issue));
  if (parsed === undefined) throw new FlowConfigError('gateway file', issues);
  if (registry === undefined) {
    for (const { path, name } of modulesOf(parsed.plugins)) {
      issues.push({
        path,
        expected: 'plugins whose module was imported: give the option registry what importPlugins returns',
        got: name,
      });
    }
  }
  const verdict = schemas.validate(fileSchema({ env, readFile, onMissing }), parsed);
  if (!verdict.ok) issues.push(...verdict.issues);
  const flow = readFlow(parsed, registry ?? defaultRegistry(), issues, warnings);
  if (!verdict.ok) throw new FlowConfigError('gateway file', issues);
  const file = verdict.value;
  checkNames(file, issues);
  checkOperatorPaths(file, issues);
  const sharedState = readSharedState(file.sharedState, issues);
  const config = { ...resolve(file, flow, (who, at) => senderOf(who, at, file, issues), warnings), sharedState };
  if (issues.length > 0) throw new FlowConfigError('gateway file', issues);
  return config;
}

interface Flow {
  readonly options: FlowControllerOptions;
  readonly detectors: readonly SaturationDetector[];
  readonly fingerprint: string;
}

/** The sections that an EndpointPickerConfig has as well, read as one. If there are issues, the result is not used. */
function readFlow(
  file: Record<string, unknown>,
  registry: PluginRegistry,
  issues: ConfigIssue[],
  warnings: string[],
): Flow {
  const { plugins, saturationDetector, flowControl } = file;
  const heading = 'EndpointPickerConfig: ';
  const plain = (text: string): string => (text.startsWith(heading) ? text.slice(heading.length) : text);
  const sections = { plugins: withoutModules(plugins), saturationDetector, flowControl };
  const { recording, made } = remembering(registry);
  try {
    const document = {
      apiVersion: 'llm-d.ai/v1alpha1',
      kind: 'EndpointPickerConfig',
      featureGates: ['flowControl'],
      ...sections,
    };
    const { options: loaded, warnings: noted } = loadConfig(document, { registry: recording, defaults: 'headgate' });
    const options = Object(flowControl).maxBytes === undefined ? withFiniteBytes(loaded) : loaded;
    warnings.push(...noted.map(plain));
    resolveOptions({ ...options, pool: new EndpointPool() }, 'flowControl');
    return { options, detectors: made.filter(isDetector), fingerprint: JSON.stringify({ ...sections, plugins }) };
  } catch (error) {
    if (!(error instanceof FlowConfigError)) throw error;
    issues.push(...error.issues.map((issue) => ({ ...issue, path: plain(issue.path) })));
    return { options: { saturationDetector: () => 1 }, detectors: [], fingerprint: '' };
  }
}

/** Bodies wait in the memory of this process, so a file without a limit must not mean all of it. */
function withFiniteBytes(options: FlowControllerOptions): FlowControllerOptions {
  return { ...options, limits: { ...options.limits, maxBytes: 2 ** 30 } };
}

/** The registry, and every plugin that was made by it: detectors inside others cannot be found otherwise. */
function remembering(registry: PluginRegistry): { recording: PluginRegistry; made: object[] } {
  const made: object[] = [];
  const recording: PluginRegistry = Object.create(registry);
  recording.create = (type, parameters, references = recording) => {
    const plugin = registry.create(type, parameters, references);
    made.push(plugin);
    return plugin;
  };
  return { recording, made };
}

function isDetector(plugin: object): plugin is SaturationDetector {
  return 'saturation' in plugin;
}

function checkNames({ upstreams, auth, scrape }: GatewayFile, issues: ConfigIssue[]): void {
  const checkUnique = (
    names: readonly string[],
    path: (index: number) => string,
    expected: string,
    shows: boolean,
  ): void => {
    for (const [index, name] of names.entries()) {
      if (names.indexOf(name) === index) continue;
      issues.push({
        path: path(index),
        expected,
        got: shows ? JSON.stringify(name) : `that of ${path(names.indexOf(name))}`,
      });
    }
  };
  const ids = upstreams.map(({ id }) => id);
  checkUnique(ids, (index) => `upstreams[${index}].id`, 'a name that no other upstream has', true);
  const keys = (auth?.keys ?? []).map(({ key }) => key).filter((key) => key !== 'missing');
  checkUnique(keys, (index) => `auth.keys[${index}].key`, 'a key that stands only once', false);
  if (scrape?.enabled === false && Object.keys(scrape).length > 1) {
    issues.push({ path: 'scrape.enabled', expected: 'true where the section says more', got: 'false (boolean)' });
  }
}

const takenPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics', '/busy_threshold']);

/** The inspector needs a password, and paths of operators are no paths of others. */
function checkOperatorPaths({ inspector, demand, admin }: GatewayFile, issues: ConfigIssue[]): void {
  if (inspector !== undefined && inspector.password === undefined && admin?.token === undefined) {
    issues.push({
      path: 'inspector.password',
      expected: 'a password, or admin.token, which stands in for it',
      got: 'undefined',
    });
  }
  const own = [
    ['inspector.path', inspector === undefined ? undefined : (inspector.path ?? defaultInspectorPath)],
    ['demand.path', demand?.path ?? defaultDemandPath],
  ] as const;
  for (const [at, path] of own) {
    const isTaken =
      path !== undefined && (takenPaths.has(path) || path.startsWith('/v1/') || path === '/v1' || /[?#]/.test(path));
    if (isTaken)
      issues.push({ path: at, expected: 'a path that nothing else has, without a query', got: JSON.stringify(path) });
  }
  if (own[0][1] === own[1][1])
    issues.push({ path: 'demand.path', expected: 'another path than the inspector', got: JSON.stringify(own[1][1]) });
}

const defaultInspectorPath = '/inspector';
const defaultDemandPath = '/demand';

function senderOf(
  { tenant, objective, priority, trusted = false }: FileSender,
  at: string,
  file: GatewayFile,
  issues: ConfigIssue[],
): SenderConfig {
  const { objectives = {} } = file;
  if (objective !== undefined && priority !== undefined) {
    issues.push({ path: at, expected: 'only one of "objective" and "priority"', got: 'both' });
  } else if (objective !== undefined && !Object.hasOwn(objectives, objective)) {
    const known = Object.keys(objectives);
    const expected = `one of the objectives ${known.join(', ') || '(none)'}${schemas.didYouMean(objective, known)}`;
    issues.push({ path: `${at}.objective`, expected, got: JSON.stringify(objective) });
  }
  return { tenant, trusted, priority: priority ?? objectives[objective ?? ''] ?? 0 };
}

/** The sender of all requests where the file has no keys. */
const everybody: FileSender = { tenant: 'default-flow' };

function resolve(
  file: GatewayFile,
  { options: flow, detectors, fingerprint }: Flow,
  sender: (who: FileSender, at: string) => SenderConfig,
  warnings: readonly string[],
): Omit<GatewayConfig, 'sharedState'> {
  const { listen, admin, auth, scrape, health, timeouts, limits, retry, models, cors, drain, log } = file;
  const keys = (auth?.keys ?? []).map(({ key, ...who }, index) => ({ key, ...sender(who, `auth.keys[${index}]`) }));
  const anonymous = auth?.anonymous ?? (keys.length === 0 ? everybody : undefined);
  const host = listen.host ?? '127.0.0.1';
  const detector = flow.saturationDetector;
  const isScraped =
    scrape?.enabled ?? (scrape !== undefined || (typeof detector === 'object' && detector.needsPool === true));
  return {
    listen: { host, port: listen.port },
    admin: {
      listen: admin?.port === undefined ? undefined : { host: admin.host ?? host, port: admin.port },
      token: admin?.token,
      hosts: admin?.hosts ?? [],
    },
    inspector: file.inspector && {
      path: file.inspector.path ?? defaultInspectorPath,
      password: file.inspector.password ?? admin?.token ?? '',
      fairnessIds: file.inspector.fairnessIds ?? 'shown',
    },
    demand: { path: file.demand?.path ?? defaultDemandPath, token: file.demand?.token },
    openTelemetry: file.openTelemetry && {
      metrics: file.openTelemetry.metrics ?? true,
      traces: file.openTelemetry.traces ?? true,
      pool: file.openTelemetry.pool,
      fairnessIds: file.openTelemetry.fairnessIds ?? false,
    },
    upstreams: file.upstreams.map(({ id, url, labels = {}, weight = 1, metrics, healthPath, apiKey }) => {
      return { id, url, labels, weight, profile: metrics, healthPath, apiKey };
    }),
    scrape: isScraped
      ? {
          intervalMs: scrape?.interval ?? 50,
          idleIntervalMs: Math.max(scrape?.idleInterval ?? 1_000, scrape?.interval ?? 50),
          timeoutMs: scrape?.timeout ?? 1_000,
          path: scrape?.path ?? '/metrics',
          stalenessThresholdMs: scrape?.stalenessThreshold ?? 200,
        }
      : undefined,
    health: {
      intervalMs: health?.interval ?? 2_000,
      timeoutMs: health?.timeout ?? 1_000,
      failures: health?.failures ?? 3,
      successes: health?.successes ?? 1,
      whenAllSilent: health?.whenAllSilent ?? 'keep',
    },
    timeouts: resolveTimeouts(timeouts),
    limits: resolveLimits(limits),
    retry: {
      enabled: retry?.enabled ?? true,
      max: retry?.max ?? 1,
      maxBodyBytes: retry?.maxBodyBytes ?? 2 ** 20,
      avoidForMs: retry?.avoidFor ?? 5_000,
    },
    auth: { keys, anonymous: anonymous && sender(anonymous, 'auth.anonymous') },
    objectives: file.objectives ?? {},
    models: { aliases: models?.aliases ?? {}, list: models?.list },
    cors: cors && { origins: cors.origins, maxAgeMs: cors.maxAge ?? 600_000 },
    drain: { delayMs: drain?.delay ?? 3_000, waitingMs: drain?.waiting ?? 5_000, streamsMs: drain?.streams ?? 20_000 },
    log: { format: log?.format ?? 'text', requests: log?.requests ?? true, tenants: log?.tenants ?? true },
    forwarded: file.forwarded ?? 'set',
    contract: file.contract ?? 'gateway-api',
    bandHeadroom: file.bandHeadroom ?? false,
    flow,
    hasDefaultDetector:
      file.saturationDetector === undefined && Object(file.flowControl).saturationDetector === undefined,
    detectors,
    flowFingerprint: fingerprint,
    warnings,
  };
}
