/**
 * Reads a scenario file into the options of a simulation, or reports everything that is wrong with it, with line and
 * column.
 */
import { didYouMean } from '../../base/faults/did-you-mean.js';
import { describeValue } from '../../base/faults/flow-config-error.js';
import { object, record } from '../../base/schema/containers.js';
import { callable, optional, value } from '../../base/schema/element.js';
import { parse } from '../../base/schema/parse.js';
import { flag, text } from '../../base/schema/types.js';
import { loadConfig } from '../../config/index.js';
import { readOneObject, registryOption } from '../../config/read-yaml.js';
import {
  type ConfigIssue,
  defaultRegistry,
  EndpointPool,
  FlowConfigError,
  type PluginRegistry,
  resolveOptions,
  type SaturationDetector,
} from '../../index.js';
import { noteDetectors } from '../engine/fleet.js';
import {
  resolveScenario,
  type ScenarioBody,
  type SimulatedFlow,
  type SimulationOptions,
  scenarioKeys,
} from '../engine/simulation-options.js';
import { serverRoomPlugin } from '../servers/server-room-detector.js';
import { leftOut, readTrace } from '../traces/read-trace.js';
import type { TraceRow } from '../traces/trace-row.js';
import { withPositions } from './issue-positions.js';
import { recordedTraffic } from './recorded-traffic.js';

export interface LoadScenarioOptions {
  /** Reads traces and gateway files that the scenario names. @default they cannot be read */
  readonly readFile?: ((path: string) => string) | undefined;
  /** Plugin types that the file may name. @default defaultRegistry() */
  readonly registry?: PluginRegistry | undefined;
  /** Recorded traffic that takes the place of the scenario's, which need not have any then. @default none */
  readonly rows?: readonly TraceRow[] | undefined;
  /** Leave out lines of traces that are wrong, and count them. @default false */
  readonly skipBadLines?: boolean | undefined;
}

export interface Scenario {
  /** For `simulate`. Call it for each run: each gets policies of its own. */
  readonly options: SimulationOptions;
  /** The file as it was read, traces included: for `withScenarioValue`. */
  readonly source: Readonly<Record<string, unknown>>;
  /** Settings that are valid but probably not intended, and lines of traces that were left out; one sentence each. */
  readonly warnings: readonly string[];
}

/** The sections that a gateway file has as well. */
const flowSections = ['plugins', 'saturationDetector', 'flowControl'] as const;
const heading = 'EndpointPickerConfig: ';

const optionsSchema = object({
  readFile: optional(callable<(path: string) => string>()),
  registry: registryOption,
  rows: optional(value('rows of a trace', (given): given is readonly TraceRow[] => Array.isArray(given))),
  skipBadLines: optional(flag()),
});

const traceColumns = object({ columns: optional(record(text('a name of ours'))) });

/**
 * Reads a scenario: YAML text, or a parsed object.
 * @throws FlowConfigError that lists every problem
 * @example
 * const { options } = loadScenario(await readFile('scenario.yaml', 'utf8'), { readFile: (path) => readFileSync(path,
 * 'utf8') }); console.log(simulate(options).all.ttft.p99Ms);
 */
export function loadScenario(source: string | object, options: LoadScenarioOptions = {}): Scenario {
  parse(optionsSchema, options, 'loadScenario');
  const issues: ConfigIssue[] = [];
  const warnings: string[] = [];
  const parsed = readOneObject(source, (issue) => issues.push(issue));
  const file = parsed === undefined ? undefined : withFiles(parsed, options, issues, warnings);
  const scenario = file === undefined ? undefined : read(file, options, issues, warnings);
  if (scenario !== undefined && issues.length === 0) return { ...scenario, warnings };
  throw new FlowConfigError('scenario', typeof source === 'string' ? withPositions(source, issues) : issues);
}

function read(
  file: Record<string, unknown>,
  { registry = defaultRegistry() }: LoadScenarioOptions,
  issues: ConfigIssue[],
  warnings: string[],
): Omit<Scenario, 'warnings'> | undefined {
  const known = [...scenarioKeys, ...flowSections];
  for (const key of Object.keys(file).filter((name) => !known.includes(name))) {
    issues.push({
      path: key,
      expected: `one of the sections ${known.join(', ')}${didYouMean(key, known)}`,
      got: 'an unknown key',
    });
  }
  const body = Object.fromEntries(
    Object.entries(file).filter(([key]) => scenarioKeys.includes(key)),
  ) as unknown as ScenarioBody;
  const sections = Object.fromEntries(
    flowSections.flatMap((key) => (file[key] === undefined ? [] : [[key, file[key]]])),
  );
  collect(issues, () => resolveScenario(body));
  collect(issues, () => {
    const { warnings: noted } = readFlow(sections, registry);
    warnings.push(...noted.map(plain));
  });
  if (issues.length > 0) return undefined;
  return { options: { ...body, flow: () => readFlow(sections, registry).flow }, source: file };
}

/** Makes the policies anew, and notes the detectors that are made: those inside others cannot be found later. */
function readFlow(sections: object, given: PluginRegistry): { flow: SimulatedFlow; warnings: readonly string[] } {
  const registry = given.kindOf(serverRoomPlugin.type) === undefined ? given.add(serverRoomPlugin) : given;
  const detectors: SaturationDetector[] = [];
  const recording: PluginRegistry = Object.create(registry);
  recording.create = (type, parameters, references = recording) => {
    const plugin = registry.create(type, parameters, references);
    if ('saturation' in plugin) detectors.push(plugin);
    return plugin;
  };
  const document = {
    apiVersion: 'llm-d.ai/v1alpha1',
    kind: 'EndpointPickerConfig',
    featureGates: ['flowControl'],
    ...sections,
  };
  const { options, warnings } = loadConfig(document, { registry: recording, defaults: 'headgate' });
  resolveOptions({ ...options, pool: new EndpointPool() }, 'flowControl');
  const flow = options as SimulatedFlow;
  noteDetectors(flow, detectors);
  return { flow, warnings };
}

/** Replaces names of files by their contents: `gateway: FILE`, and `file: FILE` of traces. */
function withFiles(
  { gateway, ...file }: Record<string, unknown>,
  options: LoadScenarioOptions,
  issues: ConfigIssue[],
  warnings: string[],
): Record<string, unknown> {
  const { rows } = options;
  if (rows !== undefined) Object.assign(file, recordedTraffic(rows, file));
  const traffic = Array.isArray(file.traffic) ? file.traffic : undefined;
  const withRows = traffic?.map((entry: unknown, index) =>
    withTrace(entry, `traffic[${index}].arrivals`, options, issues, warnings),
  );
  const sections = gateway === undefined ? {} : gatewaySections(gateway, options, issues);
  return { ...sections, ...file, ...(withRows !== undefined && { traffic: withRows }) };
}

function gatewaySections(
  gateway: unknown,
  options: LoadScenarioOptions,
  issues: ConfigIssue[],
): Record<string, unknown> {
  const text = readNamed(gateway, 'gateway', options, issues);
  const file =
    text === undefined
      ? undefined
      : readOneObject(text, (issue) => issues.push({ ...issue, path: `gateway: ${issue.path}` }));
  return Object.fromEntries(flowSections.flatMap((key) => (file?.[key] === undefined ? [] : [[key, file[key]]])));
}

function withTrace(
  entry: unknown,
  at: string,
  options: LoadScenarioOptions,
  issues: ConfigIssue[],
  warnings: string[],
): unknown {
  const arrivals: unknown = Reflect.get(Object(entry), 'arrivals');
  const { type, file, columns: named, ...rest }: Record<string, unknown> = { ...Object(arrivals) };
  if (type !== 'trace' || file === undefined) return entry;
  const text = readNamed(file, `${at}.file`, options, issues);
  if (text === undefined) return entry;
  try {
    const { columns } = parse(traceColumns, named === undefined ? {} : { columns: named }, 'arrivals');
    const trace = readTrace(text, { skipBadLines: options.skipBadLines, columns });
    warnings.push(...leftOut(trace).map((note) => `${String(file)}: ${note}`));
    return { ...Object(entry), arrivals: { type, ...rest, rows: trace.rows } };
  } catch (error) {
    if (!(error instanceof FlowConfigError)) throw error;
    issues.push(...error.issues.map((issue) => ({ ...issue, path: `${String(file)}, ${issue.path}` })));
    return { ...Object(entry), arrivals: { type, ...rest, rows: [] } };
  }
}

function readNamed(
  name: unknown,
  path: string,
  { readFile }: LoadScenarioOptions,
  issues: ConfigIssue[],
): string | undefined {
  const expected = 'the name of a file that can be read';
  if (typeof name !== 'string' || readFile === undefined) {
    issues.push({ path, expected, got: readFile === undefined ? 'no way to read files' : describeValue(name) });
    return undefined;
  }
  try {
    return readFile(name);
  } catch (error) {
    issues.push({ path, expected, got: error instanceof Error ? error.message : String(error) });
    return undefined;
  }
}

function collect(issues: ConfigIssue[], action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof FlowConfigError)) throw error;
    issues.push(...error.issues.map((issue) => ({ ...issue, path: plain(issue.path) })));
  }
}

function plain(path: string): string {
  return path.startsWith(heading) ? path.slice(heading.length) : path;
}
