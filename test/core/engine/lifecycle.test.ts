import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { concurrencyDetector, EndpointPool, FlowConfigError, type Outcome } from '../../../src/index.js';
import { countedAbort, dial, dropOf, key, leaseOf, makeFlow, request, runNow, turns } from '../../support/flow.js';

/** Has the promise been settled by now? */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.finally(() => {
    settled = true;
  });
  await turns();
  return settled;
}

describe('close', () => {
  it('resolves at once when nothing waits, and leaves running requests alone', async () => {
    const { flow, clock } = makeFlow();
    const lease = runNow(flow);
    const closed = flow.close();
    expect(await isSettled(closed)).toBe(true);
    expect(flow.stats()).toMatchObject({ state: 'closed', inFlight: 1 });
    expect([lease.isReleased, lease.signal.aborted]).toEqual([false, false]);
    lease.release();
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 1 });
    expect(clock.pendingTimers).toBe(0);
  });

  it('evicts what waits, and then resolves', async () => {
    const { flow } = makeFlow();
    runNow(flow);
    const waiting = [
      flow.enqueue(request, key('a', 5)),
      flow.enqueue(request, key('b')),
      flow.enqueue(request, key('c', -5)),
    ];
    await flow.close();
    for (const outcome of await Promise.all(waiting))
      expect(dropOf(outcome)).toMatchObject({ type: 'EvictedOther', reason: 'shutting-down' });
    expect(flow.stats()).toMatchObject({ state: 'closed', waiting: 0, waitingBytes: 0, evicted: 3 });
  });

  it('rejects whatever comes afterwards', async () => {
    const { flow } = makeFlow();
    await flow.close();
    const outcomes: Outcome[] = [await flow.enqueue(request, key())];
    expect(outcomes.map((outcome) => dropOf(outcome).reason)).toEqual(['shutting-down']);
    await expect(flow.enqueue({ byteSize: -1 }, key())).rejects.toBeInstanceOf(FlowConfigError);
  });

  it('may be called again and again, and every call resolves', async () => {
    const { flow } = makeFlow();
    runNow(flow);
    void flow.enqueue(request, key());
    const calls = [flow.close({ drainMs: 1000 }), flow.close({ drainMs: 1000 }), flow.close()];
    await Promise.all(calls);
    await flow.close();
    await flow.close({ drainMs: 50 });
    expect(flow.stats()).toMatchObject({ state: 'closed', evicted: 1 });
  });

  it('works by Symbol.asyncDispose', async () => {
    const { flow } = makeFlow();
    runNow(flow);
    const waiting = flow.enqueue(request, key());
    await flow[Symbol.asyncDispose]();
    expect(dropOf(await waiting).reason).toBe('shutting-down');
  });

  it.each([[-1], [Number.NaN], ['50'], ['50ms'], [null]])('rejects drainMs %s', async (drainMs) => {
    const { flow } = makeFlow();
    await expect(flow.close({ drainMs: drainMs as number })).rejects.toThrow(
      /close: drainMs: expected milliseconds from 0 up; got/,
    );
    expect(flow.stats().state).toBe('open');
  });

  it('leaves nothing behind: no timer, no listener, no subscription', async () => {
    const pool = new EndpointPool();
    pool.add('e');
    const detector = dial(1, true);
    const { signal, live } = countedAbort();
    const { flow, clock } = makeFlow({ pool, saturationDetector: detector });
    for (let i = 0; i < 5; i++) void flow.enqueue({ ...request, signal, ttlMs: 10 + i }, key());
    expect([clock.pendingTimers, live(), detector.subscribers]).toEqual([1, 1, 1]);
    await flow.close();
    expect([clock.pendingTimers, live(), detector.subscribers]).toEqual([0, 0, 0]);
    expect(pool.controllers.length).toBe(0);
  });

  it('is final for reconfigure, which does not wake the controller up again', async () => {
    const detector = dial(0, true);
    const { flow } = makeFlow();
    await flow.close();
    flow.reconfigure({ saturationDetector: detector });
    expect([detector.subscribers, flow.stats().state]).toEqual([0, 'closed']);
    expect(dropOf(flow.tryEnqueue(request, key())).reason).toBe('shutting-down');
  });
});

describe('close with a time to drain', () => {
  it('goes on dispatching, and resolves when the last that waited is gone', async () => {
    const { flow, clock } = makeFlow();
    const held = runNow(flow);
    const waiting = flow.enqueue(request, key());
    const closed = flow.close({ drainMs: 1000 });
    expect(flow.stats().state).toBe('draining');
    expect(dropOf(flow.tryEnqueue(request, key('late', 100)))).toMatchObject({
      type: 'RejectedOther',
      reason: 'shutting-down',
    });
    clock.advance(500);
    expect(await isSettled(closed)).toBe(false);
    held.release();
    expect(await isSettled(closed)).toBe(true);
    leaseOf(await waiting);
    expect([flow.stats().state, clock.pendingTimers]).toEqual(['closed', 0]);
  });

  it('evicts what still waits when the time is up', async () => {
    const { flow, clock } = makeFlow();
    runNow(flow);
    const waiting = flow.enqueue(request, key());
    const closed = flow.close({ drainMs: 1000 });
    clock.advance(999);
    expect(await isSettled(closed)).toBe(false);
    clock.advance(1);
    await closed;
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedOther', queuedMs: 1000 });
    expect(clock.pendingTimers).toBe(0);
  });

  it('minds TTLs and signals meanwhile', async () => {
    const { flow, clock } = makeFlow();
    const abort = new AbortController();
    runNow(flow);
    const waiting = [
      flow.enqueue({ ...request, ttlMs: 100 }, key()),
      flow.enqueue({ ...request, signal: abort.signal }, key()),
    ];
    const closed = flow.close({ drainMs: 1000 });
    clock.advance(100);
    abort.abort();
    await closed;
    expect((await Promise.all(waiting)).map(({ type }) => type)).toEqual(['EvictedTTL', 'EvictedContextCancelled']);
  });

  it.each([
    ['a shorter time counts', 1000, 300, 300],
    ['a longer time does not', 300, 1000, 300],
    ['no time at all counts at once', 1000, 0, 0],
    ['any time is shorter than for ever', Number.POSITIVE_INFINITY, 300, 300],
  ])('can be called again: %s', async (_, firstMs, secondMs, expectedMs) => {
    const { flow, clock } = makeFlow();
    runNow(flow);
    void flow.enqueue({ ...request, ttlMs: 0 }, key());
    const closed = [flow.close({ drainMs: firstMs }), flow.close({ drainMs: secondMs })];
    if (expectedMs > 0) {
      clock.advance(expectedMs - 1);
      expect(flow.stats().state).toBe('draining');
      clock.advance(1);
    }
    expect(flow.stats().state).toBe('closed');
    await Promise.all(closed);
    expect(clock.pendingTimers).toBe(0);
  });

  it('counts a later, shorter time from the later call', () => {
    const { flow, clock } = makeFlow();
    runNow(flow);
    void flow.enqueue({ ...request, ttlMs: 0 }, key());
    void flow.close({ drainMs: 1000 });
    clock.advance(800);
    void flow.close({ drainMs: 500 });
    clock.advance(199);
    expect(flow.stats().state).toBe('draining');
    clock.advance(1);
    expect(flow.stats().state).toBe('closed');
  });
});

describe('the process', () => {
  const program = `
    import { FlowController, concurrencyDetector } from '${fileURLToPath(new URL('../../../src/index.ts', import.meta.url))}';
    const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
    const request = { byteSize: 1 };
    const lease = (await flow.enqueue(request, { fairnessId: 'a' })).lease;
    const waiting = process.argv[2];
    if (waiting === 'expires') flow.enqueue({ ...request, ttlMs: 150 }, { fairnessId: 'b' }).then(({ type }) => console.log(type));
    if (waiting === 'stays') flow.enqueue({ ...request, ttlMs: 0 }, { fairnessId: 'b' }).then(({ type }) => console.log(type));
    if (waiting === 'left') {
      flow.enqueue(request, { fairnessId: 'b' }).then(({ type }) => console.log(type));
      lease.release();
    }
    console.log('begun');
  `;
  let folder: string;
  let file: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lifecycle-'));
    file = join(folder, 'program.mjs');
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: fileURLToPath(new URL('../', import.meta.url)), loader: 'ts' },
      bundle: true,
      platform: 'node',
      format: 'esm',
      write: false,
      logLevel: 'silent',
    });
    await writeFile(file, outputFiles[0]?.text ?? '');
  });
  afterAll(() => rm(folder, { recursive: true }));

  /** Runs until it ends by itself, or until it has said `begun` and then lived for `killAfterMs`. */
  function run(waiting: string, killAfterMs?: number): Promise<{ output: string; endedByItself: boolean }> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [file, waiting], { stdio: ['ignore', 'pipe', 'inherit'] });
      let output = '';
      let killed = false;
      child.stdout.on('data', (chunk: Buffer) => {
        output += String(chunk);
        if (killAfterMs === undefined || killed) return;
        killed = true;
        setTimeout(() => child.kill(), killAfterMs);
      });
      child.on('error', reject);
      child.on('close', (code) => resolve({ output, endedByItself: code === 0 }));
    });
  }

  it.each([
    ['ends by itself when nothing waits, though a lease is held', 'nothing', 'begun\n'],
    ['ends by itself when what waited was dispatched', 'left', 'begun\nDispatched\n'],
    ['lives until a waiting request has expired', 'expires', 'begun\nEvictedTTL\n'],
  ])('%s', async (_, waiting, output) => {
    expect(await run(waiting)).toEqual({ output, endedByItself: true });
  });

  it('lives as long as a request waits', async () => {
    expect(await run('stays', 250)).toEqual({ output: 'begun\n', endedByItself: false });
  });
});

it('answers a call that comes from inside the end of a controller', async () => {
  const late: Promise<Outcome>[] = [];
  const { flow } = makeFlow({
    saturationDetector: {
      ...concurrencyDetector({ maxConcurrency: 1 }),
      subscribe: () => () => void late.push(flow.enqueue(request, key())),
    },
  });
  const held = runNow(flow);
  const last = flow.enqueue(request, key());
  const closed = flow.close({ drainMs: 1000 });
  held.release();
  expect((await last).type).toBe('Dispatched');
  await closed;
  expect(late).toHaveLength(1);
  expect(dropOf(await late[0]).reason).toBe('shutting-down');
});
