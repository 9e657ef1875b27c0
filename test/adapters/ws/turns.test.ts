/** The turns of one socket, without a socket and without a gate: the test gives seats and speaks for both sides. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { RequestFlow } from '../../../src/adapters/http/request-flow.js';
import type { Frame, Turn } from '../../../src/adapters/ws/turn.js';
import type { SocketDialect } from '../../../src/adapters/ws/turn-events.js';
import { Turns } from '../../../src/adapters/ws/turns.js';
import { fakeLease } from './support.js';

/** What went to either side, and which turns ask for a seat. */
function socketOf(dialect: SocketDialect, { isServed = false, hasServer = true } = {}) {
  const toClient: { type: string; [name: string]: unknown }[] = [];
  const toServer: string[] = [];
  const asking: Turn[] = [];
  const stopped: Turn[] = [];
  class FakeTurns extends Turns {
    override get isReady() {
      return true;
    }
    override toClient(data: Buffer | string) {
      toClient.push(JSON.parse(data.toString()));
    }
    override stop(turn: Turn) {
      stopped.push(turn);
      return !hasServer;
    }
    override sign(text: string) {
      this.toClient(text);
    }
    override moved() {}
    override fromClient(given: Frame) {
      super.fromClient(given);
    }
    override leave() {
      super.leave();
    }
    get bytes() {
      return this.heldBytes;
    }
  }
  const turns = new FakeTurns(dialect, {
    isServed,
    forward: ({ data }) => void toServer.push(data.toString()),
    ask: (turn) => void asking.push(turn),
  });
  const frame = (event: object | string) => ({
    data: Buffer.from(typeof event === 'string' ? event : JSON.stringify(event)),
    isBinary: false,
  });
  return {
    turns,
    toClient,
    toServer,
    asking,
    stopped,
    client: (event: object | string) => turns.fromClient(frame(event)),
    server: (event: object | string) => turns.fromServer(frame(event)),
    /** Gives the oldest turn that asks its seat, and returns it. */
    grant(): Turn {
      const turn = asking.shift()!;
      turns.grant(turn, new RequestFlow(fakeLease(), 0, {}), Infinity);
      return turn;
    },
    types: () => toClient.map(({ type }) => type),
  };
}

const create = (more: object = {}) => ({ type: 'response.create', ...more });
const created = (id: string, more: object = {}) => ({ type: 'response.created', response: { id }, ...more });
const ended = (type: string, id: string, more: object = {}) => ({
  type: `response.${type}`,
  response: { id },
  ...more,
});
const full = { type: 'rate_limit_error', code: 'ERR_FLOW_SATURATED', message: 'full', status: 429, retry_after_ms: 5 };

describe.each(['responses', 'realtime'] as const)('a turn of %s', (dialect) => {
  it('goes to the server with its seat, and not before', () => {
    const { client, toServer, grant } = socketOf(dialect);
    client(create());
    expect(toServer).toEqual([]);
    expect(grant().phase).toBe('running');
    expect(toServer).toEqual([JSON.stringify(create())]);
  });

  it.each(dialect === 'realtime' ? ['done'] : ['completed', 'failed', 'incomplete', 'cancelled'])(
    'is over at response.%s',
    (type) => {
      const { client, server, grant, turns, types } = socketOf(dialect);
      client(create());
      const turn = grant();
      server(created('r'));
      expect(turn.responseId).toBe('r');
      server(ended(type, 'r'));
      expect([turn.phase, turns.count]).toEqual(['over', 0]);
      expect(types()).toEqual(['response.created', `response.${type}`]);
    },
  );

  it('is over at the error of a server that did not begin it', () => {
    const { client, server, grant, turns } = socketOf(dialect);
    client(create({ event_id: 'mine' }));
    grant();
    server({ type: 'error', error: { code: 'bad', event_id: dialect === 'realtime' ? 'mine' : undefined } });
    expect(turns.count).toBe(0);
  });

  it('that is dropped is an error with code, message and wait', () => {
    const { client, turns, asking, toClient, toServer } = socketOf(dialect);
    client(create({ event_id: 'mine' }));
    turns.fail(asking[0]!, full);
    expect(toClient).toHaveLength(1);
    expect(toClient[0]).toMatchObject({ type: 'error', error: { ...full, event_id: 'mine' } });
    expect([turns.count, toServer]).toEqual([0, []]);
  });

  it('that is evicted ends by the event that ends a response, and is told to stop; its seat stays until it has', () => {
    const { client, server, turns, grant, toClient, stopped } = socketOf(dialect);
    client(create());
    const turn = grant();
    server(created('r'));
    turns.fail(turn, full);
    expect(stopped).toEqual([turn]);
    expect(toClient[1]).toMatchObject({
      type: dialect === 'realtime' ? 'response.done' : 'response.failed',
      response: { id: 'r', status: 'failed' },
    });
    // What the server still says of it is not for the client.
    server({ type: 'response.output_text.delta', response_id: 'r', delta: 'x' });
    expect([toClient.length, turn.phase]).toEqual([2, 'ending']);
    server(ended(dialect === 'realtime' ? 'done' : 'incomplete', 'r'));
    expect([toClient.length, turn.phase, turns.count]).toEqual([2, 'over', 0]);
  });

  it('that waits is cancelled without a word to the server', () => {
    const { client, turns, toServer, toClient } = socketOf(dialect);
    client(create());
    client({ type: 'response.cancel' });
    expect([turns.count, toServer]).toEqual([0, []]);
    expect(toClient[0]).toMatchObject({ response: { status: 'cancelled' } });
    expect(toClient[0]?.type).toBe(dialect === 'realtime' ? 'response.done' : 'response.incomplete');
  });

  it('that runs is cancelled by the server', () => {
    const { client, server, grant, turns, toServer } = socketOf(dialect);
    client(create());
    grant();
    server(created('r'));
    client({ type: 'response.cancel', response_id: 'r' });
    expect(toServer.at(-1)).toContain('response.cancel');
    expect(turns.count).toBe(1);
    server(ended(dialect === 'realtime' ? 'done' : 'cancelled', 'r'));
    expect(turns.count).toBe(0);
  });

  it.each(['waiting', 'running'])(
    'whose client leaves while it is %s is over, and says that it was not sent',
    (phase) => {
      const { client, grant, turns, asking } = socketOf(dialect);
      client(create());
      const turn = phase === 'running' ? grant() : asking[0]!;
      let sent: boolean | undefined;
      turn.onEnd((isSent) => {
        sent = isSent;
      });
      turns.leave();
      expect([turn.phase, sent, turns.count]).toEqual(['over', false, 0]);
      // A seat that comes too late finds nobody.
      turns.grant(turn, new RequestFlow(fakeLease(), 0, {}), Infinity);
      expect(turn.phase).toBe('over');
    },
  );

  it('is told to wait by response.queued, with its place if that is known', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { client, asking, toClient } = socketOf(dialect);
    client(create());
    const [turn] = asking;
    const place = () => ({ position: 3, estimated_wait_ms: undefined });
    turn!.showLife({ kind: 'events', afterMs: 5, everyMs: 5, sign: () => '', place, instead() {}, tell() {} });
    expect(toClient).toEqual([]);
    vi.advanceTimersByTime(5);
    expect(toClient[0]).toMatchObject({
      type: 'response.queued',
      response: { id: turn!.id, status: 'queued' },
      position: 3,
    });
  });

  it('that a server begins by itself passes at once, and asks for a seat', () => {
    const { server, asking, grant, turns, types } = socketOf(dialect);
    server(created('own'));
    expect([asking.length, asking[0]!.isOwn]).toEqual([1, false]);
    grant();
    server(ended(dialect === 'realtime' ? 'done' : 'completed', 'own'));
    expect([turns.count, types().length]).toEqual([0, 2]);
  });

  it('that a server begins by itself, and gets no seat, is stopped', () => {
    const { server, asking, turns, stopped, types } = socketOf(dialect);
    server(created('own'));
    turns.fail(asking[0]!, full);
    expect(stopped).toHaveLength(1);
    expect(types()).toEqual(['response.created', dialect === 'realtime' ? 'response.done' : 'response.failed']);
  });
});

describe('the client of Realtime', () => {
  it('has its frames kept in order behind a turn that waits', () => {
    const { client, grant, toServer, turns } = socketOf('realtime');
    client({ type: 'conversation.item.create', n: 1 });
    client(create());
    client({ type: 'conversation.item.create', n: 2 });
    client(create({ response: { conversation: 'none' } }));
    client({ type: 'input_audio_buffer.append', audio: 'AAAA' });
    const kinds = () => toServer.map((text) => JSON.parse(text).type);
    expect(kinds()).toEqual(['conversation.item.create']);
    expect(turns.bytes).toBeGreaterThan(0);
    grant();
    expect(kinds()).toEqual(['conversation.item.create', 'response.create', 'conversation.item.create']);
    grant();
    expect(kinds().slice(3)).toEqual(['response.create', 'input_audio_buffer.append']);
    expect(turns.bytes).toBe(0);
  });

  it('can cancel what runs while another of its turns waits', () => {
    const { client, server, grant, toServer } = socketOf('realtime');
    client(create());
    grant();
    server(created('r1'));
    client(create({ response: { conversation: 'none' } }));
    client({ type: 'response.cancel', response_id: 'r1' });
    expect(JSON.parse(toServer.at(-1)!)).toMatchObject({ type: 'response.cancel', response_id: 'r1' });
  });

  it('keeps the turn of a response that runs when something else was wrong', () => {
    const { client, server, grant, turns } = socketOf('realtime');
    client(create());
    grant();
    server(created('r'));
    server({ type: 'error', error: { code: 'unknown_event', event_id: 'other' } });
    server({ type: 'error', error: { code: 'unknown_event' } });
    expect(turns.count).toBe(1);
  });

  it('hides no turn behind an escape', () => {
    const { client, asking } = socketOf('realtime');
    client('{"type":"response.\\u0063reate"}');
    client('{"t\\u0079pe":"response.create"}');
    expect(asking).toHaveLength(1);
  });
});

describe('the client of Responses', () => {
  it('has one turn at a time in a lane, and lanes side by side', () => {
    const { client, server, asking, grant } = socketOf('responses');
    client(create({ n: 1 }));
    client(create({ n: 2 }));
    client(create({ stream_id: 'b' }));
    expect(asking.map(({ req }) => req.lane)).toEqual(['', 'b']);
    grant();
    grant();
    server(created('r1'));
    server(created('b1', { stream_id: 'b' }));
    server(ended('completed', 'b1', { stream_id: 'b' }));
    expect(asking).toHaveLength(0);
    server(ended('completed', 'r1'));
    expect(asking.map(({ req }) => req.fields.n)).toEqual([2]);
  });

  it('hears of the drop in the lane of the turn', () => {
    const { client, turns, asking, toClient } = socketOf('responses');
    client(create({ stream_id: 'b' }));
    turns.fail(asking[0]!, full);
    expect(toClient[0]).toMatchObject({ stream_id: 'b', code: full.code, retry_after_ms: 5 });
  });

  it('may steer what runs, and the response that follows it has a seat of its own', () => {
    const { client, server, grant, asking, toServer } = socketOf('responses');
    client(create());
    grant();
    server(created('r1'));
    client({ type: 'response.steer', previous_response_id: 'r1', input: 'faster' });
    expect(toServer.at(-1)).toContain('response.steer');
    server(ended('incomplete', 'r1'));
    server(created('r2'));
    expect(asking.map(({ responseId }) => responseId)).toEqual(['r2']);
  });
});

describe('a turn that its host serves', () => {
  it('is cancelled where it runs', () => {
    const { client, grant, turns, toClient } = socketOf('responses', { isServed: true, hasServer: false });
    client(create());
    grant();
    client({ type: 'response.cancel' });
    expect(turns.count).toBe(0);
    expect(toClient[0]).toMatchObject({ type: 'response.incomplete', response: { status: 'cancelled' } });
  });
});

it('frames that are no events pass as they came', () => {
  const { client, server, toServer, turns } = socketOf('responses');
  for (const text of ['', 'nonsense', '[]', '{"type":7}', '{"type":"response.create"', '"response.create"'])
    client(text);
  expect(toServer).toHaveLength(6);
  server('{"a":1}');
  expect(turns.count).toBe(0);
});
