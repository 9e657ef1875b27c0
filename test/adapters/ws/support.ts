/** What tests of turns share: a lease of no controller, a server of sockets, and clients. */
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import type { Lease } from '../../../src/index.js';
import { until } from '../../integration/support/until.js';
import { makeFlow, runNow } from '../../support/flow.js';

export const fakeLease = (): Lease => runNow(makeFlow().flow);

export type Event = { readonly type: string; readonly [name: string]: unknown };

/** Listens on a port of its own; `serve` gets each socket. */
export async function startSockets(serve: (socket: WebSocket) => void): Promise<string> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  server.on('connection', serve);
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export interface Client {
  readonly socket: WebSocket;
  readonly events: Event[];
  closed: { readonly code: number; readonly reason: string } | undefined;
  send(event: object): void;
  /** The next event of this type that was not asked for before. */
  next(type: string): Promise<Event>;
}

/** Resolves when it is open. */
export async function connect(url: string, headers: Record<string, string> = {}): Promise<Client> {
  const socket = new WebSocket(url, { headers, perMessageDeflate: false });
  onTestFinished(() => socket.terminate());
  const events: Event[] = [];
  const seen = new Set<Event>();
  socket.on('message', (data: RawData) => void events.push(JSON.parse(data.toString())));
  const client: Client = {
    socket,
    events,
    closed: undefined,
    send: (event) => socket.send(JSON.stringify(event)),
    async next(type) {
      const find = () => events.find((event) => event.type === type && !seen.has(event));
      const told = () => `${type}; came: ${events.map((event) => event.type).join()} ${JSON.stringify(client.closed)}`;
      await until(told, () => find() !== undefined, 10_000);
      seen.add(find()!);
      return [...seen].at(-1)!;
    },
  };
  socket.on('close', (code, reason) => {
    client.closed = { code, reason: reason.toString() };
  });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return client;
}
