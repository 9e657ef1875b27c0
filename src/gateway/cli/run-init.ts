/**
 * `headgate init`: what stands in front of what? Writes a gateway file for the answers, every line explained, and has
 * `check` read it. Asks on a terminal for what the arguments do not say.
 */
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import type { InitArguments } from './arguments.js';
import { runCheck } from './run-check.js';

type Answers = Pick<InitArguments, 'servers' | 'seats' | 'tenants'>;

/** Returns the exit status. */
export async function runInit(given: InitArguments): Promise<number> {
  const { file, isForced } = given;
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const { servers, seats, tenants } = isTerminal ? await ask(given) : given;
  const variables = tenants.map(variableOf);
  const wrong =
    problemOf({ servers, seats, tenants }) ??
    (new Set(variables).size < tenants.length ? 'tenants whose names differ in letters and digits' : undefined);
  if (wrong !== undefined) return failed(`expected ${wrong}`);
  try {
    writeFileSync(file, gatewayFile(file, { servers, seats, tenants }), { flag: isForced ? 'w' : 'wx' });
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST';
    return failed(isThere ? `${file} is there already: --force replaces it` : String(error));
  }
  // The file names the variables; the check needs a text in each.
  for (const variable of variables) process.env[variable] ??= `of ${variable}, which is not set yet`;
  const status = await runCheck({ file, json: false, probe: true, modules: [] });
  const set = variables.map((variable) => `${variable}=… `).join('');
  if (status === 0) process.stdout.write(`\nTo run it:\n  ${set}npx headgate gateway --config ${file}\n`);
  return status;
}

async function ask({ servers, seats, tenants }: InitArguments): Promise<Answers> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const listed = async (question: string): Promise<string[]> =>
    (await terminal.question(`${question}: `)).split(/[\s,]+/).filter((part) => part !== '');
  try {
    return {
      servers: servers.length > 0 ? servers : await listed('Addresses of the model servers, http://host:port'),
      seats: seats ?? seatsOf((await listed('Requests that each works on at a time (empty: its own figures tell)'))[0]),
      tenants: tenants.length > 0 ? tenants : await listed('Names of tenants (empty: everybody is one)'),
    };
  } finally {
    terminal.close();
  }
}

/** NaN for what is no number. */
const seatsOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));

function problemOf({ servers, seats, tenants }: Answers): string | undefined {
  if (servers.length === 0) return '--server URL, the address of a model server; may be given again';
  if (seats !== undefined && !(Number.isInteger(seats) && seats > 0))
    return `--seats, an integer from 1 up; got ${seats}`;
  const odd = tenants.find((tenant) => !/^[\w.@-]{1,100}$/.test(tenant));
  return odd && `--tenant, a name of letters, digits, ".", "_", "-" and "@"; got ${JSON.stringify(odd)}`;
}

function failed(problem: string): number {
  process.stderr.write(`headgate: ${problem}\n`);
  return 1;
}

const variableOf = (tenant: string): string => `${tenant.toUpperCase().replace(/\W/g, '_')}_KEY`;

function gatewayFile(file: string, { servers, seats, tenants }: Answers): string {
  const keys = tenants.map(
    (tenant) => `    - { key: { env: ${variableOf(tenant)} }, tenant: ${JSON.stringify(tenant)}, priority: 0 }`,
  );
  const auth = `
# One key for each tenant, as bearer token; here its name in the environment. Tenants take turns, each request counts
# one. A higher priority goes first, whoever waits below. Who has no key gets 401.
auth:
  keys:
${keys.join('\n')}
`;
  const limited = `
# So many requests at a time go to each server. Too many slow all of them, too few leave it idle:
# headgate simulate finds the number from a log.
plugins:
  - { type: concurrency-detector, parameters: { maxConcurrency: ${seats} } }
flowControl:
  saturationDetector: { pluginRef: concurrency-detector }
`;
  const reported = `
# The figures of each server (/metrics of vLLM, SGLang, TensorRT-LLM, Dynamo) say when it is full.
scrape: { interval: 50ms }
`;
  return `# yaml-language-server: $schema=node_modules/headgate/dist/schemas/gateway.json
# headgate check ${file} tells what this file comes to.

# This machine alone reaches it. With auth.keys, host: 0.0.0.0 lets others in.
listen: { host: 127.0.0.1, port: 8080 }

# Without the # in front: headgate top shows who runs and waits, headgate explain ID why a request waits.
# inspector: { password: { env: HEADGATE_PASSWORD } }

# Requests wait in the gateway until one of these has room.
upstreams:
${servers.map((url, index) => `  - { id: server-${index + 1}, url: ${JSON.stringify(url)} }`).join('\n')}
${tenants.length > 0 ? auth : ''}${seats === undefined ? reported : limited}`;
}
