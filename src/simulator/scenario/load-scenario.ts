/** Reads a scenario file into the options of a simulation, or reports all that is wrong, with line and column. */
import { isCollection, isMap, isNode, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument } from 'yaml';
import { didYouMean } from '../../base/faults/did-you-mean.js';
import { describeValue } from '../../base/faults/flow-config-error.js';
import { Problems } from '../../base/problems.js';
import * as s from '../../base/schema/schema.js';
import { loadSections } from '../../config/index.js';
import { readOneObject, registryOption } from '../../config/read-yaml.js';
import type { ConfigIssue, PluginRegistry, SaturationDetector } from '../../index.js';
import { defaultRegistry, FlowConfigError } from '../../index.js';
import { noteDetectors } from '../engine/fleet.js';
import type { ScenarioBody, SimulatedFlow, SimulationOptions } from '../engine/simulation-options.js';
import { resolveScenario, scenarioTable } from '../engine/simulation-options.js';
import { serverRoomPlugin } from '../servers/server-room-detector.js';
import { leftOut, readTrace } from '../traces/read-trace.js';
import type { TraceRow } from '../traces/trace-row.js';
import { parsePath } from './value-path.js';

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

const optionsSchema = s.object({
  readFile: s.optional(s.callable<(path: string) => string>()),
  registry: registryOption,
  rows: s.optional(s.value('rows of a trace', (given): given is readonly TraceRow[] => Array.isArray(given))),
  skipBadLines: s.optional(s.flag()),
});

const traceColumns = s.object({ columns: s.optional(s.record(s.text('a name of ours'))) });

/**
 * Reads a scenario: YAML text, or a parsed object. @throws FlowConfigError that lists every problem
 * @example
 * const { options } = loadScenario(await readFile('scenario.yaml', 'utf8'), { readFile: (path) => readFileSync(path,
 * 'utf8') }); console.log(simulate(options).all.ttft.p99Ms);
 */
export function loadScenario(source: string | object, options: LoadScenarioOptions = {}): Scenario {
  s.parse(optionsSchema, options, 'loadScenario');
  const problems = new Problems();
  const parsed = readOneObject(source, problems.sink);
  const scenario = parsed && read(withFiles(parsed, options, problems), options, problems);
  const { issues, warnings } = problems;
  if (scenario !== undefined && issues.length === 0) return { ...scenario, warnings };
  throw new FlowConfigError('scenario', typeof source === 'string' ? withPositions(source, issues) : issues);
}

/** Undefined when something is wrong. */
function read(
  file: Record<string, unknown>,
  { registry = defaultRegistry() }: LoadScenarioOptions,
  problems: Problems,
): Omit<Scenario, 'warnings'> | undefined {
  const scenarioKeys = Object.keys(scenarioTable);
  const known = [...scenarioKeys, ...flowSections];
  for (const path of Object.keys(file).filter((name) => !known.includes(name))) {
    const expected = `one of the sections ${known.join(', ')}${didYouMean(path, known)}`;
    problems.add(path, expected, 'an unknown key');
  }
  const body = partOf(file, scenarioKeys) as unknown as ScenarioBody;
  const sections = partOf(file, flowSections);
  problems.during(() => resolveScenario(body));
  readFlow(sections, registry, problems);
  if (problems.hasIssues) return undefined;
  const flow = (): SimulatedFlow => readFlow(sections, registry, new Problems()) as SimulatedFlow;
  return { options: { ...body, flow }, source: file };
}

/** Replaces names of files by their contents: `gateway: FILE`, and `file: FILE` of traces. */
function withFiles(
  { gateway, ...file }: Record<string, unknown>,
  { rows, readFile, skipBadLines }: LoadScenarioOptions,
  problems: Problems,
): Record<string, unknown> {
  const readNamed = (name: unknown, path: string): string | undefined => {
    const expected = 'the name of a file that can be read';
    if (typeof name !== 'string' || readFile === undefined)
      return problems.add(path, expected, readFile === undefined ? 'no way to read files' : describeValue(name));
    try {
      return readFile(name);
    } catch (error) {
      return problems.add(path, expected, error instanceof Error ? error.message : String(error));
    }
  };
  const withTrace = (entry: unknown, index: number): unknown => {
    const arrivals: unknown = Reflect.get(Object(entry), 'arrivals');
    const { type, file, columns: named, ...rest }: Record<string, unknown> = { ...Object(arrivals) };
    if (type !== 'trace' || file === undefined) return entry;
    const text = readNamed(file, `traffic[${index}].arrivals.file`);
    if (text === undefined) return entry;
    const trace = problems.during(
      () => {
        const { columns } = s.parse(traceColumns, named === undefined ? {} : { columns: named }, 'arrivals');
        return readTrace(text, { skipBadLines, columns });
      },
      (path) => `${String(file)}, ${path}`,
    );
    for (const note of trace === undefined ? [] : leftOut(trace)) problems.warn(`${String(file)}: `, note);
    return { ...Object(entry), arrivals: { type, ...rest, rows: trace?.rows ?? [] } };
  };
  const whole = rows === undefined ? file : { ...file, ...recordedTraffic(rows, file) };
  const traffic = Array.isArray(whole.traffic) && { traffic: whole.traffic.map(withTrace) };
  const text = gateway === undefined ? undefined : readNamed(gateway, 'gateway');
  const sink = (issue: ConfigIssue): undefined => problems.sink({ ...issue, path: `gateway: ${issue.path}` });
  const ofGateway = text === undefined ? undefined : readOneObject(text, sink);
  return { ...partOf(ofGateway ?? {}, flowSections), ...whole, ...traffic };
}

/** Makes the policies anew, and notes the detectors that are made. Undefined with problems. */
function readFlow(sections: object, given: PluginRegistry, problems: Problems): SimulatedFlow | undefined {
  const registry = given.kindOf(serverRoomPlugin.type) === undefined ? given.add(serverRoomPlugin) : given;
  const loaded = loadSections(sections, registry, problems);
  if (loaded === undefined) return undefined;
  const flow = loaded.options as SimulatedFlow;
  const isDetector = (plugin: object): plugin is SaturationDetector => 'saturation' in plugin;
  noteDetectors(flow, loaded.made.filter(isDetector));
  return flow;
}

/** The rows, for as long as they last. Clients and targets are those of the first entry of the scenario's traffic. */
function recordedTraffic(rows: readonly TraceRow[], { traffic }: { readonly traffic?: unknown }) {
  const first = { ...Object(Array.isArray(traffic) ? traffic[0] : undefined) };
  return {
    duration: (rows.at(-1)?.arrivalMs ?? 0) + 1,
    traffic: [{ arrivals: { type: 'trace', rows }, ...partOf(first, ['slo', 'client', 'sloTtft']) }],
  };
}

/** The keys that the object has, of these. */
function partOf(given: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]])));
}

/** Adds line and column of a YAML file to the paths of issues; for a missing value, those of its object. */
function withPositions(text: string, issues: readonly ConfigIssue[]): ConfigIssue[] {
  // Text that nests too deep must not be parsed: its issue has its place already.
  if (issues.every(hasPlace)) return [...issues];
  const lines = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false });
  return issues.map((issue) => {
    if (hasPlace(issue)) return issue;
    const offset = offsetOf(contents as Node | null, parsePath(issue.path) ?? []);
    const { line, col } = lines.linePos(offset);
    const place = `line ${line}, column ${col}`;
    return { ...issue, path: issue.path === '' ? place : `${place}: ${issue.path}` };
  });
}

function hasPlace({ path }: ConfigIssue): boolean {
  return /\bline \d+/.test(path);
}

/** Where the value at the path is; a list or a map that ends the path is where its key is. */
function offsetOf(root: Node | null, path: readonly (string | number)[]): number {
  let node: unknown = root;
  let offset = root?.range?.[0] ?? 0;
  for (const [depth, part] of path.entries()) {
    const isNamed = ({ key }: Pair): boolean => isScalar(key) && String(key.value) === String(part);
    const pair = isMap(node) ? node.items.find(isNamed) : undefined;
    node = pair?.value ?? (isSeq(node) ? node.items[Number(part)] : undefined);
    const isEnd = node === undefined || (isCollection(node) && depth === path.length - 1);
    const shown = pair !== undefined && isEnd ? pair.key : node;
    if (isNode(shown)) offset = shown.range?.[0] ?? offset;
  }
  return offset;
}
