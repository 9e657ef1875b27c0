/** `headgate explain` and `headgate top`, as processes beside a gateway that runs, with a server that answers nothing. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { bundleCli, type Ended } from '../../support/bundled-cli.js';
import { fileOf, startGateway } from '../../support/gateway.js';
import { startUpstream } from '../../support/upstream.js';

let cli: Awaited<ReturnType<typeof bundleCli>>;
beforeAll(async () => {
  cli = await bundleCli();
});
afterAll(() => cli.remove());

const password = { HEADGATE_PASSWORD: 'sesame' };
const run = (args: readonly string[], env: Record<string, string> = password): Promise<Ended> =>
  cli.start(args, env).ended;

/** One seat, which acme has; what comes then waits. */
async function busyGateway(more: object = {}) {
  const upstream = await startUpstream(() => {});
  const auth = {
    keys: [
      { key: 'key-of-acme', tenant: 'acme' },
      { key: 'key-of-lab', tenant: 'lab', priority: 10 },
    ],
  };
  const file = fileOf([upstream.url], { auth, inspector: { password: 'sesame' }, admin: { port: 0 }, ...more });
  const { gateway, log, post } = await startGateway(file);
  const leaving = new AbortController();
  onTestFinished(() => leaving.abort());
  const send = (key: string, headers: Record<string, string> = {}): void =>
    void post(
      { model: 'llama', messages: [{ role: 'user', content: 'hello' }], max_tokens: 20 },
      { headers: { authorization: `Bearer ${key}`, ...headers }, signal: leaving.signal },
    ).catch(() => {});
  send('key-of-acme');
  await expect.poll(() => upstream.received.length).toBe(1);
  const waits = (count: number): Promise<void> => expect.poll(() => gateway.flow.stats().waiting).toBe(count);
  return { gateway, url: gateway.adminUrl ?? gateway.url, log, post, send, waits, leaving };
}

describe('explain', () => {
  it('says why a request waits, at which place, what it waits for, and how long it may', async () => {
    const { url, send, waits } = await busyGateway();
    send('key-of-acme');
    await waits(1);
    send('key-of-acme', { 'x-request-id': 'mine-1' });
    send('key-of-lab');
    await waits(3);
    const { status, stdout } = await run(['explain', 'mine-1', '--url', url]);
    expect(status).toBe(0);
    const [head, ...clauses] = stdout.trim().split('\n');
    expect(head).toMatch(/^Request mine-1 waits in band 0, for \d.* by now: the model servers are full\.$/);
    expect(clauses).toEqual(
      expect.arrayContaining([
        '- band 0 gated: saturation 1.00 ≥ ceiling 1.00',
        '- 1 in higher bands',
        '- 1 ahead in this flow',
      ]),
    );
    const { stdout: told } = await run(['explain', 'mine-1', '--url', url, '--json']);
    expect(JSON.parse(told)).toMatchObject({ isWaiting: true, priority: 0, decidedBy: 'gate' });
  });

  it('takes the ID that the gateway makes, which top shows while the request waits, and the log and the answer then', async () => {
    const { url, log, waits, leaving, post } = await busyGateway();
    const answer = post(
      { model: 'llama', messages: [], stream: true },
      { headers: { authorization: 'Bearer key-of-acme' } },
    );
    await waits(1);
    const { stdout } = await run(['top', '--once', '--json', '--url', url]);
    const { id } = JSON.parse(stdout).slowest[0];
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect((await run(['explain', id, '--url', url])).stdout).toContain(`Request ${id} waits in band 0`);
    leaving.abort(); // the seat is free
    const { headers, body } = await answer;
    expect(headers.get('x-request-id')).toBe(id);
    await body?.cancel();
    await expect.poll(() => log.filter(({ fields }) => fields.id === id)).toHaveLength(1);
  });

  it('ends with 1 where no request of that ID waits', async () => {
    const { url } = await busyGateway();
    const { status, stdout } = await run(['explain', 'unheard-of', '--url', url]);
    expect([status, stdout]).toEqual([1, expect.stringContaining('No request unheard-of waits. It runs, has ended')]);
  });
});

/** Where nobody listens. */
async function closedUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return `http://127.0.0.1:${port}`;
}

describe('the inspector is asked', () => {
  it.each(['explain x', 'top --once'])('by %s, which says what is missing', async (command) => {
    const { url } = await busyGateway();
    const { gateway: other } = await startGateway(fileOf([]));
    const asked = (at: string, env: Record<string, string>): Promise<Ended> =>
      run([...command.split(' '), '--url', at], env);
    const answers = await Promise.all([
      asked(await closedUrl(), password),
      asked(url, { HEADGATE_PASSWORD: '' }),
      asked(url, { HEADGATE_PASSWORD: 'wrong' }),
      asked(other.url, password),
      asked('gateway', password),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([1, 1, 1, 1, 1]);
    expect(answers.map(({ stderr }) => stderr)).toEqual([
      expect.stringMatching(
        /^headgate: http:\/\/127\.0\.0\.1:\d+: expected a gateway that answers there \(--url\); got .*ECONNREFUSED/,
      ),
      expect.stringMatching(/expected the password of the inspector .* in HEADGATE_PASSWORD; got status 401\n$/),
      expect.stringMatching(/expected the password of the inspector .* in HEADGATE_PASSWORD; got status 401\n$/),
      expect.stringMatching(/expected a gateway with the section `inspector`, .*; got status 404\n$/),
      expect.stringMatching(/^headgate: --url: expected a URL such as http:\/\/127\.0\.0\.1:9090; got "gateway"\n$/),
    ]);
  });

  it('at the path of --url, where it has one', async () => {
    const { url } = await busyGateway({ inspector: { password: 'sesame', path: '/ui' } });
    expect((await run(['top', '--once', '--url', url])).status).toBe(1);
    expect((await run(['top', '--once', '--url', `${url}/ui`])).status).toBe(0);
  });
});

describe('top', () => {
  it('prints the gate, the bands, the tenants by band, and the longest waits once', async () => {
    const { url, send, waits } = await busyGateway();
    send('key-of-acme');
    send('key-of-lab');
    await waits(2);
    const { status, stdout } = await run(['top', '--once', '--url', url]);
    expect(status).toBe(0);
    const [head, ...lines] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^gate closed: servers full · saturation 1\.00 · 2 wait, 1 run · /);
    expect(lines[1]).toMatch(/^band {2}gate +saturation +waiting +running +in\/s +out\/s$/);
    expect(lines[2]).toMatch(/^10 +servers full +1\.00 of 1\.00 +1 +0 /);
    const tenants = lines.slice(lines.findIndex((line) => /^band +tenant/.test(line)));
    expect(tenants[0]).toMatch(/^band +tenant +waiting +running +oldest +tokens +served\/s +dropped\/s$/);
    expect(tenants[1]).toMatch(/^10 +lab(?: starves)? +1 +0 +\d.* +0 +0\.0 +0\.0$/);
    expect(tenants[2]).toMatch(/^0 +acme(?: starves)? +1 +1 +\d.* +[1-9]\d* +\d\.\d +0\.0$/);
    expect(stdout).toMatch(/\n[0-9a-f-]{36} {2}acme {2}.*band 0 gated/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: no terminal, so none of its sequences
    expect(stdout).not.toMatch(/\u001b/);
  });

  it('goes on, one print a second, until it is told to end', async () => {
    const { url } = await busyGateway();
    const top = cli.start(['top', '--json', '--url', url], password);
    await expect.poll(() => top.stdout.split('\n').length).toBeGreaterThan(2);
    top.child.kill('SIGTERM');
    expect((await top.ended).status).toBe(0);
  });

  /** In a terminal of 40 columns, which `script` makes. */
  function inTerminal(url: string, env: Record<string, string> = {}) {
    const command = `stty cols 40 rows 12; node ${cli.folder}/bin/cli.mjs top --url ${url}; echo "status $?"; stty -a`;
    const child = spawn('script', ['-qfec', command, '/dev/null'], {
      env: { ...process.env, NO_COLOR: '', ...password, ...env },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let shown = '';
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
    });
    const ended = new Promise<string>((resolve) => child.once('close', () => resolve(shown)));
    return { child, ended, shown: () => shown };
  }

  it('draws over itself on a terminal, no wider than that, and q leaves the terminal as it was', async () => {
    const { url, send, waits } = await busyGateway();
    send('key-of-acme');
    await waits(1);
    const { child, ended, shown } = inTerminal(url);
    await expect.poll(() => shown().split('\u001b[H\u001b[J').length).toBeGreaterThan(2);
    child.stdin.write('q');
    const all = await ended;
    expect(all).toContain('status 0');
    expect(all.lastIndexOf('\u001b[?25h')).toBeGreaterThan(all.lastIndexOf('\u001b[?25l'));
    const settings = all.slice(all.indexOf('status 0'));
    for (const setting of ['icanon', 'echo', 'isig']) expect(settings).toMatch(new RegExp(`\\s${setting}\\b`));
    const screen = all.split('\u001b[H\u001b[J')[1]?.split('\u001b[?25')[0] ?? '';
    const widths = screen
      .replaceAll('\u001b[1m', '')
      .replaceAll('\u001b[22m', '')
      .split(/\r?\n/)
      .map((line) => line.length);
    expect(Math.max(...widths)).toBe(40);
    expect(widths.length).toBeLessThanOrEqual(12);
    expect(screen).toContain('\u001b[1m');
  });

  it('ends with Ctrl-C as well, and heeds NO_COLOR', async () => {
    const { url } = await busyGateway();
    const { child, ended, shown } = inTerminal(url, { NO_COLOR: '1' });
    await expect.poll(() => shown().includes('q ends this')).toBe(true);
    child.stdin.write('\u0003');
    const all = await ended;
    expect(all).toContain('status 0');
    expect(all).not.toContain('\u001b[1m');
  });

  it('shows what is wrong while the gateway is away, and goes on', async () => {
    const { gateway, url } = await busyGateway({ drain: { delay: 0, waiting: '10ms', streams: '10ms' } });
    const top = cli.start(['top', '--url', url], password);
    await expect.poll(() => top.stdout).toContain('gate closed');
    await gateway.close();
    await expect.poll(() => top.stderr).toContain('expected a gateway that answers there');
    top.child.kill('SIGINT');
    expect((await top.ended).status).toBe(0);
  });

  it('prints nothing that a terminal would act on, whatever tenants are called', async () => {
    const { url, waits, post, leaving } = await busyGateway({
      auth: {
        keys: [
          { key: 'key-of-acme', tenant: 'acme' },
          { key: 'proxy', tenant: 'proxy', trusted: true },
        ],
      },
    });
    const headers = { authorization: 'Bearer proxy', 'x-llm-d-inference-fairness-id': 'evil\u009b31m' };
    void post({ model: 'llama', messages: [] }, { headers, signal: leaving.signal }).catch(() => {});
    await waits(1);
    const { stdout } = await run(['top', '--once', '--url', url]);
    expect(stdout).toContain('evil');
    expect(stdout).not.toContain('\u009b');
  });
});
