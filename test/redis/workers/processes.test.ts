/** Real processes and threads behind one limit; an observer counts what they run, and kernels tell it who is gone. */
import { type ChildProcess, fork } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { localStore, type Store, sharedConcurrency } from '../../../src/redis/index.js';
import { serveStore } from '../../../src/redis/workers/index.js';
import { bundle } from '../support/bundle.js';
import { until } from '../support/with-store.js';
import { type Plan, timing } from './plan.js';

const limit = 8;
const patientMs = 120_000;
let program: string;
beforeAll(async () => {
  program = await bundle(new URL('worker.ts', import.meta.url));
});

interface Observer {
  readonly port: number;
  now: number;
  most: number;
  served: number;
}

async function observe(): Promise<Observer> {
  const seen: Observer = { port: 0, now: 0, most: 0, served: 0 };
  const server = createServer((socket) => {
    seen.most = Math.max(seen.most, ++seen.now);
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      seen.now--;
      seen.served++;
    };
    socket.resume().on('end', over).on('error', over).on('close', over);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return Object.assign(seen, { port: (server.address() as AddressInfo).port });
}

function startProcess(store: Store, plan: Plan): ChildProcess {
  const child = fork(program, { env: { ...process.env, WORKER_PLAN: JSON.stringify(plan) } });
  onTestFinished(() => void child.kill('SIGKILL'));
  serveStore(store, child);
  return child;
}

function serves(seen: Observer, more: number): Promise<void> {
  const goal = seen.served + more;
  return until(
    () => seen.served >= goal,
    () => seen,
    patientMs,
  );
}

/** All seats are used, within one request of each other. */
async function fills(seen: Observer): Promise<void> {
  await until(
    () => seen.now === limit,
    () => seen,
    patientMs,
  );
}

it('keeps one limit over four processes while they are killed and replaced, and frees the seats of the dead at once', async () => {
  const seen = await observe();
  const store = localStore();
  const start = (seed: number): ChildProcess => startProcess(store, { port: seen.port, limit, seed });
  const workers = [1, 2, 3, 4].map(start);
  await serves(seen, 100);
  for (let round = 0; round < 6; round++) {
    workers.shift()?.kill('SIGKILL');
    workers.push(start(10 + round));
    await serves(seen, 60);
  }
  for (const worker of workers.splice(1)) worker.kill('SIGKILL');
  await fills(seen);
  expect(seen.most).toBe(limit);
});

it('does the same for threads', async () => {
  const seen = await observe();
  const store = localStore();
  const workers = [1, 2, 3].map((seed) => {
    const workerData: Plan = { port: seen.port, limit, seed };
    const worker = new Worker(program, { workerData });
    onTestFinished(() => void worker.terminate());
    serveStore(store, worker);
    return worker;
  });
  await serves(seen, 100);
  for (const worker of workers.slice(1)) {
    await worker.terminate();
    await serves(seen, 60);
  }
  await fills(seen);
  expect(seen.most).toBe(limit);
});

it('keeps the seats of a process that hangs for the requests that it may still run', async () => {
  const seen = await observe();
  const store = localStore();
  const [first] = [1, 2].map((seed) => startProcess(store, { port: seen.port, limit, seed }));
  const looking = sharedConcurrency(store, { ...timing, maxConcurrency: limit });
  await until(
    () => looking.status[0]?.replicas === 3,
    () => looking.status,
    patientMs,
  );
  // By then each of both has its part.
  await serves(seen, 400);
  first!.kill('SIGSTOP');
  await until(
    () => looking.status[0]?.replicas === 2,
    () => looking.status,
    patientMs,
  );
  await looking.close();
  await serves(seen, 50);
  first!.kill('SIGCONT');
  await serves(seen, 50);
  await fills(seen);
  expect(seen.most).toBe(limit);
});
