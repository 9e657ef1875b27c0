/**
 * Sockets of `/v1/responses` and `/v1/realtime`: each turn goes the way of a request, and its frames to the server that
 * its socket is connected to. Realtime connects at once, because the server speaks first; Responses with its first
 * turn. Invariant: a socket holds no seat. A turn waits for the server of its socket and for no other, because the
 * conversation is there. The next server is asked where this one was not reached, and so has nothing of it, or has
 * refused a turn of Responses that goes on from no answer, beside no other turn.
 */
import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Turn } from '../../adapters/ws/turn.js';
import { TurnSocket } from '../../adapters/ws/turn-socket.js';
import { put } from '../../base/put.js';
import { isUnconnected } from '../../base/unconnected.js';
import type { EndpointView } from '../../index.js';
import { type ErrorAnswer, failureOf, refusalOf } from '../forwarding/attempt.js';
import { toUpstream } from '../forwarding/forwarded-headers.js';
import { bodyFor, locationOf } from '../forwarding/upstream-request.js';
import { type GatewayHttpRequest, RequestState } from '../request-state.js';
import type { UpstreamConfig } from '../settings/gateway-config.js';
import { ApiError } from '../shared/api-error.js';
import { allowOrigin } from '../shared/cors.js';
import type { RequestHandler } from './request-handler.js';
import { TurnState } from './turn-state.js';

type Ws = typeof import('ws');

const paths: readonly string[] = ['/v1/responses', '/v1/realtime'];
const plain = { perMessageDeflate: false };
const maxBufferedBytes = 1_048_576;

/** A client, and the server that it talks to. */
interface GatewaySocket {
  readonly turns: TurnSocket;
  endpoint: EndpointView | undefined;
}

function connected(handler: RequestHandler, ws: Ws, client: WebSocket, asked: RequestState): GatewaySocket {
  const { timeouts, limits } = handler.setup.config;
  const { upstreams } = handler.parts;
  const isRealtime = isOfOneModel(asked);
  const states = new Map<Turn, TurnState>();

  /** The turn has its seat. */
  const take: TurnState['take'] = (state, options, tell) => {
    const { turn, granted, lease } = state;
    state.attempt = { options, tell };
    if (own.endpoint === undefined && lease?.endpoint !== undefined) connect(lease.endpoint);
    if (turn.frame !== undefined) turn.frame = { data: bodyFor(state, options.upstream), isBinary: false };
    own.turns.grant(turn, granted, options.config.timeouts.total, () => tell({ type: 'failed', error: tooLate }));
  };

  /** The server has ended the turn before any other word of it. True when another server is asked. */
  function isMoved(state: TurnState, answer: ErrorAnswer): boolean {
    const { turn, lease, attempt, isPassedOn } = state;
    if (isPassedOn || turn.phase !== 'running' || lease === undefined || attempt === undefined) return false;
    const error = refusalOf(state, lease, attempt.options, answer);
    // What goes on from an answer needs the server that has it, and what runs beside the turn would be lost.
    const { previous_response_id: previous, conversation } = turn.req.fields;
    const mayLeave = !isRealtime && turn.isOwn && own.turns.count === 1 && (previous ?? conversation ?? null) === null;
    if (error === undefined || !mayLeave || !(lease.isPutOff || upstreams.hasOther(state))) return false;
    leaveServer(error);
    return true;
  }

  /** Turns ask for seats at any server, or are told why not. */
  function leaveServer(error: ApiError): void {
    own.endpoint = undefined;
    own.turns.disconnect();
    for (const state of states.values()) {
      state.pinnedTo = undefined;
      own.turns.again(state.turn, state.bytes);
      state.attempt?.tell({ type: state.attempt.options.mayRetry ? 'refused' : 'failed', error });
    }
  }

  function connect(endpoint: EndpointView): void {
    const { enabled, max, avoidFor } = handler.setup.config.retry;
    const upstream = upstreams.configOf(endpoint);
    own.endpoint = endpoint;
    asked.attempts.push(endpoint.id);
    own.turns.connect(openServer(handler, ws, asked, upstream), (failure, code) => {
      if (isUnconnected(failure)) handler.refused(endpoint, avoidFor, true);
      const broken = new ApiError(502, 'upstream_failed', `${upstream.id} closed its socket.`);
      const error = failure === undefined ? broken : failureOf(failure, upstream.id);
      const running = [...states.values()];
      if (inOrder.has(code) && running.some((state) => isMoved(state, refusal))) return;
      for (const { attempt } of running) attempt?.options.counters.failures.add(1, upstream.id, error.code);
      const [next] = isRealtime && failure !== undefined && enabled ? serversFor(handler, asked) : [];
      if (failure !== undefined && !isRealtime) {
        for (const { lease } of running) lease?.unsent();
        leaveServer(error);
      } else if (next !== undefined && asked.attempts.length <= max) {
        own.turns.disconnect();
        connect(next);
      } else for (const state of running) handler.fail(state, error);
    });
  }

  const socketLimits = { idleMs: timeouts.socket, maxMessageBytes: limits.maxRequestBytes, maxBufferedBytes };
  const turns = new TurnSocket(client, isRealtime ? 'realtime' : 'responses', socketLimits, {
    isServed: false,
    ask(turn) {
      const state = new TurnState(asked.req, turn, take);
      if (isRealtime) Object.assign(state, { model: asked.model, targetModel: asked.targetModel });
      states.set(turn, state);
      turn.onEnd(() => states.delete(turn));
      handler.enterTurn(state, !isRealtime, own.endpoint);
    },
    forward: (frame) => own.turns.toServer(frame),
    heard: (turn, event, text) => states.get(turn)?.heard(event, text, isMoved) === true,
  });
  const own: GatewaySocket = { turns, endpoint: undefined };
  const [first] = isRealtime ? serversFor(handler, asked) : [];
  if (first !== undefined) connect(first);
  return own;
}

const tooLate = new ApiError(504, 'upstream_timeout', 'The answer took too long.');
/** A server that closes so with no word of a turn refuses it; one that breaks off may have worked on it. */
const inOrder: ReadonlySet<number> = new Set([1000, 1001, 1005, 1012, 1013]);
const refusal: ErrorAnswer = { status: 503, headers: {}, body: '' };

function openServer(handler: RequestHandler, ws: Ws, asked: RequestState, upstream: UpstreamConfig): WebSocket {
  const { config, senders } = handler.setup;
  const { origin, pathname } = locationOf(upstream);
  const headers = toUpstream(asked, upstream, senders.ownsKeys, config, 0);
  for (const name in headers) if (/^(?:sec-websocket-|content-length$)/.test(name)) delete headers[name];
  const url = new URL(origin.replace(/^http/, 'ws') + pathname + (asked.req.url ?? ''));
  if (asked.targetModel !== undefined) url.searchParams.set('model', asked.targetModel);
  return new ws.WebSocket(url, { ...plain, headers, handshakeTimeout: config.timeouts.connect });
}

export interface TurnSockets {
  /** There has been a socket. */
  isUsed: boolean;
  /** Each closes with 1012 after its running turns. */
  drain(): void;
  terminate(): void;
}

/** Takes upgrades. `onFirst` is called before the first socket has a turn. */
export function turnSockets(server: Server, handler: RequestHandler, ws: Ws, onFirst: () => void): TurnSockets {
  /** Open ones by sender. */
  const bySender = new Map<string, Set<GatewaySocket>>();
  const all = (): GatewaySocket[] => [...bySender.values()].flatMap((some) => [...some]);
  let isDraining = false;

  function opened(client: WebSocket, state: RequestState): void {
    const isFirst = !sockets.isUsed;
    sockets.isUsed = true;
    if (isFirst) onFirst();
    const socket = connected(handler, ws, client, state);
    const own = bySender.get(state.share) ?? put(bySender, state.share, new Set());
    own.add(socket);
    client.on('close', () => own.delete(socket) && own.size === 0 && bySender.delete(state.share));
  }

  function upgrade(req: GatewayHttpRequest, raw: Duplex, head: Buffer): void {
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(req.socket);
    res.on('finish', () => raw.end());
    const state = new RequestState(req, res);
    const key = keyProtocol.exec(req.headers['sec-websocket-protocol'] ?? '')?.[1];
    if (key !== undefined) req.headers.authorization ??= `Bearer ${key}`;
    try {
      handler.identify(state);
      const { cors, limits } = handler.setup.config;
      const { maxSockets, maxRequestBytes: maxPayload } = limits;
      if (isDraining) throw new ApiError(503, 'shutting_down', 'The gateway restarts: connect again.');
      allowOrigin(cors, req, res);
      // Browsers open sockets without asking.
      if (req.headers.origin !== undefined && !res.hasHeader('access-control-allow-origin'))
        throw new ApiError(403, 'origin_not_allowed', 'This origin may open no socket.');
      if ((bySender.get(state.share)?.size ?? 0) >= maxSockets)
        throw new ApiError(429, 'too_many_sockets', `A sender may have ${maxSockets} open sockets.`);
      if (isOfOneModel(state)) {
        state.model = new URL(req.url ?? '', 'ws://gateway').searchParams.get('model') ?? undefined;
        state.targetModel = state.model && handler.targetOf(state.model);
        if (serversFor(handler, state).length === 0)
          throw new ApiError(503, 'no_servers', 'No model server can be had.');
      }
      res.detachSocket(req.socket);
      const settings = { ...plain, noServer: true, clientTracking: false, maxPayload, handleProtocols };
      new ws.WebSocketServer(settings).handleUpgrade(req, raw, head, (client) => opened(client, state));
    } catch (error) {
      state.watch();
      handler.tellEnd(state);
      handler.fail(state, error);
    }
  }

  handler.parts.upstreams.pool.on('removed', (endpoint) => {
    for (const socket of all()) if (socket.endpoint === endpoint) socket.turns.drain();
  });
  server.on('upgrade', (req, raw, head) => {
    raw.on('error', () => raw.destroy());
    const path = (req.url ?? '').split('?', 1)[0] ?? '';
    if (req.headers.upgrade?.toLowerCase() === 'websocket' && paths.includes(path)) upgrade(req, raw, head);
    else asItIs(server, req, raw, head);
  });
  const sockets: TurnSockets = {
    isUsed: false,
    drain() {
      isDraining = true;
      for (const { turns } of all()) turns.drain();
    },
    terminate: () => all().forEach(({ turns }) => void turns.client.terminate()),
  };
  return sockets;
}

/** Browsers can send a key only as a protocol, as OpenAI's client does. It is not the one that is spoken. */
const keyProtocol = /(?:^|,)\s*openai-insecure-api-key\.([^\s,]+)/;
const handleProtocols = (offered: Set<string>): string | false =>
  [...offered].find((name) => !keyProtocol.test(name)) ?? false;

/** Realtime's sockets are for one model, and events name none. */
const isOfOneModel = ({ path }: RequestState): boolean => path.endsWith('realtime');

/** For a socket without a seat: servers that it has not asked, the least loaded of its band's first group first. */
function serversFor({ parts, setup }: RequestHandler, asked: RequestState): EndpointView[] {
  const { sender, targetModel, attempts } = asked;
  const { bands = [], defaultBand, defaultNegativeBand = defaultBand } = setup.config.flow;
  const { priority = 0 } = sender ?? {};
  const band = bands.find((each) => each.priority === priority) ?? (priority < 0 ? defaultNegativeBand : defaultBand);
  const groups = band?.endpoints?.map((turn) => (typeof turn === 'string' ? turn : turn.group));
  const rankOf = ({ labels }: EndpointView): number => groups?.indexOf(labels.group ?? '') ?? 0;
  const loadOf = ({ inFlightRequests, weight }: EndpointView): number => inFlightRequests / weight;
  const ready = parts.upstreams.ready(targetModel).filter((each) => rankOf(each) >= 0 && !attempts.includes(each.id));
  return ready.sort((a, b) => rankOf(a) - rankOf(b) || loadOf(a) - loadOf(b));
}

/** A request that offers another protocol, as h2c, is served as one that offers none. Its connection begins anew. */
function asItIs(server: Server, req: IncomingMessage, raw: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = req;
  const lines = rawHeaders.flatMap((name, i) =>
    i % 2 === 1 || name.toLowerCase() === 'upgrade' ? [] : `${name}: ${rawHeaders[i + 1]}\r\n`,
  );
  const text = `${method} ${url} HTTP/${httpVersion}\r\n${lines.join('')}\r\n`;
  raw.unshift(Buffer.concat([Buffer.from(text, 'latin1'), head]));
  server.emit('connection', raw);
}
