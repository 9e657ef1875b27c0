/** A host on a port of its own, with a client. */
import type { AddressInfo, Server, Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Application, Host } from './application.js';
import { type Client, clientFor } from './clients.js';
import { type CountingGate, countingGate } from './counting-gate.js';

export interface Running {
  readonly gate: CountingGate;
  readonly client: Client;
  readonly port: number;
  readonly server: Server;
}

export interface Setup extends Omit<Application, 'gate'> {
  readonly gate?: CountingGate;
  /** Before the server listens. */
  readonly prepare?: (server: Server) => void;
}

/**
 * Starts the application; everything is closed when the test ends. The controller lets one request run unless given
 * another.
 */
export async function start(host: Host, { gate = countingGate(1), prepare, ...application }: Setup): Promise<Running> {
  const server = await host.create({ ...application, gate });
  prepare?.(server);
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const { port } = server.address() as AddressInfo;
  const client = clientFor(host, port);
  onTestFinished(async () => {
    client.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await gate.flow.close();
  });
  return { gate, client, port, server };
}
