/** `headgate gateway` as a process: signals under load, and what its clients see of them. */
import { writeFileSync } from 'node:fs';
import { Agent, request, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCli, type CliProcess } from '../gateway/support/bundled-cli.js';
import { fileOf } from '../gateway/support/gateway.js';
import { type Answer, sse, startUpstream } from '../gateway/support/upstream.js';
import { until } from './support/until.js';

let cli: Awaited<ReturnType<typeof bundleCli>>;
let files = 0;

beforeAll(async () => {
  cli = await bundleCli();
});
afterAll(() => cli.remove());

interface Running {
  readonly process: CliProcess;
  readonly url: string;
  write(file: object | string): void;
}

/** YAML is a superset of JSON. */
async function run(file: object): Promise<Running> {
  const path = `${cli.folder}/gateway-${files++}.yaml`;
  const write = (content: object | string): void =>
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  write(file);
  const process = cli.start(['gateway', '--config', path]);
  await until(
    () => `it listens: ${process.stderr}`,
    () => process.events('listening').length > 0,
  );
  return { process, write, url: String(process.events('listening')[0]?.url) };
}

/** Answers in pieces, so that a request lasts a while. */
const slowly =
  (lastsMs: number): Answer =>
  ({ res }) => {
    res.setHeader('content-type', 'text/event-stream').write(sse('first'));
    const timer = setTimeout(() => res.end('data: [DONE]\n\n'), lastsMs);
    res.once('close', () => clearTimeout(timer));
  };

interface Reply {
  readonly status: number;
  readonly connection: string | undefined;
  readonly text: string;
}

/** Rejects only when there is no whole answer. */
function post(url: string, agent: Agent, body: object = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}/v1/chat/completions`, {
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json' },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      res.on('error', reject);
      res.on('end', () => resolve({ status: res.statusCode ?? 0, connection: res.headers.connection, text }));
    });
    outgoing.end(JSON.stringify({ model: 'llama', stream: true, ...body }));
  });
}

/** Requests that wait in the gateway, by its own metrics. */
async function waitingAt(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const sizes = [...text.matchAll(/^\w*flow_control_queue_size\{.*\} (\d+)$/gm)];
  return sizes.reduce((sum, [, size]) => sum + Number(size), 0);
}

/** True once so many of these answers are yes. */
function isAtLeast(answers: readonly Promise<boolean>[], count: number): () => boolean {
  let yes = 0;
  for (const answer of answers) {
    void answer.then((isYes) => {
      if (isYes) yes++;
    });
  }
  return () => yes >= count;
}

describe('SIGTERM under load', () => {
  it('lets what runs end, dispatches what waits for a while, and refuses the rest with 503: nobody goes without an answer', async () => {
    const running: ServerResponse[] = [];
    const upstream = await startUpstream(({ res }) => {
      res.setHeader('content-type', 'text/event-stream').write(sse('first'));
      running.push(res);
    });
    const finish = (): void => {
      for (const res of running.splice(0)) res.end('data: [DONE]\n\n');
    };
    const file = fileOf(
      [upstream.url],
      { log: { format: 'json' }, drain: { delay: '0s', waiting: '3s', streams: '120s' } },
      4,
    );
    const { process, url } = await run(file);
    const agent = new Agent({ maxSockets: 100 });
    const replies = Array.from({ length: 60 }, () => post(url, agent));
    await until('four run', () => upstream.received.length === 4);
    // All are there, the others wait.
    await until('sockets are connected', () => Object.values(agent.sockets).flat().length === 60);
    await expect.poll(() => waitingAt(url)).toBe(56);
    process.child.kill('SIGTERM');
    await until('it drains', () => process.events('draining').length === 1);
    finish();
    await until('four more run', () => upstream.received.length === 8);
    // They run on while the others are refused.
    const refusals = replies.map((reply) => reply.then(({ status }) => status === 503));
    await until('the others have their answers', isAtLeast(refusals, 52));
    finish();
    const settled = await Promise.all(replies);
    const served = settled.filter(({ status, text }) => status === 200 && text.endsWith('[DONE]\n\n'));
    const refused = settled.filter(({ status }) => status === 503);
    expect(served.length + refused.length).toBe(60);
    expect(served).toHaveLength(8);
    for (const { connection, text } of refused) {
      expect(connection).toBe('close');
      expect(JSON.parse(text).error.code).toBe('ERR_FLOW_SHUTTING_DOWN');
    }
    expect((await process.ended).status).toBe(0);
    expect(process.events('stopped')).toHaveLength(1);
  });

  it('serves new requests for drain.delay, on the port that says that it is not ready', async () => {
    const upstream = await startUpstream();
    const { process, url } = await run(fileOf([upstream.url], { log: { format: 'json' }, drain: { delay: '60s' } }, 4));
    const agent = new Agent();
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    process.child.kill('SIGTERM');
    await until('it drains', () => process.events('draining').length > 0);
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect(await post(url, agent)).toMatchObject({ status: 200, connection: 'close' });
    process.child.kill('SIGTERM');
    expect((await process.ended).status).toBe(1);
  });

  it('is not what Ctrl-C sends: that does not wait for load balancers', async () => {
    const upstream = await startUpstream();
    const { process } = await run(fileOf([upstream.url], { log: { format: 'json' }, drain: { delay: '60s' } }, 4));
    process.child.kill('SIGINT');
    expect((await process.ended).status).toBe(0);
  });

  it('breaks off what does not end in time, and ends', async () => {
    const upstream = await startUpstream(slowly(60_000));
    const file = fileOf([upstream.url], {
      log: { format: 'json' },
      drain: { delay: '0s', waiting: '50ms', streams: '200ms' },
    });
    const { process, url } = await run(file);
    const reply = post(url, new Agent()).catch((error: Error) => error.message);
    await until('it runs', () => upstream.received.length === 1);
    process.child.kill('SIGTERM');
    expect(await reply).toMatch(/aborted|reset|hang up/i);
    expect((await process.ended).status).toBe(0);
    expect(process.events('streams-broken-off')[0]).toMatchObject({ inFlight: 1 });
  });

  it('given twice ends it at once', async () => {
    const upstream = await startUpstream(slowly(60_000));
    const { process, url } = await run(
      fileOf([upstream.url], { log: { format: 'json' }, drain: { delay: '0s', waiting: '60s', streams: '60s' } }),
    );
    const reply = post(url, new Agent()).catch(() => 'broken off');
    await until('it runs', () => upstream.received.length === 1);
    process.child.kill('SIGTERM');
    await until('it drains', () => process.events('draining').length === 1);
    process.child.kill('SIGINT');
    expect((await process.ended).status).toBe(1);
    expect(await reply).toBe('broken off');
  });
});

describe('SIGHUP under load', () => {
  it('puts new limits, servers and keys into force, and drops nothing', async () => {
    const [first, second] = [await startUpstream(slowly(100)), await startUpstream(slowly(100))];
    const log = { log: { format: 'json' } };
    const { process, url, write } = await run(fileOf([first.url], log, 1));
    const agent = new Agent({ maxSockets: 100 });
    const replies = Array.from({ length: 30 }, () => post(url, agent));
    await until('sockets are connected', () => Object.values(agent.sockets).flat().length === 30);
    await until('requests are on their way', () =>
      Object.values(agent.sockets).every((all) => all?.every((socket) => socket.bytesWritten > 0)),
    );
    // What came before it has been read by then.
    for (let index = 0; index < 3; index++) await (await fetch(`${url}/healthz`)).text();
    write(fileOf([first.url, second.url], { ...log, auth: { keys: [{ key: 'sk-new', tenant: 'new' }] } }, 10));
    process.child.kill('SIGHUP');
    await until('it is reloaded', () => process.events('reloaded').length === 1);
    const statuses = (await Promise.all(replies)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(30);
    expect(second.received.length).toBeGreaterThan(5);
    expect((await post(url, agent)).status).toBe(401);
  });

  it('refuses a faulty file with all its faults, and stays as it was', async () => {
    const upstream = await startUpstream();
    const { process, url, write } = await run(fileOf([upstream.url], { log: { format: 'json' } }));
    write({ ...fileOf([upstream.url]), listen: { port: -1 }, flowControl: { maxBytes: '10GB' } });
    process.child.kill('SIGHUP');
    await until('it is refused', () => process.events('reload-refused').length === 1);
    expect(process.events('fault').map(({ path }) => path)).toEqual(['listen.port', 'flowControl.maxBytes']);
    expect((await post(url, new Agent(), { stream: false })).status).toBe(200);
    write('listen: [');
    process.child.kill('SIGHUP');
    await until('it is refused again', () => process.events('reload-refused').length === 2);
    expect((await post(url, new Agent(), { stream: false })).status).toBe(200);
  });
});

describe('a gateway that cannot start', () => {
  it('says why, and ends with 1', async () => {
    const path = `${cli.folder}/wrong.yaml`;
    writeFileSync(path, 'upstreams: []\n');
    const faulty = await cli.start(['gateway', '--config', path]).ended;
    expect([faulty.status, faulty.stderr]).toEqual([1, expect.stringContaining('listen: expected')]);
    const missing = await cli.start(['gateway', '--config', `${cli.folder}/none.yaml`]).ended;
    expect([missing.status, missing.stderr]).toEqual([1, expect.stringContaining('ENOENT')]);
  });
});
