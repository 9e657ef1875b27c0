/** The arguments of the command line. */
import { parseArgs } from 'node:util';

export type Command =
  | ({ readonly name: 'gateway' } & GatewayArguments)
  | { readonly name: 'check'; readonly file: string; readonly json: boolean }
  | { readonly name: 'help' | 'version' }
  | { readonly name: 'wrong'; readonly problem: string };

export interface GatewayArguments {
  readonly config: string;
  /** Undefined: as the file says. */
  readonly logFormat: 'json' | 'text' | undefined;
}

export const help = `headgate - flow control for LLM gateways

Usage
  headgate gateway --config FILE   run a gateway
  headgate check FILE [--json]     check a gateway file, or an
                                   EndpointPickerConfig, and explain it
  headgate --help | --version

gateway
  -c, --config FILE   a YAML file; - reads it from standard input
  --log-format FORMAT json or text, whatever the file says
  Signals: SIGTERM and SIGINT drain and stop, a second one stops at once;
  SIGHUP reads the file again. Logs go to standard error.

check
  --json              print the result as JSON
  Exit status: 0 when the file is right, 1 when it has faults.
`;

export function parseCommand(args: readonly string[]): Command {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        config: { type: 'string', short: 'c' },
        'log-format': { type: 'string' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
      },
    });
    const [name, ...files] = positionals;
    if (values.help || (name === undefined && !values.version)) return { name: 'help' };
    if (values.version) return { name: 'version' };
    if (name === 'gateway') return gatewayCommand(values.config, values['log-format'], files);
    if (name === 'check') return checkCommand(files, values.json === true);
    return wrong(`expected "gateway" or "check"; got "${name}"`);
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
}

function gatewayCommand(config: string | undefined, logFormat: string | undefined, files: readonly string[]): Command {
  if (config === undefined || files.length > 0) return wrong('expected gateway --config FILE');
  if (logFormat !== undefined && logFormat !== 'json' && logFormat !== 'text') {
    return wrong(`expected --log-format json or text; got "${logFormat}"`);
  }
  return { name: 'gateway', config, logFormat };
}

function checkCommand([file, ...others]: readonly string[], json: boolean): Command {
  return file === undefined || others.length > 0 ? wrong('expected check and one file') : { name: 'check', file, json };
}

function wrong(problem: string): Command {
  return { name: 'wrong', problem };
}
