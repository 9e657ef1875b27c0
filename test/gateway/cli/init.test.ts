/** `headgate init`, as a process: what it writes is a file that `headgate check` finds right, and a gateway runs. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { until } from '../../integration/support/until.js';
import { bundleCli } from '../support/bundled-cli.js';
import { startUpstream } from '../support/upstream.js';

let cli: Awaited<ReturnType<typeof bundleCli>>;
const folder = mkdtempSync(join(tmpdir(), 'headgate-init-'));
const file = join(folder, 'gateway.yaml');
beforeAll(async () => {
  cli = await bundleCli();
});
beforeEach(() => rmSync(file, { force: true }));
afterAll(() => {
  cli.remove();
  rmSync(folder, { recursive: true });
});

const init = (...args: string[]) => cli.start(['init', file, ...args]).ended;

describe('headgate init', () => {
  it('writes a file with keys and seats, explained, and says how to run it', async () => {
    const { url } = await startUpstream();
    const told = await init('--server', url, '--seats', '16', '--tenant', 'acme', '--tenant', 'night.batch');
    expect(told.status, told.stdout + told.stderr).toBe(0);
    expect(told.stdout).toContain('no faults, no warnings');
    expect(told.stdout).toContain(`ACME_KEY=… NIGHT_BATCH_KEY=… npx headgate gateway --config ${file}`);
    const text = readFileSync(file, 'utf8');
    expect(text.split('\n', 1)[0]).toMatch(/^# yaml-language-server: \$schema=/);
    expect(parse(text)).toMatchObject({
      upstreams: [{ id: 'server-1', url }],
      auth: { keys: [{ key: { env: 'ACME_KEY' }, tenant: 'acme' }, { tenant: 'night.batch' }] },
      plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: 16 } }],
    });
  });

  it('runs as it is: without tenants and seats, by the figures of servers', async () => {
    const { url } = await startUpstream();
    expect((await init('--server', url)).status).toBe(0);
    writeFileSync(file, readFileSync(file, 'utf8').replace('port: 8080', 'port: 0'));
    const gateway = cli.start(['gateway', '--config', file, '--log-format', 'json']);
    await until(gateway.stderr, () => gateway.events('listening').length > 0, 30_000);
    const { url: address } = gateway.events('listening')[0] as { url: string };
    const answer = await fetch(`${address}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'llama', messages: [] }),
    });
    expect(answer.status).toBe(200);
    gateway.child.kill();
    await gateway.ended;
  });

  it('overwrites nothing unless told to', async () => {
    writeFileSync(file, 'mine');
    const told = await init('--server', 'http://127.0.0.1:9');
    expect([told.status, told.stderr]).toEqual([1, `headgate: ${file} is there already: --force replaces it\n`]);
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect((await init('--server', 'http://127.0.0.1:9', '--force')).status).toBe(0);
    expect(parse(readFileSync(file, 'utf8'))).toHaveProperty('scrape');
  });

  it.each([
    [[], 'expected --server URL'],
    [['--server', 'http://a:1', '--seats', 'many'], 'expected --seats, an integer from 1 up; got NaN'],
    [['--server', 'http://a:1', '--tenant', 'a: b'], 'expected --tenant, a name of letters'],
    [['--server', 'http://a:1', '--tenant', 'a-b', '--tenant', 'a_b'], 'expected tenants whose names differ'],
    [['--server', 'http://a:1', '--server'], "Option '--server"],
  ])('writes nothing for %j', async (args, problem) => {
    const told = await init(...args);
    expect([told.status, told.stderr]).toEqual([1, expect.stringContaining(problem)]);
    expect(existsSync(file)).toBe(false);
  });

  it('says what is wrong with an address, by the file it wrote', async () => {
    const told = await init('--server', 'gpu-0:8000');
    expect([told.status, told.stdout]).toEqual([1, expect.stringContaining('upstreams[0].url')]);
    expect(told.stdout).not.toContain('To run it');
  });
});
