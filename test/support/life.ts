/**
 * The life of a controller whose plugins, requests and listeners are foreign code: every call comes to its end, and the
 * books balance.
 */
import { expect } from 'vitest';
import { EventHub } from '../../src/core/event-hub.js';
import {
  concurrencyDetector,
  EndpointPool,
  explainWait,
  FlowController,
  type FlowControllerOptions,
  type FlowEvents,
  type Lease,
  type Outcome,
  overviewOf,
} from '../../src/index.js';
import { audit, ManualClock } from '../../src/testing/index.js';
import { turns } from './flow.js';

export interface Life {
  /** Fields that every request has. */
  readonly request?: () => object;
  /** Hears of every event. */
  readonly listener?: () => unknown;
  /** What the audit may find: a signal that cannot be listened to is not listened to. */
  readonly allows?: RegExp;
  /** Foreign code makes calls of its own. */
  readonly isMeddledWith?: boolean;
}

/** Calls of a host over the life of a controller, each of which must come to its end; then the books. */
export async function live(
  given: Partial<FlowControllerOptions> | ((flow: () => FlowController | undefined) => Partial<FlowControllerOptions>),
  { request = () => ({}), listener, allows, isMeddledWith = false }: Life = {},
): Promise<void> {
  let made: FlowController | undefined;
  const options = typeof given === 'function' ? given(() => made) : given;
  const clock = new ManualClock();
  const pool = new EndpointPool();
  for (const id of ['a', 'b']) pool.add(id);
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    defaultRequestTtl: 200,
    clock,
    pool,
    ...options,
  });
  made = flow;
  const running: Lease[] = [];
  const settled: Outcome[] = [];
  flow.on('dispatched', ({ lease }) => running.push(lease));
  if (listener !== undefined)
    for (const event of Object.keys(new EventHub().heard)) flow.on(event as keyof FlowEvents, listener);
  let calls = 0;
  const enqueue = (more: object = {}): void => {
    const key = { fairnessId: `f${calls % 3}`, priority: [0, 0, 5, -1][calls % 4] as number };
    calls++;
    void flow.enqueue({ byteSize: 10, tokens: 3, ...more, ...request() }, key).then((outcome) => settled.push(outcome));
  };
  const balanced = (): void => expect(audit(flow).violations.filter((each) => !allows?.test(each))).toEqual([]);
  const look = (): void => {
    overviewOf(flow);
    overviewOf(flow, { flows: 'all' });
    for (const { waitingIds } of flow.figures().bands) expect(typeof waitingIds).toBe('function');
    for (let sequence = 0; sequence < calls; sequence += 3) explainWait(flow, sequence);
    balanced();
  };
  for (let i = 0; i < 12; i++) enqueue();
  flow.tryEnqueue({ byteSize: 1, ...request() }, { fairnessId: 'try' });
  const leaving = new AbortController();
  for (let i = 0; i < 4; i++) enqueue({ signal: leaving.signal });
  for (let i = 0; i < 4; i++) enqueue({ ttlMs: 20 });
  look();
  for (let i = 0; i < 3; i++) {
    const lease = running.shift();
    lease?.report({ promptTokens: 1, completionTokens: 1 });
    lease?.answered({ status: 200, headers: {} });
    lease?.endSession();
    lease?.release();
  }
  balanced();
  leaving.abort();
  clock.advance(30);
  pool.report('a', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
  pool.add('c');
  balanced();
  flow.reconfigure(options.saturationDetector === undefined ? { bandOrder: 'aging' } : { ...options });
  for (let i = 0; i < 4; i++) enqueue();
  for (const lease of running.splice(0)) {
    if (lease.isEvicted) void lease.requeue().then(() => {});
    lease.release();
  }
  pool.remove('a');
  clock.advance(300);
  look();
  const closed = flow.close();
  for (const lease of running.splice(0)) lease.release();
  await closed;
  await turns(10);
  balanced();
  expect(settled).toHaveLength(calls);
  const { waiting, inFlight } = flow.stats();
  expect(waiting).toBe(0);
  if (!isMeddledWith) expect(inFlight).toBe(0);
}
