import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, describe, expect, it } from 'vitest';
import { publishDiagnostics } from '../../../src/adapters/node/index.js';
import { key, makeFlow, request, runNow } from '../../support/flow.js';

const subscriptions: [string, (message: unknown) => void][] = [];

function collect(...events: string[]): [string, Record<string, unknown>][] {
  const messages: [string, Record<string, unknown>][] = [];
  for (const event of events) {
    const listener = (message: unknown) => messages.push([event, message as Record<string, unknown>]);
    subscribe(`headgate:${event}`, listener);
    subscriptions.push([`headgate:${event}`, listener]);
  }
  return messages;
}

afterEach(() => {
  for (const [name, listener] of subscriptions.splice(0)) unsubscribe(name, listener);
});

describe('publishDiagnostics', () => {
  it('publishes what the controller announces, and says which controller', () => {
    const { flow, clock } = makeFlow();
    const messages = collect('queued', 'dispatched', 'dropped', 'released', 'gate', 'bandAdded');
    const diagnostics = publishDiagnostics(flow);
    const lease = runNow(flow);
    void flow.enqueue({ ...request, ttlMs: 10 }, key('a', 5));
    clock.advance(10);
    lease.release();
    expect(messages.map(([event]) => event)).toEqual([
      'dispatched',
      'bandAdded',
      'gate',
      'queued',
      'dropped',
      'gate',
      'released',
    ]);
    expect(messages.every(([, message]) => message.flow === flow)).toBe(true);
    expect(messages[4]?.[1]).toMatchObject({
      request: { ttlMs: 10 },
      outcome: { type: 'EvictedTTL', reason: 'ttl-expired' },
    });
    diagnostics.stop();
    runNow(flow);
    expect(messages).toHaveLength(7);
  });

  it('begins when somebody subscribes, and ends when nobody does', () => {
    const { flow } = makeFlow({ saturationDetector: () => 0 });
    publishDiagnostics(flow);
    runNow(flow);
    const messages = collect('dispatched');
    runNow(flow, { fairnessId: 'seen' });
    const [name, listener] = subscriptions.splice(0)[0]!;
    unsubscribe(name, listener);
    runNow(flow);
    expect(messages.map(([, { item }]) => (item as { fairnessId: string }).fairnessId)).toEqual(['seen']);
  });
});

it.each([{}, undefined, 'flow'])('needs a controller, not %j', (flow) => {
  expect(() => publishDiagnostics(flow as never)).toThrow('publishDiagnostics: expected a FlowController; got ');
});
