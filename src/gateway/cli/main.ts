#!/usr/bin/env node
/** `headgate`: the command. */
import { readFileSync } from 'node:fs';
import { type Command, help, parseCommand } from './arguments.js';
import { runExplain } from './inspect/run-explain.js';
import { runTop } from './inspect/run-top.js';

/** Resolves to the exit status. */
async function run(command: Command): Promise<number> {
  switch (command.name) {
    case 'help':
      process.stdout.write(help());
      return 0;
    case 'version':
      process.stdout.write(
        `${JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version}\n`,
      );
      return 0;
    case 'gateway':
      return (await import('./commands.js')).runGateway(command);
    case 'epp':
      return (await import('./commands.js')).runEpp(command);
    case 'check':
      return (await import('./commands.js')).runCheck(command);
    case 'init':
      return (await import('./commands.js')).runInit(command);
    case 'schema':
      return (await import('./commands.js')).runSchema(command);
    case 'simulate':
      return (await import('./commands.js')).runSimulate(command);
    case 'explain':
      return runExplain(command);
    case 'top':
      return runTop(command);
    case 'wrong':
      process.stderr.write(`headgate: ${command.problem}\nheadgate --help tells more.\n`);
      return 1;
  }
}

/** Files are read by the package `yaml`, which is optional for the library. */
function isYamlMissing(error: unknown): boolean {
  const { code, message = '' }: { code?: string; message?: string } = Object(error);
  return code === 'ERR_MODULE_NOT_FOUND' && message.includes("'yaml'");
}

run(parseCommand(process.argv.slice(2))).then(
  (status) => {
    process.exitCode = status;
    // A gateway that has stopped must not keep the process.
    if (status === 0) setImmediate(() => process.exit());
  },
  (error: unknown) => {
    // Faults of input, and of files and addresses, have a code; others are faults of the command.
    const told = 'code' in Object(error) ? `headgate: ${Object(error).message}` : String(error);
    process.stderr.write(`${isYamlMissing(error) ? 'headgate: expected the package yaml: npm install yaml' : told}\n`);
    process.exitCode = 1;
  },
);
