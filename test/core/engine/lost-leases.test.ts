/** Leases that the host lost. Collected by V8 on demand, so that no test waits for memory to run short. */
import { types } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { FlowController, FlowEvents, Lease } from '../../../src/index.js';
import { collectGarbage } from '../../support/collect-garbage.js';
import { dial, key, leaseOf, makeFlow, request, turns } from '../../support/flow.js';

afterEach(() => {
  vi.restoreAllMocks();
});

async function enqueueAndForget(flow: FlowController): Promise<void> {
  leaseOf(await flow.enqueue(request, key('careless', 1)));
}

async function enqueueAndRelease(flow: FlowController): Promise<void> {
  leaseOf(await flow.enqueue(request, key('careful'))).release();
}

/** Collects until `isDone`; finalizers run in turns of their own. */
async function collect(isDone: () => boolean): Promise<void> {
  for (let round = 0; round < 50 && !isDone(); round++) {
    collectGarbage();
    await new Promise(setImmediate);
  }
}

describe('a lease that the host lost', () => {
  it('is told of once, with the call that it came from', async () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(0), traceLeases: true });
    const lost: FlowEvents['leaseLost'][] = [];
    flow.on('leaseLost', (event) => lost.push(event));
    await enqueueAndRelease(flow);
    await enqueueAndForget(flow);
    clock.advance(250);
    await collect(() => lost.length > 0);
    expect(lost).toMatchObject([{ fairnessId: 'careless', priority: 1, heldMs: 250 }]);
    expect(lost[0]?.origin).toContain('enqueueAndForget');
    expect(flow.stats().inFlight).toBe(1);
    await collect(() => lost.length > 1);
    expect(lost).toHaveLength(1);
  });

  it('gives its seat back where that is asked for', async () => {
    const { flow } = makeFlow({ traceLeases: true, overdueLeases: 'release' });
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    await enqueueAndForget(flow);
    const next = flow.enqueue(request, key('next'));
    await collect(() => flow.stats().waiting === 0);
    const lease = leaseOf(await next);
    expect([lease.fairnessId, flow.stats().inFlight]).toEqual(['next', 1]);
  });

  it('is written to stderr while nobody listens', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const { flow } = makeFlow({ traceLeases: true });
    await enqueueAndForget(flow);
    await collect(() => warn.mock.calls.length > 0);
    expect(String(warn.mock.calls[0]?.[0])).toMatch(/a lease was lost without release\(\)(.|\n)*enqueueAndForget/);
  });

  it('is not lost while a method of it is held', async () => {
    const { flow } = makeFlow({ traceLeases: true });
    const lost: unknown[] = [];
    flow.on('leaseLost', (event) => lost.push(event));
    const { release }: Lease = leaseOf(await flow.enqueue(request, key()));
    for (let round = 0; round < 5; round++) {
      collectGarbage();
      await turns();
      await new Promise(setImmediate);
    }
    expect(lost).toEqual([]);
    release();
    expect(flow.stats().inFlight).toBe(0);
  });
});

describe('tracing', () => {
  it('is off unless asked for, and on in development', async () => {
    const isTraced = async (): Promise<boolean> => {
      const { flow } = makeFlow({ saturationDetector: dial(0) });
      return types.isProxy(leaseOf(await flow.enqueue(request, key())));
    };
    vi.stubEnv('NODE_ENV', 'production');
    expect(await isTraced()).toBe(false);
    vi.stubEnv('NODE_ENV', 'development');
    expect(await isTraced()).toBe(true);
    vi.unstubAllEnvs();
  });
});
