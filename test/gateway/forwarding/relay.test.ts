import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { describe, expect, it, vi } from 'vitest';
import { Relay, type RelayHost } from '../../../src/gateway/forwarding/relay.js';
import { RequestState } from '../../../src/gateway/request-state.js';

describe('an answer that Node does not write', () => {
  it.each([
    ['whole', {}],
    ['streamed', { 'content-type': 'text/event-stream' }],
  ])('is told as a failure, and its body is not read: %s', (_how, type) => {
    const res = new ServerResponse(new IncomingMessage(new Socket()));
    const abort = vi.fn();
    const controller = { abort, pause: vi.fn(), resume: vi.fn() } as unknown as Dispatcher.DispatchController;
    const fail = vi.fn();
    const host = {
      idleMs: 1,
      closesConnection: false,
      begins() {},
      watch: () => undefined,
      passes: vi.fn(),
      done: vi.fn(),
      fail,
    };
    const relay = new Relay(new RequestState(new IncomingMessage(new Socket()), res), host as unknown as RelayHost);
    relay.onRequestStart(controller);
    relay.onResponseStart(controller, 200, { ...type, 'x-odd': '\u20ac', 'x-mine': '1' });
    relay.onResponseData(controller, Buffer.from('hello'));
    expect(fail).toHaveBeenCalledOnce();
    expect(abort).toHaveBeenCalledOnce();
    expect([host.passes, host.done].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
    // What is told in its place has nothing of it.
    expect([res.headersSent, res.hasHeader('x-mine'), res.hasHeader('x-odd')]).toEqual([false, false, false]);
  });
});
