/**
 * Sockets of `/v1/responses` and `/v1/realtime`: each turn goes the way of a request, and its frames to the server that
 * its socket is connected to. Realtime connects at once, because the server speaks first; Responses with its first
 * turn. Invariant: a socket holds no seat. A turn waits for the server of its socket and for no other, because the
 * conversation is there.
 */
import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { endsTurn } from '../../adapters/ws/turn-events.js';
import { TurnSocket } from '../../adapters/ws/turn-socket.js';
import type { EndpointView } from '../../index.js';
import { toUpstream } from '../forwarding/forwarded-headers.js';
import { bodyFor, locationOf } from '../forwarding/upstream-request.js';
import { type GatewayHttpRequest, RequestState } from '../request-state.js';
import { ApiError } from '../shared/api-error.js';
import { isFromElsewhere } from '../shared/cors.js';
import type { RequestHandler } from './request-handler.js';
import { TurnState } from './turn-state.js';

type Ws = typeof import('ws');

const paths: readonly string[] = ['/v1/responses', '/v1/realtime'];
const mostBufferedBytes = 1_048_576;

/** A client, and the server that it talks to. */
class GatewaySocket {
  readonly turns: TurnSocket;
  private readonly handler: RequestHandler;
  private readonly ws: Ws;
  private readonly client: WebSocket;
  private readonly asked: RequestState;
  private readonly states = new Map<object, TurnState>();
  private endpoint: EndpointView | undefined = undefined;

  constructor(handler: RequestHandler, ws: Ws, client: WebSocket, asked: RequestState) {
    this.handler = handler;
    this.ws = ws;
    this.client = client;
    this.asked = asked;
    const { config } = handler.current;
    const dialect = asked.path.endsWith('realtime') ? 'realtime' : 'responses';
    const limits = {
      idleMs: config.timeouts.socket,
      maxMessageBytes: config.limits.maxRequestBytes,
      maxBufferedBytes: mostBufferedBytes,
    };
    this.turns = new TurnSocket(client, dialect, limits, {
      isServed: false,
      ask: (turn) => {
        const state = new TurnState(asked.req, turn, (endpoint) => this.forward(state, endpoint));
        this.states.set(turn, state);
        turn.onEnd(() => this.states.delete(turn));
        handler.enterTurn(state, dialect === 'responses', this.endpoint);
      },
      forward: (frame, turn) => {
        const state = turn && this.states.get(turn);
        const upstream = this.endpoint && handler.upstreams.configOf(this.endpoint);
        const data = state === undefined || upstream === undefined ? frame.data : bodyFor(state, upstream);
        this.turns.toServer({ data, isBinary: frame.isBinary }, turn);
      },
      heard: (turn, event, text) => this.states.get(turn)?.heard(text, endsTurn(event), handler.current.detectors),
    });
    if (dialect === 'realtime') this.connect(handler.leastLoaded(modelOf(asked)));
  }

  isAt(endpoint: EndpointView): boolean {
    return this.endpoint === endpoint;
  }

  terminate(): void {
    this.client.terminate();
  }

  /** The turn has its seat. */
  private forward(state: TurnState, endpoint: EndpointView): void {
    const { turn, granted } = state;
    if (this.endpoint === undefined) this.connect(endpoint);
    const late = (): void =>
      this.handler.fail(state, new ApiError(504, 'upstream_timeout', 'The answer took too long.'));
    const timer = setTimeout(late, this.handler.current.config.timeouts.total);
    turn.onEnd(() => clearTimeout(timer));
    this.turns.turns.grant(turn, granted, Infinity);
  }

  private connect(endpoint: EndpointView): void {
    const { handler, asked } = this;
    const { config, senders } = handler.current;
    const upstream = handler.upstreams.configOf(endpoint);
    this.endpoint = endpoint;
    const { origin, pathname } = locationOf(upstream);
    const given = toUpstream(asked, upstream, senders.ownsKeys, config.forwarded === 'set', 0);
    const headers = Object.entries(given).filter(([name]) => !/^(?:sec-websocket-|content-length$)/.test(name));
    const url = new URL(origin.replace(/^http/, 'ws') + pathname + (asked.req.url ?? ''));
    const model = url.searchParams.get('model');
    if (model !== null) url.searchParams.set('model', handler.targetOf(model));
    const server = new this.ws.WebSocket(url, {
      headers: Object.fromEntries(headers),
      handshakeTimeout: config.timeouts.connect,
      perMessageDeflate: false,
    });
    let hasOpened = false;
    server.on('open', () => {
      hasOpened = true;
    });
    server.on('close', () => {
      if (!hasOpened) handler.avoid(endpoint);
      const error = hasOpened
        ? new ApiError(502, 'upstream_failed', `${upstream.id} closed its socket.`)
        : new ApiError(502, 'upstream_unreachable', `${upstream.id} cannot be reached.`);
      for (const state of this.states.values()) handler.fail(state, error);
    });
    this.turns.connect(server);
  }
}

export class TurnSockets {
  private readonly handler: RequestHandler;
  private readonly ws: Ws | undefined;
  private readonly onFirst: () => void;
  /** There has been a socket. */
  isUsed = false;
  private readonly sockets = new Set<GatewaySocket>();
  private isDraining = false;

  /** `onFirst` is called before the first socket has a turn. */
  constructor(handler: RequestHandler, ws: Ws | undefined, onFirst: () => void) {
    this.handler = handler;
    this.ws = ws;
    this.onFirst = onFirst;
    handler.upstreams.pool.on('removed', (endpoint) => {
      for (const socket of this.sockets) if (socket.isAt(endpoint)) socket.turns.drain();
    });
  }

  attach(server: Server): void {
    server.on('upgrade', (req, raw, head) => {
      raw.on('error', () => raw.destroy());
      const path = (req.url ?? '').split('?', 1)[0] ?? '';
      if (req.headers.upgrade?.toLowerCase() === 'websocket' && paths.includes(path)) this.upgrade(req, raw, head);
      else asItIs(server, req, raw, head);
    });
  }

  /** Each closes with 1012 after its running turns. */
  drain(): void {
    this.isDraining = true;
    for (const socket of this.sockets) socket.turns.drain();
  }

  terminate(): void {
    for (const socket of this.sockets) socket.terminate();
  }

  private upgrade(req: GatewayHttpRequest, raw: Duplex, head: Buffer): void {
    const { handler, ws } = this;
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(req.socket);
    res.on('finish', () => raw.end());
    const state = new RequestState(req, res);
    try {
      handler.identify(state);
      const { cors, limits } = handler.current.config;
      if (this.isDraining) throw new ApiError(503, 'shutting_down', 'The gateway restarts: connect again.');
      if (isFromElsewhere(cors, req)) throw new ApiError(403, 'origin_not_allowed', 'This origin may open no socket.');
      if (ws === undefined) throw noSockets;
      if (state.path.endsWith('realtime')) handler.leastLoaded(modelOf(state));
      res.detachSocket(req.socket);
      const server = new ws.WebSocketServer({
        noServer: true,
        clientTracking: false,
        maxPayload: limits.maxRequestBytes,
        perMessageDeflate: false,
      });
      server.handleUpgrade(req, raw, head, (client) => this.opened(client, ws, state));
    } catch (error) {
      state.watch();
      handler.tellEnd(state);
      handler.fail(state, error);
    }
  }

  private opened(client: WebSocket, ws: Ws, state: RequestState): void {
    const isFirst = !this.isUsed;
    this.isUsed = true;
    if (isFirst) this.onFirst();
    const socket = new GatewaySocket(this.handler, ws, client, state);
    this.sockets.add(socket);
    client.on('close', () => this.sockets.delete(socket));
  }
}

const noSockets = new ApiError(
  501,
  'websockets_not_installed',
  'This gateway has no package for WebSockets: npm install ws beside headgate.',
);

function modelOf({ req }: RequestState): string | undefined {
  return new URL(req.url ?? '', 'ws://gateway').searchParams.get('model') ?? undefined;
}

/** A request that offers another protocol, as h2c, is served as one that offers none. Its connection begins anew. */
function asItIs(server: Server, req: IncomingMessage, raw: Duplex, head: Buffer): void {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    const [name = '', value = ''] = req.rawHeaders.slice(i, i + 2);
    const kept = value.split(',').filter((option) => !/^(?:upgrade|http2-settings)$/i.test(option.trim()));
    if (/^connection$/i.test(name)) lines.push(`${name}: ${kept.join(',') || 'keep-alive'}`);
    else if (!/^upgrade$/i.test(name)) lines.push(`${name}: ${value}`);
  }
  raw.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', raw);
}
