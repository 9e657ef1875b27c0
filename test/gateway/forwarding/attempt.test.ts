import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { describe, expect, it, vi } from 'vitest';
import { Attempt, type AttemptOptions } from '../../../src/gateway/forwarding/attempt.js';
import { RequestState } from '../../../src/gateway/request-state.js';
import type { Lease } from '../../../src/index.js';

describe('an answer that Node does not write', () => {
  it.each([
    ['whole', {}],
    ['streamed', { 'content-type': 'text/event-stream' }],
  ])('is told as a failure, and its body is not read: %s', (_how, type) => {
    const res = new ServerResponse(new IncomingMessage(new Socket()));
    const abort = vi.fn();
    const controller = { abort, pause: vi.fn(), resume: vi.fn() } as unknown as Dispatcher.DispatchController;
    const tell = vi.fn();
    const lease = { signal: { aborted: false }, answered: vi.fn() };
    const options = {
      config: { timeouts: { total: 60_000, idle: 1 } },
      upstream: { id: 'a' },
      counters: { failures: { add: vi.fn() } },
      firstTokenMs: Number.POSITIVE_INFINITY,
    };
    const state = new RequestState(new IncomingMessage(new Socket()), res);
    const attempt = new Attempt(state, lease as unknown as Lease, options as unknown as AttemptOptions, tell);
    attempt.onRequestStart(controller);
    attempt.onResponseStart(controller, 200, { ...type, 'x-odd': '\u20ac', 'x-mine': '1' });
    attempt.onResponseData(controller, Buffer.from('hello'));
    expect(tell.mock.calls).toEqual([
      [{ type: 'failed', error: expect.objectContaining({ code: 'upstream_failed' }) }],
    ]);
    expect(abort).toHaveBeenCalledOnce();
    expect([lease.answered.mock.calls.length, state.isPassedOn]).toEqual([0, false]);
    // What is told in its place has nothing of it.
    expect([res.headersSent, res.hasHeader('x-mine'), res.hasHeader('x-odd')]).toEqual([false, false, false]);
  });
});
