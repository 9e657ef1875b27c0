/** `headgate init`: writes a gateway file for what stands in front of what, each line explained, which `check` reads. */
import { writeFileSync } from 'node:fs';
import type { InitArguments } from './arguments.js';
import { runCheck } from './run-check.js';

/** Returns the exit status. */
export async function runInit(given: InitArguments): Promise<number> {
  const { file, isForced } = given;
  const variables = given.tenants.map(variableOf);
  const wrong = problemOf(given, variables);
  if (wrong !== undefined) return failed(`expected ${wrong}`);
  try {
    writeFileSync(file, gatewayFile(given), { flag: isForced ? 'w' : 'wx' });
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

function problemOf({ servers, seats, tenants }: InitArguments, variables: string[]): string | undefined {
  if (servers.length === 0) return '--server URL, the address of a model server; may be given again';
  if (seats !== undefined && !(Number.isInteger(seats) && seats > 0))
    return `--seats, an integer from 1 up; got ${seats}`;
  if (new Set(variables).size < tenants.length) return 'tenants whose names differ in letters and digits';
  const odd = tenants.find((tenant) => !/^[\w.@-]{1,100}$/.test(tenant));
  return odd && `--tenant, a name of letters, digits, ".", "_", "-" and "@"; got ${JSON.stringify(odd)}`;
}

function failed(problem: string): number {
  process.stderr.write(`headgate: ${problem}\n`);
  return 1;
}

const variableOf = (tenant: string): string => `${tenant.toUpperCase().replace(/\W/g, '_')}_KEY`;

function gatewayFile({ file, servers, seats, tenants }: InitArguments): string {
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

# Without the # in front: a page at /inspector shows who runs, who waits, and why.
# inspector: { password: { env: HEADGATE_PASSWORD } }

# Requests wait in the gateway until one of these has room.
upstreams:
${servers.map((url, index) => `  - { id: server-${index + 1}, url: ${JSON.stringify(url)} }`).join('\n')}
${tenants.length > 0 ? auth : ''}${seats === undefined ? reported : limited}`;
}
