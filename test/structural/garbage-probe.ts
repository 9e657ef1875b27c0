/**
 * Measures, in a process of its own with --expose-gc, how many bytes of each request outlive short collections of the
 * heap after the request has ended: they wait for a collection of everything, and every request pays for that. Prints
 * JSON. Not a test: see garbage.test.ts.
 */
import { EventEmitter } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { destroyIfStuck } from '../../src/adapters/node/on-response-end.js';
import { UploadWatch } from '../../src/base/stream/upload-watch.js';
import {
  concurrencyDetector,
  EndpointPool,
  FlowController,
  type FlowControllerOptions,
  inFlightEviction,
  type Lease,
} from '../../src/index.js';

const requests = 20_000;
const inFlight = 50;
const key = { fairnessId: 'a', priority: 0 };

/** What a host hangs on a request. */
const payload = (): { byteSize: number; body: number[] } => ({
  byteSize: 1,
  body: Array.from({ length: 100 }, (_, i) => i),
});

const collectYoung = (): unknown => (globalThis.gc as (options: { type: 'minor' }) => unknown)({ type: 'minor' });
const collectAll = (): unknown => globalThis.gc?.();

/** `begin` starts a request and returns what ends it; `inFlight` of them are always under way. */
async function outliving(begin: () => (() => void) | Promise<() => void>): Promise<number> {
  const ends: (() => void)[] = [];
  let next = 0;
  const turn = async (): Promise<void> => {
    ends[next]?.();
    ends[next] = await begin();
    next = (next + 1) % inFlight;
  };
  for (let i = 0; i < requests; i++) await turn();
  // What is there now grows old.
  collectAll();
  collectAll();
  for (let i = 0; i < requests; i++) {
    await turn();
    if (i % 200 === 0) collectYoung();
  }
  collectYoung();
  collectYoung();
  const before = process.memoryUsage().heapUsed;
  collectAll();
  return (before - process.memoryUsage().heapUsed) / requests;
}

function passing(options: Partial<FlowControllerOptions>, flowKey = key): Promise<number> {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 100 }), ...options });
  return outliving(() => {
    const outcome = flow.tryEnqueue(payload(), flowKey);
    if (outcome?.type !== 'Dispatched') throw new Error('nothing should wait here');
    return () => outcome.lease.release();
  });
}

/** All have to wait: a request begins when one of those before it has ended. */
function waiting(): Promise<number> {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
  let running: Lease | undefined;
  flow.on('dispatched', ({ lease }) => {
    running = lease;
  });
  return outliving(async () => {
    void flow.enqueue(payload(), key);
    await Promise.resolve();
    return () => running?.release();
  });
}

function reporting(): EndpointPool {
  const pool = new EndpointPool();
  pool.add('a');
  pool.report('a', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
  return pool;
}

function uploads(): Promise<number> {
  const watch = new UploadWatch({ idleMs: 10_000, minBytesPerSecond: 1 }, stillClock);
  return outliving(() => {
    const request = payload();
    return watch.add(
      () => ({ type: 'coming', bytes: request.byteSize }),
      () => {},
    );
  });
}

/** Of HTTP/2: all that the watch of them looks at. */
function streams(): Promise<number> {
  return outliving(() => {
    const stream = Object.assign(new EventEmitter(), { closed: false, writableFinished: false, request: payload() });
    destroyIfStuck(stream as unknown as ServerHttp2Stream);
    return () => stream.emit('close');
  });
}

const stillClock = { now: () => 0, setTimeout: () => 1, clearTimeout: () => {} };

/** The control: a register that makes a new table every few members. */
function inSet(): Promise<number> {
  const register = new Set<unknown>();
  return outliving(() => {
    const entry = { request: payload() };
    register.add(entry);
    return () => register.delete(entry);
  });
}

const figures = {
  inSet: await inSet(),
  uploads: await uploads(),
  streams: await streams(),
  passing: await passing({}),
  evictable: await passing({ eviction: inFlightEviction() }, { fairnessId: 'a', priority: -1 }),
  reporting: await passing({ pool: reporting() }),
  waiting: await waiting(),
};
console.log(JSON.stringify(figures));
process.exit();
