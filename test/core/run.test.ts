import { describe, expect, it } from 'vitest';
import { FlowConfigError, FlowControlError, FlowEvictedError, inFlightEviction, type Lease } from '../../src/index.js';
import { key, leaseOf, makeFlow, record, request, runNow, turns } from '../support/flow.js';

describe('run', () => {
  it.each([
    ['a value', (): unknown => 42, 42],
    ['a promise', async (): Promise<string> => 'later', 'later'],
    ['nothing', (): void => {}, undefined],
  ])('gives back what work returns: %s', async (_, work, expected) => {
    const { flow } = makeFlow();
    expect(await flow.run(request, key(), work)).toBe(expected);
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 1 });
  });

  it('holds the seat until work has ended', async () => {
    const { flow } = makeFlow();
    let end = (): void => {};
    const running = flow.run(request, key(), () => new Promise<void>((resolve) => (end = resolve)));
    await turns();
    expect(flow.stats()).toMatchObject({ inFlight: 1, released: 0 });
    end();
    await running;
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 1 });
  });

  it.each([
    [
      'throws',
      (): never => {
        throw new RangeError('work');
      },
    ],
    ['rejects', (): Promise<never> => Promise.reject(new RangeError('work'))],
  ])('passes on what work %s, and gives the seat back', async (_, work) => {
    const { flow } = makeFlow();
    await expect(flow.run(request, key(), work)).rejects.toThrow(new RangeError('work'));
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 1 });
  });

  it('hands the lease to work, which may release it itself', async () => {
    const { flow } = makeFlow();
    const released = record(flow, 'released');
    const lease = await flow.run(request, key('tenant'), (lease: Lease) => {
      lease.report({ completionTokens: 3 });
      lease.release();
      return lease;
    });
    expect(lease.fairnessId).toBe('tenant');
    expect(released.map(({ usage }) => usage.completionTokens)).toEqual([3]);
  });

  it.each([
    ['that gave its lease back before', true],
    ['that holds its lease', false],
  ])('passes on what work throws %s, when it was evicted and cannot wait again', async (_, releases) => {
    const { flow } = makeFlow({ eviction: inFlightEviction({ filter: { type: 'any', accepts: () => true } }) });
    const running = flow.run(
      request,
      key('a', -1),
      async (lease) => {
        lease.report({ completionTokens: 5 });
        await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
        if (releases) lease.release();
        throw new RangeError('work');
      },
      { onEvicted: 'requeue' },
    );
    const caught = running.catch((error: unknown) => error);
    await turns();
    void flow.enqueue(request, key('b', 5));
    const error = await caught;
    if (releases) expect(error).toEqual(new RangeError('work'));
    else
      expect(error).toMatchObject({
        code: expect.any(String),
        drop: { reason: 'evicted' },
        cause: new RangeError('work'),
      });
  });

  it.each(['drop', 'requeue'] as const)(
    'never starts work that is evicted before it hears of its lease: %s',
    async (onEvicted) => {
      const { flow } = makeFlow({ eviction: inFlightEviction() });
      const first = runNow(flow);
      let calls = 0;
      const running = flow.run(request, key('a', -1), () => calls++, { onEvicted });
      first.release();
      const premium = flow.enqueue(request, key('b', 5));
      const ended = running.catch((error: unknown) => error);
      const lease = leaseOf(await premium);
      expect([calls, flow.stats().inFlight]).toEqual([0, 1]);
      lease.release();
      if (onEvicted === 'drop') expect(await ended).toBeInstanceOf(FlowEvictedError);
      else expect([await ended, calls]).toEqual([0, 1]);
    },
  );

  it('throws a drop as a FlowControlError, and never calls work', async () => {
    const { flow, clock } = makeFlow();
    runNow(flow);
    let calls = 0;
    const running = flow.run({ ...request, ttlMs: 100 }, key(), () => calls++);
    const caught = running.catch((error: unknown) => error);
    clock.advance(100);
    const error = await caught;
    expect(error).toBeInstanceOf(FlowControlError);
    expect(error).toMatchObject({ outcome: 'EvictedTTL', status: 503, drop: { reason: 'ttl-expired', queuedMs: 100 } });
    expect(calls).toBe(0);
    expect(flow.stats()).toMatchObject({ inFlight: 1, evicted: 1 });
  });

  it('throws a FlowConfigError for a call that cannot be right', async () => {
    const { flow } = makeFlow();
    await expect(flow.run({ byteSize: -1 }, key(), () => 1)).rejects.toBeInstanceOf(FlowConfigError);
    expect(flow.stats().enqueued).toBe(0);
  });

  it('serves a queue of works one after the other', async () => {
    const { flow } = makeFlow();
    const log: string[] = [];
    await Promise.all(
      ['a', 'b', 'c'].map((name) =>
        flow.run(request, key(name), async () => {
          log.push(`${name} begins`);
          await turns();
          log.push(`${name} ends`);
        }),
      ),
    );
    expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });
});
