/** Random frames of both sides, and random moments of the gate, on sockets without a network: what must always hold. */
import { EventEmitter } from 'node:events';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { HttpFlowRequest } from '../../src/adapters/http/index.js';
import { flowTurns, type SocketDialect, type TurnEvent, type WebSocketLike } from '../../src/adapters/ws/index.js';
import { FlowController } from '../../src/index.js';
import { audit, ManualClock } from '../../src/testing/index.js';
import { turns as settled } from '../support/flow.js';

/** Open until it is closed, and as slow as the test says. */
class FakeSocket extends EventEmitter implements WebSocketLike {
  readyState = 1;
  bufferedAmount = 0;
  isPaused = false;
  readonly sent: string[] = [];
  private readonly unsent: (() => void)[] = [];
  send(data: Buffer | string, _: object, sent: () => void): void {
    this.sent.push(data.toString());
    this.bufferedAmount += data.length;
    this.unsent.push(sent);
  }
  flush(): void {
    this.bufferedAmount = 0;
    for (const sent of this.unsent.splice(0)) sent();
  }
  close(code = 1000): void {
    if (this.readyState !== 1) return;
    this.readyState = 3;
    this.emit('close', code, Buffer.from(''));
  }
  terminate(): void {
    this.close(1006);
  }
  ping(): void {}
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
}

const id = fc.constantFrom('r1', 'r2', 'r3', undefined);
const lane = fc.constantFrom(undefined, 'a', 'b');
const fromClient = fc.oneof(
  fc.record({ type: fc.constant('response.create'), stream_id: lane, event_id: id }),
  fc.record({ type: fc.constantFrom('response.cancel', 'response.interrupt'), response_id: id, stream_id: lane }),
  fc.record({ type: fc.constantFrom('response.steer', 'conversation.item.create', 'session.update') }),
  fc.json().map((text) => ({ text })),
);
const kinds = ['created', 'output_text.delta', 'completed', 'done', 'failed', 'incomplete', 'cancelled'];
const fromServer = fc.oneof(
  fc.record({
    type: fc.constantFrom(...kinds.map((kind) => `response.${kind}`)),
    response: fc.record({ id }),
    stream_id: lane,
  }),
  fc.record({ type: fc.constant('error'), error: fc.record({ event_id: id }), stream_id: lane }),
  fc.json().map((text) => ({ text })),
);
const step = fc.oneof(
  { weight: 20, arbitrary: fc.tuple(fc.constantFrom('client' as const), fromClient) },
  { weight: 20, arbitrary: fc.tuple(fc.constantFrom('server' as const), fromServer) },
  { weight: 8, arbitrary: fc.tuple(fc.constantFrom('seat', 'time', 'flush', 'bytes'), fc.constant({})) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('client leaves', 'server leaves', 'drain'), fc.constant({})) },
);

it.each<SocketDialect>(['responses', 'realtime'])(
  'whatever %s says, a seat is a turn, and none is left',
  async (dialect) => {
    let [dispatched, dropped] = [0, 0];
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
        const clock = new ManualClock();
        const flow = new FlowController<HttpFlowRequest<TurnEvent>>({
          maxConcurrency: 2,
          clock,
          defaultRequestTtl: 5_000,
        });
        const other = await flow.enqueue({ byteSize: 1 } as never, { fairnessId: 'other', priority: 0 });
        const [client, server] = [new FakeSocket(), new FakeSocket()];
        const options = { dialect, server, idleMs: Infinity, turnMs: Infinity, maxBufferedBytes: 500 };
        const own = flowTurns(flow, client, { ...options, classify: () => ({ fairnessId: 'a', priority: 0 }) });
        for (const [kind, event] of steps) {
          const text = 'text' in event ? String(event.text) : JSON.stringify(event);
          if (kind === 'client') client.emit('message', Buffer.from(text), false);
          else if (kind === 'server') server.emit('message', Buffer.from(text), false);
          else if (kind === 'bytes') client.emit('message', Buffer.from([1, 2]), true);
          else if (kind === 'seat' && other.type === 'Dispatched') other.lease.release();
          else if (kind === 'time') clock.advance(3_000);
          else if (kind === 'client leaves') client.close();
          else if (kind === 'server leaves') server.close();
          else if (kind === 'drain') own.drain();
          else for (const socket of [client, server]) socket.flush();
          await settled();
          const { inFlight, waiting } = flow.stats();
          const ofOthers = other.type === 'Dispatched' && !other.lease.isReleased ? 1 : 0;
          // Each turn waits or has one seat.
          expect(inFlight - ofOthers + waiting).toBe(own.count);
          expect(inFlight).toBeLessThanOrEqual(2);
          if (client.readyState === 3) expect([own.count, server.readyState]).toEqual([0, 3]);
          // What one side does not take is not read from the other.
          if (client.readyState === 1) expect(server.isPaused).toBe(client.bufferedAmount > 500);
        }
        for (const text of [...client.sent, ...server.sent].filter((each) => each.startsWith('{'))) JSON.parse(text);
        client.close();
        await settled();
        if (other.type === 'Dispatched') other.lease.release();
        const { inFlight, waiting, dispatched: went, outcomes } = flow.stats();
        expect([inFlight, waiting, audit(flow).violations]).toEqual([0, 0, []]);
        dispatched += went - 1;
        dropped += outcomes.EvictedTTL;
        await flow.close();
      }),
      { numRuns: 200, seed: 11 },
    );
    expect(dispatched).toBeGreaterThan(200);
    expect(dropped).toBeGreaterThan(0);
  },
);
