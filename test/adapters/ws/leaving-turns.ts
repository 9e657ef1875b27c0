/**
 * Turns whose clients vanish in every phase, over real sockets, before a model server that speaks both dialects. What is
 * random comes from a seed.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { resolve as inFolder } from 'node:path';
import { WebSocket, WebSocketServer } from 'ws';
import type { HttpFlowRequest } from '../../../src/adapters/http/index.js';
import { flowTurns, type TurnEvent } from '../../../src/adapters/ws/index.js';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { FlowController, type FlowStats, inFlightEviction } from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { until } from '../../integration/support/until.js';

/** Of the checkout: the torture runs from a bundle. */
const program = inFolder('examples/gateway/model-server.mjs');

interface Turn {
  readonly socket: WebSocket;
  readonly random: () => number;
  /** Resolves at an event whose type matches, or when the socket has closed. */
  readonly seen: (type: RegExp) => Promise<void>;
  readonly ask: (tokens: number) => void;
}

const ends = /^(?:error|response\.(?:completed|done|failed|incomplete))$/;
const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** By phase: what the client does. True: it keeps its socket for the next turn. */
const phases: Readonly<Record<string, (turn: Turn) => Promise<boolean>>> = {
  async 'reads to the end'({ ask, seen }) {
    ask(2);
    await seen(ends);
    return true;
  },
  async 'cancels at some moment'({ ask, seen, socket, random }) {
    ask(8);
    await later(random() * 20);
    socket.send(JSON.stringify({ type: 'response.cancel' }));
    await seen(ends);
    return true;
  },
  async 'vanishes when it has asked'({ ask }) {
    ask(8);
    return false;
  },
  async 'vanishes at some moment'({ ask, random }) {
    ask(8);
    await later(random() * 30);
    return false;
  },
  async 'vanishes at the first token'({ ask, seen }) {
    ask(8);
    await seen(/delta$|^error$|^response\.(?:failed|done)$/);
    return false;
  },
  async 'vanishes behind frames that wait'({ ask, socket }) {
    ask(8);
    for (let i = 0; i < 3; i++) socket.send(JSON.stringify({ type: 'conversation.item.create', item: { id: 'i' } }));
    ask(2);
    return false;
  },
  async 'closes in order'({ ask, seen, socket }) {
    ask(8);
    await seen(/^response\.created$|^error$/);
    socket.close();
    return false;
  },
};

export interface LeavingTurns {
  readonly stats: FlowStats;
  readonly violations: readonly string[];
  readonly played: Readonly<Record<string, number>>;
}

export async function playLeavingTurns(
  turns: number,
  seed: number,
  onProgress?: (done: number) => void,
): Promise<LeavingTurns> {
  const random = seededRandom(seed);
  const model = fork(program, ['--name', 'm'], { execArgv: [] });
  const [{ url: base }] = (await once(model, 'message')) as [{ url: string }];
  const flow = new FlowController<HttpFlowRequest<TurnEvent>>({
    maxConcurrency: 4,
    eviction: inFlightEviction(),
    bands: [{ priority: 1 }, { priority: -1 }],
    limits: { maxRequests: 48 },
    defaultRequestTtl: '200ms',
  });
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  await once(server, 'listening');
  server.on('connection', (socket, { url = '/' }) => {
    const dialect = url.endsWith('realtime') ? 'realtime' : 'responses';
    const upstream = new WebSocket(`${base.replace('http', 'ws')}${url}`, { perMessageDeflate: false });
    const classify = ({ fields }: TurnEvent) => ({
      fairnessId: url,
      priority: fields.max_output_tokens === 2 ? 1 : -1,
    });
    flowTurns(flow, socket, { dialect, server: upstream, classify, turnMs: 2_000 });
  });
  const played = Object.fromEntries(Object.keys(phases).map((name) => [name, 0]));
  const names = Object.keys(phases);
  let begun = 0;
  let done = 0;

  async function worker(index: number): Promise<void> {
    const path = index % 2 === 0 ? '/v1/responses' : '/v1/realtime';
    let socket: WebSocket | undefined;
    let types: string[] = [];
    let look = (): void => {};
    while (begun < turns) {
      begun++;
      if (socket?.readyState !== WebSocket.OPEN) {
        const { port } = server.address() as AddressInfo;
        socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { perMessageDeflate: false });
        socket.on('error', () => {});
        socket.on('close', () => look());
        socket.on('message', (data) => {
          types.push(JSON.parse(String(data)).type);
          look();
        });
        await once(socket, 'open');
      }
      types = [];
      const own = socket;
      const name = names[Math.floor(random() * names.length)]!;
      played[name]!++;
      const seen = (type: RegExp): Promise<void> =>
        new Promise((resolve) => {
          look = () => {
            if (types.some((each) => type.test(each)) || own.readyState !== WebSocket.OPEN) resolve();
          };
          look();
        });
      const ask = (tokens: number): void =>
        own.send(JSON.stringify({ type: 'response.create', input: 'hello', max_output_tokens: tokens }));
      if (!(await phases[name]!({ socket: own, random, seen, ask }))) own.terminate();
      onProgress?.(++done);
    }
    socket?.terminate();
  }

  try {
    await Promise.all(Array.from({ length: 96 }, (_, index) => worker(index)));
    await until('every seat came back', () => flow.stats().inFlight === 0 && flow.stats().waiting === 0);
    return { stats: flow.stats(), violations: audit(flow).violations, played };
  } finally {
    for (const socket of server.clients) socket.terminate();
    server.close();
    model.kill('SIGKILL');
    await flow.close();
  }
}
