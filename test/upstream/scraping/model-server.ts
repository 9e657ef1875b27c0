/** An HTTP server that shows metrics, or misbehaves. */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export class ModelServer {
  /** Every request that came. */
  readonly requests: IncomingMessage[] = [];
  connections = 0;
  /** Answers under way at once, at most. */
  mostUnderWay = 0;
  /** What it answers with from now on. */
  handler: RequestListener;
  private underWay = 0;
  private server: Server | undefined;
  private port = 0;

  constructor(handler: RequestListener | string) {
    this.handler = typeof handler === 'string' ? answering(handler) : handler;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** The same port again after `stop`. */
  async start(): Promise<this> {
    const server = createServer((req, res) => this.received(req, res));
    server.on('connection', () => this.connections++);
    this.server = server;
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', resolve));
    this.port = (server.address() as AddressInfo).port;
    return this;
  }

  async stop(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (server === undefined) return;
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  private received(req: IncomingMessage, res: ServerResponse): void {
    this.requests.push(req);
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay);
    res.on('close', () => this.underWay--);
    this.handler(req, res);
  }
}

export function answering(text: string): RequestListener {
  return (_, res) => res.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8').end(text);
}

/** Stopped when the test has ended. */
export async function modelServer(handler: RequestListener | string): Promise<ModelServer> {
  const server = await new ModelServer(handler).start();
  onTestFinished(() => server.stop());
  return server;
}
