/** `headgate top` and `headgate explain`, as processes, beside a gateway whose one seat is taken. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../integration/support/until.js';
import { bundleCli } from '../support/bundled-cli.js';
import { fileOf, startGateway } from '../support/gateway.js';
import { serve, startUpstream } from '../support/upstream.js';

let cli: Awaited<ReturnType<typeof bundleCli>>;
beforeAll(async () => {
  cli = await bundleCli();
});
afterAll(() => cli.remove());

/** One request runs, and one waits with the ID `second`. */
async function busyGateway(tenant: string) {
  let isHeld = true;
  const server = await startUpstream((received, index) => {
    if (!isHeld) serve(received, index);
  });
  const auth = { keys: [{ key: 'k', tenant, priority: 7 }] };
  const file = fileOf([server.url], { auth, inspector: { password: 'sesame' } });
  const { gateway, post } = await startGateway(file);
  const ask = (id: string) =>
    post({ model: 'llama', messages: [] }, { headers: { authorization: 'Bearer k', 'x-request-id': id } });
  const answers = [ask('first')];
  await until('the first runs', () => gateway.flow.stats().inFlight === 1);
  answers.push(ask('second'));
  await until('the second waits', () => gateway.flow.stats().waiting === 1);
  return {
    url: `${gateway.url}/inspector`,
    end: () => {
      isHeld = false;
      for (const [index, received] of server.received.entries()) serve(received, index);
      return Promise.all(answers);
    },
  };
}

const asOperator = { HEADGATE_PASSWORD: 'sesame' };

describe('headgate top', () => {
  it('shows the gate and every tenant: what runs, what waits, and since when', async () => {
    const { url, end } = await busyGateway('acme');
    const { status, stdout } = await cli.start(['top', '--url', url], asOperator).ended;
    expect(status).toBe(0);
    expect(stdout).toMatch(/^gate full, saturation 1; 1 run, 1 wait \(/);
    expect(stdout).toContain('1 of 1 servers get requests');
    expect(stdout).toMatch(/^TENANT +PRIORITY +RUNS +WAITS/m);
    expect(stdout).toMatch(/^acme +7 +1 +1 /m);
    await end();
  });

  it('lets no name of a tenant command the terminal', async () => {
    const { url, end } = await busyGateway('a\u001b[2Jb');
    const { stdout } = await cli.start(['top', '--once', '--url', url], asOperator).ended;
    expect(stdout).toContain('a?[2Jb');
    expect(stdout).not.toContain('\u001b');
    await end();
  });
});

describe('headgate explain', () => {
  it('says why a request waits, by its x-request-id', async () => {
    const { url, end } = await busyGateway('acme');
    const told = await cli.start(['explain', 'second', '--url', url], asOperator).ended;
    expect([told.status, told.stdout]).toEqual([
      0,
      expect.stringMatching(/^second, priority 7, has waited for .*\n.+/),
    ]);
    const running = await cli.start(['explain', 'first', '--url', url], asOperator).ended;
    expect([running.status, running.stdout]).toEqual([1, expect.stringContaining('first does not wait here')]);
    await end();
  });
});

describe('both', () => {
  it('say what is missing: the gateway, the password, the section', async () => {
    const server = await startUpstream();
    const { gateway } = await startGateway(fileOf([server.url], { inspector: { password: 'sesame' } }));
    const saidOf = async (url: string, env = {}) => (await cli.start(['top', '--url', url], env).ended).stderr;
    expect(await saidOf('http://127.0.0.1:9/inspector')).toContain(
      'no gateway answers at http://127.0.0.1:9/inspector',
    );
    expect(await saidOf(`${gateway.url}/inspector`)).toContain('HEADGATE_PASSWORD');
    expect(await saidOf(`${gateway.url}/elsewhere`, asOperator)).toContain('needs the section inspector');
    expect(await saidOf('ftp://a')).toContain('--url: expected http://host:port/path; got "ftp://a"');
  });
});
