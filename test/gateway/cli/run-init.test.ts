/** `headgate init`, as a process; and what it writes, in use. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { bundleCli, type Ended } from '../support/bundled-cli.js';
import { startUpstream } from '../support/upstream.js';

let cli: Awaited<ReturnType<typeof bundleCli>>;
beforeAll(async () => {
  cli = await bundleCli();
});
afterAll(() => cli.remove());

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-init-'));
  file = join(folder, 'gateway.yaml');
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

const init = (args: string, env: Record<string, string> = {}): Promise<Ended> =>
  cli.start(['init', file, ...args.split(' ').filter(Boolean)], env).ended;

describe('a gateway file', () => {
  it.each([
    ['--upstream http://127.0.0.1:8000', ['type: utilization-detector']],
    ['--upstream http://127.0.0.1:8000 --detector utilization-detector', ['pluginRef: utilization-detector']],
    ['--upstream http://127.0.0.1:1 --upstream http://127.0.0.1:2 --seats 15', ['maxConcurrency: 15', 'id: server-1']],
    ['--upstream http://127.0.0.1:1 --tenant acme --tenant big-lab --plans', ['KEY_OF_BIG_LAB }', 'plan: team']],
    ['--upstream http://127.0.0.1:1 --seats 8 --redis', ['endpointConcurrency: 8', 'REDIS_URL']],
  ])('of %s is right, and says so', async (args, texts) => {
    const env = { KEY_OF_ACME: 'a', KEY_OF_BIG_LAB: 'b', REDIS_URL: 'redis://127.0.0.1:1' };
    const { status, stdout, stderr } = await init(args, env);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`wrote ${file}\n`);
    expect(stdout).toContain(': gateway file, no faults');
    const written = readFileSync(file, 'utf8');
    for (const text of texts) expect(written).toContain(text);
    expect(written).toMatch(/^# yaml-language-server: \$schema=/);
    expect(written).not.toMatch(/^\?|\{\w+\}|undefined/m);
  });

  it('with a gate that is not known, or needs parameters, gets the faults that check finds', async () => {
    const { status, stdout } = await init('--upstream http://127.0.0.1:1 --detector utilisation-detector');
    expect([status, stdout]).toEqual([1, expect.stringContaining('utilization-detector')]);
  });

  it('serves as it stands, and lets no more requests run than it says', async () => {
    const upstream = await startUpstream(() => {});
    expect((await init(`--upstream ${upstream.url} --seats 1`)).status).toBe(0);
    const anyPort = readFileSync(file, 'utf8').replace('port: 8080', 'port: 0').replace('port: 9090', 'port: 0');
    writeFileSync(file, anyPort);
    const gateway = cli.start(['gateway', '--config', file, '--log-format', 'json']);
    await expect.poll(() => gateway.events('listening')).toHaveLength(1);
    const url = String(gateway.events('listening')[0]?.url);
    const leaving = new AbortController();
    const body = JSON.stringify({ model: 'llama', messages: [] });
    const headers = { 'content-type': 'application/json' };
    for (let sent = 0; sent < 2; sent++)
      fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body, signal: leaving.signal }).catch(() => {});
    const admin = String(gateway.events('listening')[0]?.adminUrl);
    const demand = async (): Promise<unknown> => (await fetch(`${admin}/demand`)).json();
    await expect.poll(demand).toMatchObject({ waiting: 1, inFlight: 1 });
    await expect.poll(() => upstream.received.length).toBe(1);
    expect(await demand()).toMatchObject({ waiting: 1, inFlight: 1 });
    leaving.abort();
    gateway.child.kill('SIGINT');
    expect((await gateway.ended).status).toBe(0);
  });

  it('is not written over one that is there, unless it is told to', async () => {
    writeFileSync(file, 'mine');
    const { status, stderr } = await init('--upstream http://127.0.0.1:1');
    expect([status, stderr]).toEqual([1, expect.stringContaining('expected a file that is not there yet, or --force')]);
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect((await init('--upstream http://127.0.0.1:1 --force')).status).toBe(0);
    expect(readFileSync(file, 'utf8')).toContain('upstreams:');
  });
});

describe('wrong flags', () => {
  it.each([
    ['', '--upstream: expected the URL of a model server; got none'],
    ['--upstream gpu-0', '--upstream: expected a URL such as http://10.0.0.1:8000; got "gpu-0"'],
    ['--upstream http://a --seats none', '--seats: expected an integer from 1 to 999999; got "none"'],
    ['--upstream http://a --seats 1 --detector vegas-detector', '--detector: expected none beside --seats; got "vegas'],
    ['--upstream http://a --tenant a/b', '--tenant: expected letters, digits, ".", "-", "_"; got "a/b"'],
    ['--upstream http://a --plans', '--plans: expected --tenant beside it; got none'],
    ['--upstream http://a --redis', '--redis: expected --seats beside it, the limit that replicas share; got none'],
    ['--upstream http://a --code', '--code: expected --seats beside it; got none'],
    ['--upstream http://a --code --seats 1 --redis', '--code: expected neither --plans nor --redis'],
    ['other.yaml', 'expected init and one file; got'],
  ])('such as "%s" are told of, and nothing is written', async (args, told) => {
    const { status, stderr } = await init(args);
    expect([status, stderr]).toEqual([1, expect.stringContaining(told)]);
    expect(existsSync(file)).toBe(false);
  });
});

describe('on a terminal', () => {
  it('it asks for what no flag says', async () => {
    const command = `node ${cli.folder}/bin/cli.mjs init ${file} --tenant acme`;
    const child: ChildProcess = spawn('script', ['-qfec', command, '/dev/null'], {
      env: { ...process.env, KEY_OF_ACME: 'a' },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let shown = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
    });
    const answers = [
      ['URLs of the model servers', 'http://127.0.0.1:1, http://127.0.0.1:2'],
      ['Requests that each runs at a time', '12'],
      ['Budgets of tenants?', 'n'],
      ['Several replicas', 'n'],
    ] as const;
    for (const [question, answer] of answers) {
      await expect.poll(() => shown).toContain(question);
      child.stdin?.write(`${answer}\n`);
    }
    await expect.poll(() => shown).toContain('no faults');
    const written = readFileSync(file, 'utf8');
    for (const text of ['http://127.0.0.1:2', 'maxConcurrency: 12', 'KEY_OF_ACME']) expect(written).toContain(text);
    expect(written).not.toMatch(/budgets:|sharedState:/);
  });
});

it('--code writes what holds requests of a server on Node back, by tenant', async () => {
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  file = join(folder, 'flow.ts');
  expect((await init('--code --upstream http://a --seats 1 --tenant acme')).status).toBe(0);
  const bundled = join(folder, 'flow.mjs');
  const alias = { headgate: `${root}src/index.ts`, 'headgate/node': `${root}src/adapters/node/index.ts` };
  await build({
    entryPoints: [file],
    outfile: bundled,
    bundle: true,
    platform: 'node',
    format: 'esm',
    alias,
    nodePaths: [`${root}node_modules`],
  });
  const { href } = pathToFileURL(bundled);
  // Whoever sends `Bearer undefined` must be nobody.
  await expect(import(`${href}?no-key`)).rejects.toThrow('the environment lacks a key');
  process.env.KEY_OF_ACME = 'secret';
  const { flow, limit } = await import(href);
  const tenants: string[] = [];
  const server = createServer((req, res) =>
    limit(req, res, () => {
      tenants.push(Reflect.get(req, 'flow').lease.fairnessId);
      if (tenants.length > 1) res.end();
      else
        setImmediate(
          () =>
            void expect
              .poll(() => flow.stats().waiting)
              .toBe(1)
              .then(() => res.end()),
        );
    }),
  ).listen(0);
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const first = fetch(url, { headers: { authorization: 'Bearer secret' } });
  await expect.poll(() => tenants).toEqual(['acme']);
  expect((await fetch(url)).status).toBe(200);
  expect((await first).status).toBe(200);
  expect(tenants).toEqual(['acme', 'anonymous']);
});
