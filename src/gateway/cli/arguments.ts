import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';

export type Command =
  | ({ readonly name: 'gateway' | 'epp' } & GatewayArguments)
  | ({ readonly name: 'check' } & CheckArguments)
  | ({ readonly name: 'simulate' } & SimulateArguments)
  | ({ readonly name: 'explain' | 'top' } & InspectArguments)
  | ({ readonly name: 'init' } & InitArguments)
  | { readonly name: 'schema'; readonly kind: SchemaKind }
  | { readonly name: 'help' | 'version' }
  | { readonly name: 'wrong'; readonly problem: string };

/** The kinds of files that editors can check. */
const schemaKinds = ['gateway', 'endpoint-picker', 'scenario'] as const;
export type SchemaKind = (typeof schemaKinds)[number];

export interface GatewayArguments {
  /** A file; `-` is standard input. */
  readonly config: string;
  /** Undefined: as the file says. */
  readonly logFormat: 'json' | 'text' | undefined;
  /** Modules that are imported first. */
  readonly modules: readonly string[];
  /** Processes that serve. */
  readonly workers: number;
}

export type CheckArguments = Readonly<{ file: string; json: boolean; probe: boolean; modules: readonly string[] }>;

/** `id` is empty for `top`. */
export type InspectArguments = Readonly<Record<'id' | 'url', string>> & Readonly<Record<'json' | 'once', boolean>>;

export type InitArguments = Readonly<Record<'upstreams' | 'tenants', Files> & Record<'file', string>> &
  Readonly<Record<'seats' | 'detector', string | undefined> & Record<'plans' | 'redis' | 'code' | 'force', boolean>>;

export interface SimulateArguments
  extends Readonly<Record<'file' | 'find' | 'soThat' | 'from' | 'seed' | 'seeds' | 'html', string | undefined>>,
    Readonly<Record<'compare' | 'sweep', Files>>,
    Readonly<Record<'json' | 'skipBadLines', boolean>> {
  /** Our names of columns by those of the log; undefined: as the format says. */
  readonly columns: Readonly<Record<string, string>> | undefined;
}

export const help = (): string => readFileSync(new URL('./help.txt', import.meta.url), 'utf8');

/** The same kind of flag by several names. */
const flags = <const O, N extends string>(option: O, ...names: readonly N[]): Readonly<Record<N, O>> =>
  Object.fromEntries(names.map((name) => [name, option])) as Record<N, O>;

const options = {
  config: { type: 'string', short: 'c' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
  ...flags({ type: 'boolean' }, 'code', 'force', 'json', 'once', 'plans', 'probe', 'redis', 'skip-bad-lines'),
  ...flags({ type: 'string' }, 'detector', 'find', 'from', 'html', 'log-format', 'seats', 'seed', 'seeds'),
  ...flags({ type: 'string' }, 'so-that', 'url', 'workers'),
  ...flags({ type: 'string', multiple: true }, 'compare', 'import', 'map', 'sweep', 'tenant', 'upstream'),
} as const;

const parse = (args: string[]) => parseArgs({ args, allowPositionals: true, options });

type Values = ReturnType<typeof parse>['values'];
type Files = readonly string[];

const commands: Readonly<Record<string, (files: Files, values: Values) => Command>> = {
  gateway: gatewayCommand,
  epp: (files, values) => gatewayCommand(files, values, 'epp'),
  check: checkCommand,
  simulate: simulateCommand,
  explain: (files, values) => inspectCommand(files, values, 'explain'),
  top: (files, values) => inspectCommand(files, values, 'top'),
  schema: schemaCommand,
  init: initCommand,
};

export function parseCommand(args: readonly string[]): Command {
  try {
    const { values, positionals } = parse([...args]);
    const [name, ...files] = positionals;
    if (values.help || (name === undefined && !values.version)) return { name: 'help' };
    if (name === undefined || values.version) return { name: 'version' };
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    return command?.(files, values) ?? wrong(`expected one of ${Object.keys(commands).join(', ')}; got "${name}"`);
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
}

function gatewayCommand(files: Files, values: Values, name: 'gateway' | 'epp' = 'gateway'): Command {
  const { config, 'log-format': logFormat, import: modules = [] } = values;
  if (config === undefined || files.length > 0) return wrong('expected --config FILE');
  if (logFormat !== undefined && logFormat !== 'json' && logFormat !== 'text')
    return wrong(`expected --log-format json or text; got "${logFormat}"`);
  if (name === 'epp' && values.workers !== undefined) return wrong('expected --workers with gateway');
  return { name, config, logFormat, modules, workers: workersOf(values.workers) };
}

const mostWorkers = 256;

/** @throws RangeError */
function workersOf(given = '1'): number {
  const count = given === 'auto' ? Math.min(mostWorkers, availableParallelism()) : Number(given);
  if (Number.isInteger(count) && count >= 1 && count <= mostWorkers) return count;
  throw new RangeError(`--workers: expected auto, or a number from 1 to ${mostWorkers}; got "${given}"`);
}

function checkCommand([file, ...more]: Files, { json = false, probe = false, import: modules = [] }: Values): Command {
  return file === undefined || more.length > 0
    ? wrong('expected check and one file')
    : { name: 'check', file, json, probe, modules };
}

function schemaCommand([given, ...others]: Files): Command {
  const kind = schemaKinds.find((each) => each === given);
  return kind === undefined || others.length > 0
    ? wrong(`expected schema and one of ${schemaKinds.join(', ')}`)
    : { name: 'schema', kind };
}

function initCommand([file, ...others]: Files, values: Values): Command {
  const { upstream: upstreams = [], tenant: tenants = [], seats, detector, ...flags } = values;
  const { plans = false, redis = false, code = false, force = false } = flags;
  if (others.length > 0) return wrong(`expected init and one file; got "${[file, ...others].join(' ')}"`);
  const named = file ?? (code ? 'flow.ts' : 'gateway.yaml');
  return { name: 'init', file: named, upstreams, tenants, seats, detector, plans, redis, code, force };
}

function inspectCommand([id = '', ...others]: Files, values: Values, name: 'explain' | 'top'): Command {
  const { url = 'http://127.0.0.1:9090', json = false, once = false } = values;
  const names = [id, ...others].filter((given) => given !== '').join(' ');
  if (name === 'top' && names !== '') return wrong(`expected top without a name; got "${names}"`);
  if (name === 'explain' && (id === '' || others.length > 0))
    return wrong(`expected explain and the x-request-id of one request; got "${names}"`);
  return { name, id, url, json, once };
}

function simulateCommand([file, ...others]: Files, values: Values): Command {
  const { compare = [], sweep = [], map = [], find, from, seed, seeds, html, json = false } = values;
  const soThat = values['so-that'];
  if ((file === undefined && from === undefined) || others.length > 0)
    return wrong('expected simulate and one scenario, or --from FILE');
  if (map.length > 0 && from === undefined) return wrong('expected --map together with --from FILE');
  const pairs = map.map((pair): readonly string[] => /^(.+)=(\w+)$/.exec(pair)?.slice(1) ?? []);
  const misread = pairs.findIndex(({ length }) => length === 0);
  if (misread >= 0) return wrong(`--map: expected COLUMN=NAME; got ${map[misread]}`);
  const columns = map.length === 0 ? undefined : Object.fromEntries(pairs);
  if ((find === undefined) !== (soThat === undefined)) return wrong('expected --find and --so-that together');
  const isFrom = (least: number, text: string): boolean => /^\d{1,15}$/.test(text) && Number(text) >= least;
  if (seed !== undefined && !isFrom(0, seed)) return wrong(`--seed: expected a number from 0 up; got ${seed}`);
  if (seeds !== undefined && !isFrom(1, seeds)) return wrong(`--seeds: expected a number from 1 up; got ${seeds}`);
  const skipBadLines = values['skip-bad-lines'] === true;
  return { name: 'simulate', file, compare, sweep, find, soThat, from, seed, seeds, html, json, skipBadLines, columns };
}

const wrong = (problem: string): Command => ({ name: 'wrong', problem });
