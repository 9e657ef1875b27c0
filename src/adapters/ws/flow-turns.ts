/** Flow control for servers on the package `ws`: a lease for each turn of a socket, and none while it is idle. */
import * as s from '../../base/schema/schema.js';
import type { Lease } from '../../index.js';
import type { AdapterGate, Classification, HttpFlowRequest } from '../http/adapter-options.js';
import { HttpFlowControl, type Verdict } from '../http/http-flow-control.js';
import type { WaitingOptions } from '../http/life-signs.js';
import type { RequestFlow } from '../http/request-flow.js';
import type { Turn } from './turn.js';
import { fault, type SocketDialect, type TurnEvent } from './turn-events.js';
import { TurnSocket, type WebSocketLike } from './turn-socket.js';

/** A turn that has its seat, for `serve`. */
export interface ServedTurn {
  /** The client's `response.create`: `event.fields` is all of it. */
  readonly event: TurnEvent;
  readonly lease: Lease;
  /** Time spent waiting for the lease, ms. */
  readonly queuedMs: number;
  /** Aborts when the client leaves or cancels, at an eviction, and at the end of its time. */
  readonly signal: AbortSignal;
  /** Sends an event to the client. Await it: it resolves when the client takes more. */
  send(event: object): Promise<void>;
}

export interface FlowTurnsOptions {
  /** Names the flow of a turn. Synchronous. */
  classify: (event: TurnEvent) => Classification;
  /** The words of the client. @default 'responses' */
  dialect?: SocketDialect | undefined;
  /** Does a turn, until it settles or has ended the response. */
  serve?: ((turn: ServedTurn) => Promise<void> | void) | undefined;
  /** The other frames, with `serve`. */
  onMessage?: ((data: Buffer, isBinary: boolean) => void) | undefined;
  /** In place of `serve`. It may be opening. */
  server?: WebSocketLike | undefined;
  /** Events for clients whose turns wait. @default silence */
  waiting?: Pick<WaitingOptions<TurnEvent>, 'after' | 'every' | 'place' | 'onSign'> | undefined;
  /** Open sockets of the controller. An integer from 1 up. @default unlimited */
  maxSockets?: number | undefined;
  /** Longest silence without a turn, ms above 0. @default 600_000 */
  idleMs?: number | undefined;
  /** Of a message. Integer bytes from 1 up. @default 8_388_608 */
  maxMessageBytes?: number | undefined;
  /** Unread by one side. Integer bytes from 1 up. @default 1_048_576 */
  maxBufferedBytes?: number | undefined;
  /** From the seat to the end, ms above 0. @default 1_800_000 */
  turnMs?: number | undefined;
  /** Hears what the other functions throw. */
  onError?: ((error: unknown) => void) | undefined;
}

/** The turns of one socket. */
export interface SocketTurns {
  /** That wait or run. */
  readonly count: number;
  /** Closes the socket with 1012 as soon as none does. */
  drain(): void;
}

/** `waiting` is checked with the options of every adapter. */
const optionsSchema = s.object(
  {
    dialect: s.optional(s.oneOf('responses', 'realtime'), 'responses'),
    serve: s.optional(s.callable<NonNullable<FlowTurnsOptions['serve']>>()),
    onMessage: s.optional(s.callable<NonNullable<FlowTurnsOptions['onMessage']>>()),
    server: s.optional(s.objectWith<WebSocketLike>('a WebSocket of the package ws', 'send', 'pause')),
    maxSockets: s.optional(s.positiveInteger(), Infinity),
    idleMs: s.optional(s.msAboveZero(), 600_000),
    maxMessageBytes: s.optional(s.positiveInteger(), 8_388_608),
    maxBufferedBytes: s.optional(s.positiveInteger(), 1_048_576),
    turnMs: s.optional(s.msAboveZero(), 1_800_000),
    onError: s.optional(s.callable<(error: unknown) => void>()),
    classify: s.callable<FlowTurnsOptions['classify']>('a function that answers at once'),
    waiting: s.optional(s.anything()),
  } satisfies Record<keyof FlowTurnsOptions, unknown>,
  ({ serve, server }, report) => {
    if ((serve === undefined) === (server === undefined)) report('one of "serve" and "server"');
  },
);

type Gate = AdapterGate<HttpFlowRequest<TurnEvent>>;

/** Open sockets by controller. */
const socketsOf = new WeakMap<object, number>();

/**
 * Puts the turns of a socket behind the gate, from `response.create` to the event that ends the response. A turn that
 * is dropped is told by `error`, a response that is stopped by the event that ends it.
 * @throws FlowConfigError for options that cannot be right.
 * @example
 * new WebSocketServer({ port: 8080 }).on('connection', (socket, req) =>
 *   flowTurns(flow, socket, { classify: () => ({ fairnessId: tenantOf(req), priority: 0 }), serve: answer }));
 */
export function flowTurns(flow: Gate, socket: WebSocketLike, options: FlowTurnsOptions): SocketTurns {
  const read = s.parse(optionsSchema, options, 'flowTurns');
  const { dialect, serve, onMessage, server, maxSockets, turnMs, onError, ...limits } = read;
  const { classify, waiting } = options;
  const rules = { body: 'openai', uploadIdleMs: Infinity, classify, waiting } as const;
  const control = new HttpFlowControl<TurnEvent, TurnEvent>(flow, rules);

  function fail(error: unknown, turn?: Turn): void {
    onError?.(error);
    if (turn !== undefined) sockets.fail(turn, internal);
  }

  function follow(turn: Turn, verdict: Verdict): void {
    if (verdict.type === 'pass') sockets.grant(turn, verdict.flow, turnMs);
    else if (verdict.type === 'reject') turn.reject(verdict.response);
    else if (verdict.type === 'fail') fail(verdict.error, turn);
  }

  async function run(turn: Turn, { lease, queuedMs }: RequestFlow): Promise<void> {
    const { req: event } = turn;
    const own = event.lane !== '' && { stream_id: event.lane };
    const send = (given: object): Promise<void> => {
      const data = Buffer.from(JSON.stringify({ ...own, ...given }));
      if (!turn.isAnswered) sockets.fromServer({ data, isBinary: false }, turn);
      return sockets.taken();
    };
    try {
      await serve?.({ event, lease, queuedMs, send, signal: lease.signal });
      sockets.over(turn, true);
    } catch (error) {
      // What was told to stop may throw.
      if (!turn.isAnswered) fail(error, turn);
    }
  }

  const sockets = new TurnSocket(socket, dialect, limits, {
    isServed: serve !== undefined,
    ask(turn) {
      const verdict = control.judge(turn.req, turn);
      if ('then' in verdict) void verdict.then((late) => follow(turn, late));
      else follow(turn, verdict);
    },
    forward(frame, turn) {
      if (server !== undefined) return sockets.toServer(frame);
      if (turn?.granted !== undefined) return void run(turn, turn.granted);
      try {
        onMessage?.(frame.data, frame.isBinary);
      } catch (error) {
        fail(error);
      }
    },
  });
  const count = (socketsOf.get(flow) ?? 0) + 1;
  socketsOf.set(flow, count);
  socket.on('close', () => socketsOf.set(flow, (socketsOf.get(flow) ?? 1) - 1));
  if (server !== undefined) sockets.connect(server);
  if (count > maxSockets) sockets.close(1013, 'too many sockets');
  return sockets;
}

const internal = fault(500, 'internal', 'The turn failed.');
