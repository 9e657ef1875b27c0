/** `headgate gateway --workers`: one port and one limit over processes that are killed, reloaded and drained. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { connect, startSockets } from '../adapters/ws/support.js';
import { bundleCli, type CliProcess } from '../gateway/support/bundled-cli.js';
import { countingServer } from '../gateway/support/counting-server.js';
import { fileOf } from '../gateway/support/gateway.js';
import { until } from './support/until.js';

const limit = 6;
const log = { log: { format: 'json', requests: false }, drain: { delay: '0s', waiting: '5s', streams: '5s' } };

let cli: Awaited<ReturnType<typeof bundleCli>>;
beforeAll(async () => {
  cli = await bundleCli();
});
afterAll(() => cli.remove());

interface Running {
  readonly process: CliProcess;
  readonly url: string;
  pids(): number[];
  write(file: object): void;
}

async function run(file: object, workers: number): Promise<Running> {
  const path = `${cli.folder}/workers-${Math.random()}.yaml`;
  const write = (content: object): void => writeFileSync(path, JSON.stringify(content));
  write(file);
  const process = cli.start(['gateway', '--config', path, '--workers', String(workers)]);
  await until(
    () => `it listens: ${process.stderr}`,
    () => process.events('listening').length === 1,
  );
  const url = String(process.events('listening')[0]?.url);
  return { process, url, write, pids: () => process.events('worker-ready').map(({ pid }) => Number(pid)) };
}

/** Status, or undefined where there was no answer. A connection of its own, so that all workers have their part. */
function post(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', connection: 'close' };
    const outgoing = request(`${url}/v1/chat/completions`, { method: 'POST', agent: new Agent(), headers });
    outgoing.on('error', () => resolve(undefined));
    // A connection that was on its way to a worker that died is answered by nobody.
    outgoing.setTimeout(5_000, () => outgoing.destroy());
    outgoing.on('response', (res) =>
      res.resume().on('close', () => resolve(res.complete ? res.statusCode : undefined)),
    );
    outgoing.end(JSON.stringify({ model: 'llama', messages: [] }));
  });
}

/** Clients that send one request after the other, until they are told to stop. */
function load(
  url: string,
  clients: number,
): { readonly statuses: Map<number | undefined, number>; stop(): Promise<void> } {
  const statuses = new Map<number | undefined, number>();
  let isOver = false;
  const client = async (): Promise<void> => {
    while (!isOver) {
      const status = await post(url);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  const all = Array.from({ length: clients }, client);
  const stop = async (): Promise<void> => {
    isOver = true;
    await Promise.all(all);
  };
  onTestFinished(stop);
  return { statuses, stop };
}

async function figure(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const found = [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))];
  return found.reduce((sum, [, value]) => sum + Number(value), 0);
}

it('keeps one limit while workers are killed and the file changes, and no count falls', async () => {
  const seen = await countingServer();
  const { process, url, write, pids } = await run(fileOf([{ id: 'u0', url: seen.url }], log, limit), 3);
  const serves = (more: number): Promise<void> => {
    const goal = seen.served + more;
    return until(
      () => `${seen.served} are ${goal}: ${process.stderr}`,
      () => seen.served >= goal,
    );
  };
  const { statuses, stop } = load(url, 12);
  await serves(60);
  const answered = await figure(url, 'headgate_http_responses_total');
  expect(answered).toBeGreaterThan(0);
  for (let kills = 0; kills < 2; kills++) {
    const [known] = workersOf(process).slice(-1);
    globalThis.process.kill(known!, 'SIGKILL');
    await until('it is replaced', () => pids().length > 3 + kills);
    expect(await figure(url, 'headgate_http_responses_total')).toBeGreaterThanOrEqual(answered);
    await serves(40);
  }
  expect(seen.most).toBeLessThanOrEqual(limit);
  // Later and later, while they die young.
  let young = 0;
  for (const { signal, livedMs, replacedInMs } of process.events('worker-died')) {
    young = Number(livedMs) < 10_000 ? young + 1 : 0;
    expect([signal, replacedInMs]).toEqual(['SIGKILL', young === 0 ? 0 : 50 * 2 ** young]);
  }
  write(fileOf([{ id: 'u0', url: seen.url }], log, 2));
  process.child.kill('SIGHUP');
  await until('all are reloaded', () => process.events('reloaded').length === 1);
  expect(process.events('reloaded')[0]?.changed).toContain('maxConcurrency');
  // A cut is in force when all have confirmed it.
  await expect.poll(() => figure(url, 'headgate_shared_held')).toBeLessThanOrEqual(2);
  await until('fewer run', () => seen.now <= 2);
  seen.most = 0;
  await serves(20);
  expect(seen.most).toBeLessThanOrEqual(2);
  write({ ...fileOf([seen.url]), listen: { port: -1 } });
  process.child.kill('SIGHUP');
  await until('a faulty file is refused', () => process.events('reload-refused').length === 1);
  await stop();
  expect([...statuses.keys()].filter((status) => status !== undefined)).toEqual([200]);
  expect(statuses.get(undefined) ?? 0).toBeLessThanOrEqual(2 * limit + 12);
  const { requests } = (await (await fetch(`${url}/demand`)).json()) as { requests: number };
  expect(requests).toBe(0);
  process.child.kill('SIGTERM');
  expect((await process.ended).status).toBe(0);
  // What operators see of it is that of one program.
  for (const event of ['listening', 'draining', 'stopped']) expect(process.events(event)).toHaveLength(1);
  expect(Number(process.events('stopped')[0]?.dispatched)).toBeGreaterThan(0);
});

/** The workers that live, by the log of the system. */
function workersOf({ child }: CliProcess): number[] {
  return spawnSync('ps', ['-o', 'pid=', '--ppid', String(child.pid)], { encoding: 'utf8' })
    .stdout.split(/\s+/)
    .filter(Boolean)
    .map(Number);
}

it('counts what clients saw, whichever worker is asked', async () => {
  const seen = await countingServer();
  const file = fileOf([{ id: 'u0', url: seen.url }], { ...log, inspector: { password: 'p' } }, limit);
  const { url } = await run(file, 3);
  const { statuses, stop } = load(url, 9);
  await until('some are answered', () => (statuses.get(200) ?? 0) >= 60);
  await stop();
  const answered = statuses.get(200) ?? 0;
  expect([...statuses.keys()]).toEqual([200]);
  const headers = { authorization: `Basic ${btoa(':p')}` };
  for (let time = 0; time < 4; time++) {
    expect(await figure(url, 'headgate_http_responses_total')).toBe(answered);
    expect(await figure(url, 'headgate_shared_limit')).toBe(limit);
    const frame = await (await fetch(`${url}/inspector?view=json`, { headers })).json();
    expect(frame).toMatchObject({ inFlight: 0, outcomes: { totals: { Dispatched: answered } } });
    expect((frame as { shared: { rows: object[] } }).shared.rows).toMatchObject([{ name: 'u0', limit }]);
  }
  expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: 'ready', endpoints: 1, available: 1 });
});

it('takes sockets in every worker, with one limit for their turns, and closes them with 1012', async () => {
  const seen = { now: 0, most: 0, served: 0 };
  const upstream = await startSockets((socket) =>
    socket.on('message', () => {
      seen.most = Math.max(seen.most, ++seen.now);
      const response = { id: `r${seen.served++}` };
      socket.send(JSON.stringify({ type: 'response.created', response }));
      setTimeout(() => {
        seen.now--;
        socket.send(JSON.stringify({ type: 'response.completed', response }));
      }, 10);
    }),
  );
  const { process, url } = await run(fileOf([upstream.replace('ws:', 'http:')], log, limit), 2);
  const clients = await Promise.all(
    Array.from({ length: 24 }, () => connect(`${url.replace('http:', 'ws:')}/v1/responses`)),
  );
  for (let turn = 0; turn < 4; turn++) {
    for (const client of clients) client.send({ type: 'response.create', model: 'm', input: 'hello' });
    await Promise.all(clients.map((client) => client.next('response.completed')));
  }
  expect([seen.served, seen.now]).toEqual([96, 0]);
  expect(seen.most).toBeGreaterThan(1);
  expect(seen.most).toBeLessThanOrEqual(limit);
  process.child.kill('SIGTERM');
  await until('closed', () => clients.every(({ closed }) => closed !== undefined));
  expect(new Set(clients.map(({ closed }) => closed?.code))).toEqual(new Set([1012]));
  expect((await process.ended).status).toBe(0);
});

it('ends with its primary', async () => {
  const seen = await countingServer();
  const { process, pids } = await run(fileOf([seen.url], log, limit), 2);
  expect(workersOf(process).sort()).toEqual(pids().sort());
  process.child.kill('SIGKILL');
  await process.ended;
  const isAlive = (pid: number): boolean => spawnSync('kill', ['-0', String(pid)]).status === 0;
  await until('both are gone', () => !pids().some(isAlive));
});

it('ends when it is told to, also while a worker is being replaced', async () => {
  const seen = await countingServer();
  const { process, pids } = await run(fileOf([seen.url], log, limit), 2);
  globalThis.process.kill(pids()[0]!, 'SIGKILL');
  await until('it is missed', () => process.events('worker-died').length === 1);
  await until('another one begins', () => workersOf(process).length === 2);
  process.child.kill('SIGTERM');
  expect((await process.ended).status).toBe(0);
});

it('says why it cannot start', async () => {
  const { process, url } = await run(fileOf(['http://127.0.0.1:9'], log, limit), 2);
  const path = `${cli.folder}/taken.yaml`;
  writeFileSync(path, JSON.stringify(fileOf(['http://127.0.0.1:9'], { listen: { port: Number(new URL(url).port) } })));
  const { status, stderr } = await cli.start(['gateway', '--config', path, '--workers', '2']).ended;
  expect([status, stderr]).toEqual([1, expect.stringContaining('EADDRINUSE')]);
  expect(stderr.match(/not-started/g)).toHaveLength(1);
  writeFileSync(path, JSON.stringify(fileOf(['http://127.0.0.1:9'], { listen: { port: -1 } })));
  const faulty = await cli.start(['gateway', '--config', path, '--workers', '2']).ended;
  expect([faulty.status, faulty.stderr.match(/listen\.port/g)]).toEqual([1, ['listen.port']]);
  process.child.kill('SIGINT');
  expect((await process.ended).status).toBe(0);
});
