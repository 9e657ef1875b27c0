#!/usr/bin/env node
/** `headgate`: the command. */
import { readFileSync } from 'node:fs';
import { help, parseCommand } from './arguments.js';

async function main(): Promise<number> {
  const command = parseCommand(process.argv.slice(2));
  switch (command.name) {
    case 'help':
      process.stdout.write(help);
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
    case 'schema':
      return (await import('./commands.js')).runSchema(command);
    case 'simulate':
      return (await import('./commands.js')).runSimulate(command);
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

main().then(
  (status) => {
    process.exitCode = status;
    // A gateway that has stopped must not keep the process.
    if (status === 0) setImmediate(() => process.exit());
  },
  (error: unknown) => {
    const advice = 'headgate: expected the package yaml: npm install yaml';
    process.stderr.write(`${isYamlMissing(error) ? advice : String(error)}\n`);
    process.exitCode = 1;
  },
);
