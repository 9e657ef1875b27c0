import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';

export type Command =
  | ({ readonly name: 'gateway' | 'epp' } & GatewayArguments)
  | ({ readonly name: 'check' } & CheckArguments)
  | ({ readonly name: 'simulate' } & SimulateArguments)
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

export interface SimulateArguments
  extends Readonly<Record<'file' | 'find' | 'soThat' | 'from' | 'seed' | 'seeds' | 'html', string | undefined>>,
    Readonly<Record<'compare' | 'sweep', Files>>,
    Readonly<Record<'json' | 'skipBadLines', boolean>> {
  /** Our names of columns by those of the log; undefined: as the format says. */
  readonly columns: Readonly<Record<string, string>> | undefined;
}

export const help = `headgate - flow control for LLM gateways

Usage
  headgate gateway --config FILE   run a gateway
  headgate epp --config FILE       run an endpoint picker for Envoy
  headgate check FILE [--json] [--probe]
                                   check a gateway file, or an
                                   EndpointPickerConfig, and explain it
  headgate simulate FILE           run a scenario with the gateway's own
                                   controller, faster than time
  headgate schema KIND             print the JSON Schema of a gateway,
                                   an endpoint-picker or a scenario file,
                                   for editors
  headgate --help | --version

gateway, epp
  -c, --config FILE   a YAML file; - reads it from standard input
  --log-format FORMAT json or text, whatever the file says
  --import MODULE     run it first: your own plugins (its default export),
                      providers of OpenTelemetry; may be given again
  --workers N         gateway: processes that serve on one port and share the
                      limits of the file; auto: one for each core
  Signals: SIGTERM and SIGINT drain and stop, a second one stops at once;
  SIGHUP reads the file again. Logs go to standard error.

check
  --json              print the result as JSON
  --probe             also ask the servers of a gateway file whether they
                      are there and report their load
  --import MODULE     as above
  Exit status: 0 when the file is right, 1 when it has faults.

simulate
  --compare FILE      run another scenario too, and set it beside the first;
                      may be given again
  --seeds N           N runs with seeds that follow each other
  --seed N            instead of the scenario's seed
  --html FILE         write a page with charts
  --json              print the results as JSON
  --sweep PATH=VALUES a run for each value: gate.maxConcurrency=4,8,16 or
                      servers[0].slots=2..8; may be given again
  --find PATH[=A..B]  look for the values, from A to B (1..1024), for which ...
  --so-that CONDITION ... this holds: 'ttft.p99(premium) < 1s and goodput > 95%';
                      and served >= 95%, unless it speaks of served
  --from FILE         traffic from a trace or a gateway's access log, instead
                      of the scenario's; without a scenario, the log's own
                      times calibrate a model of the servers
  --map COLUMN=NAME   a column of that log is what we call NAME, such as
                      request_time=totalSeconds; may be given again
  --skip-bad-lines    leave out lines of traces that are wrong, and count them
`;

const options = {
  config: { type: 'string', short: 'c' },
  'log-format': { type: 'string' },
  import: { type: 'string', multiple: true },
  json: { type: 'boolean' },
  compare: { type: 'string', multiple: true },
  sweep: { type: 'string', multiple: true },
  find: { type: 'string' },
  'so-that': { type: 'string' },
  from: { type: 'string' },
  map: { type: 'string', multiple: true },
  seed: { type: 'string' },
  seeds: { type: 'string' },
  html: { type: 'string' },
  'skip-bad-lines': { type: 'boolean' },
  probe: { type: 'boolean' },
  workers: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

const parse = (args: string[]) => parseArgs({ args, allowPositionals: true, options });

type Values = ReturnType<typeof parse>['values'];
type Files = readonly string[];

const commands: Readonly<Record<string, (files: Files, values: Values) => Command>> = {
  gateway: (files, values) => gatewayCommand(files, values),
  epp: (files, values) => gatewayCommand(files, values, 'epp'),
  check: checkCommand,
  simulate: simulateCommand,
  schema: schemaCommand,
};

export function parseCommand(args: readonly string[]): Command {
  try {
    const { values, positionals } = parse([...args]);
    const [name, ...files] = positionals;
    if (values.help || (name === undefined && !values.version)) return { name: 'help' };
    if (name === undefined || values.version) return { name: 'version' };
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    const names = '"gateway", "epp", "check", "simulate" or "schema"';
    return command?.(files, values) ?? wrong(`expected ${names}; got "${name}"`);
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
  for (const [name, text] of Object.entries({ seed, seeds })) {
    if (text !== undefined && !/^\d{1,15}$/.test(text))
      return wrong(`--${name}: expected a number from ${name === 'seed' ? 0 : 1} up; got ${text}`);
  }
  if (seeds !== undefined && Number(seeds) < 1) return wrong(`--seeds: expected a number from 1 up; got ${seeds}`);
  const skipBadLines = values['skip-bad-lines'] === true;
  return { name: 'simulate', file, compare, sweep, find, soThat, from, seed, seeds, html, json, skipBadLines, columns };
}

const wrong = (problem: string): Command => ({ name: 'wrong', problem });
