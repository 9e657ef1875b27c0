/** `headgate init`: a first gateway file, or the code for a server on Node, of a few answers; the file is checked. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { Problems } from '../../base/problems.js';
import type { InitArguments } from './arguments.js';
import { runCheck } from './run-check.js';

/** Resolves to the exit status, that of the check. @throws (rejects) FlowConfigError that lists all that is wrong */
export async function runInit(given: InitArguments): Promise<number> {
  const { file, code, force, upstreams } = given;
  const problems = new Problems();
  if (existsSync(file) && !force) problems.add(file, 'a file that is not there yet, or --force', 'one that is there');
  const isAsked = upstreams.length === 0 && !code && process.stdin.isTTY && !problems.hasIssues;
  const setup = isAsked ? await asked(given) : given;
  findFaults(setup, problems);
  if (problems.hasIssues) throw problems.toError('init');
  const template = readFileSync(new URL(code ? './init-code.txt' : './init-gateway.txt', import.meta.url), 'utf8');
  writeFileSync(file, filled(template, { ...setup, ...textsOf(setup) }), { flag: force ? 'w' : 'wx' });
  process.stdout.write(`wrote ${file}\n`);
  return code ? 0 : runCheck({ file, json: false, probe: false, modules: [] });
}

/** Asks for what no flag says. */
async function asked(given: InitArguments): Promise<InitArguments> {
  process.exitCode = 1; // for who ends the questions before they do
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const list = async (question: string) => (await lines.question(question)).split(/[\s,]+/).filter(Boolean);
  const isYes = async (question: string) => /^y/i.test(await lines.question(`${question} y or n: `));
  const upstreams = await list('URLs of the model servers: ');
  const hasGate = given.seats !== undefined || given.detector !== undefined;
  const [answer] = hasGate ? [] : await list('Requests that each runs at a time (empty: they report their load): ');
  const { seats = answer } = given;
  const tenants = given.tenants.length > 0 ? given.tenants : await list('Tenants with a key each (empty: none): ');
  const plans = given.plans || (tenants.length > 0 && (await isYes('Budgets of tenants?')));
  const redis = given.redis || (seats !== undefined && (await isYes('Several replicas with one limit, on Redis?')));
  lines.close();
  return { ...given, upstreams, seats, tenants, plans, redis };
}

function findFaults(setup: InitArguments, problems: Problems): void {
  const { upstreams, seats, detector, tenants, plans, redis, code } = setup;
  const expect = (flag: string, isRight: boolean, expected: string, got = 'none'): void =>
    isRight ? undefined : problems.add(flag, expected, got);
  const isUrl = (url: string): boolean => /^https?:/.test(url) && URL.canParse(url);
  expect('--upstream', upstreams.length > 0, 'the URL of a model server');
  for (const url of upstreams) expect('--upstream', isUrl(url), 'a URL such as http://10.0.0.1:8000', `"${url}"`);
  expect('--seats', /^[1-9]\d{0,5}$/.test(seats ?? '1'), 'an integer from 1 to 999999', `"${seats}"`);
  expect('--detector', seats === undefined || detector === undefined, 'none beside --seats', `"${detector}"`);
  for (const name of tenants) expect('--tenant', /^[\w.-]+$/.test(name), 'letters, digits, ".", "-", "_"', `"${name}"`);
  expect('--plans', !plans || tenants.length > 0, '--tenant beside it');
  expect('--redis', !redis || seats !== undefined, '--seats beside it, the limit that replicas share');
  expect('--code', !code || seats !== undefined, '--seats beside it');
  expect('--code', !code || (!plans && !redis), 'neither --plans nor --redis, which are of gateway files', 'them');
}

/** What the templates name beside the setup. */
function textsOf({ upstreams, seats, detector = 'utilization-detector', tenants, plans }: InitArguments) {
  const keys = tenants.map((tenant) => [tenant, `KEY_OF_${tenant.toUpperCase().replace(/\W/g, '_')}`] as const);
  const plan = plans ? ', plan: team' : '';
  return {
    allSeats: Number(seats) * upstreams.length,
    detector: seats === undefined && detector,
    upstreams: upstreams.map((url, index) => `  - { id: server-${index}, url: ${JSON.stringify(url)} }`).join('\n'),
    keys: keys.map(([tenant, key]) => `    - { key: { env: ${key} }, tenant: "${tenant}"${plan} }`).join('\n'),
    entries: keys.map(([tenant, key]) => `  [\`Bearer \${process.env.${key}}\`, '${tenant}'],`).join('\n'),
  };
}

/** A line that begins with `?name` stands where the texts have it; `{name}` is that text. */
function filled(template: string, texts: Readonly<Record<string, unknown>>): string {
  const lines = template.split('\n').flatMap((line) => {
    const [, name = '', rest = line] = /^\?(\w+) ?(.*)$/.exec(line) ?? [];
    return name === '' || texts[name] ? [rest] : [];
  });
  return lines.join('\n').replace(/\{(\w+)\}/g, (_, name: string) => String(texts[name]));
}
