/**
 * The sockets of turns: the client's, and the server's where there is one.
 * Invariant: what one side does not take is not read from the other, beyond `maxBufferedBytes`. A client that is not
 * read is pinged, so that one that has gone is noticed all the same. When a client leaves, its server's socket closes.
 */
import type { Frame, Turn } from './turn.js';
import { cancelText, fault, type SocketDialect } from './turn-events.js';
import { type TurnPorts, Turns } from './turns.js';

/** A `WebSocket` of the package `ws`, as far as it is used. */
export interface WebSocketLike {
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(data: Buffer | string, options: { binary: boolean }, sent: () => void): void;
  close(code?: number, reason?: string): void;
  terminate(): void;
  ping(): void;
  pause(): void;
  resume(): void;
  on(event: 'open', listener: () => void): unknown;
  on(event: 'message', listener: (data: unknown, isBinary: boolean) => void): unknown;
  on(event: 'close', listener: (code: number, reason: Buffer) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

export interface SocketLimits {
  readonly idleMs: number;
  readonly maxMessageBytes: number;
  readonly maxBufferedBytes: number;
}

/** What a host does for its turns. */
export interface TurnHost extends Pick<TurnPorts, 'ask' | 'heard'> {
  /** A frame that may go on; with `turn`: its first one. */
  forward(frame: Frame, turn: Turn | undefined): void;
  readonly isServed: boolean;
  /** The client has gone, and nothing is left of it. */
  closed?(): void;
}

const connecting = 0;
const open = 1;
const pingMs = 5_000;
/** Closing codes that nobody may send. Source: RFC 6455, section 7.4. */
const unsendable: readonly number[] = [1004, 1005, 1006, 1015];
const restarts = 1012;

export class TurnSocket implements TurnPorts {
  readonly turns: Turns;
  readonly isServed: boolean;
  readonly ask: TurnPorts['ask'];
  readonly heard: TurnPorts['heard'];
  private readonly client: WebSocketLike;
  private readonly host: TurnHost;
  private readonly limits: SocketLimits;
  private server: WebSocketLike | undefined = undefined;
  /** While the server's socket opens. */
  private early: (readonly [Frame, Turn | undefined])[] = [];
  private readonly idle: ReturnType<typeof setTimeout> | undefined;
  private pinging: ReturnType<typeof setInterval> | undefined = undefined;
  private isServerPaused = false;
  private isDraining = false;
  private readonly takers: (() => void)[] = [];

  constructor(client: WebSocketLike, dialect: SocketDialect, limits: SocketLimits, host: TurnHost) {
    this.client = client;
    this.host = host;
    this.limits = limits;
    this.isServed = host.isServed;
    this.ask = host.ask.bind(host);
    this.heard = host.heard?.bind(host);
    this.turns = new Turns(dialect, this);
    this.idle = limits.idleMs === Infinity ? undefined : setTimeout(() => this.lookIdle(), limits.idleMs);
    client.on('message', (data, isBinary) => this.received(client, data, isBinary));
    // The close follows, and may take its time.
    client.on('error', () => this.leave());
    client.on('close', () => {
      clearTimeout(this.idle);
      this.leave();
      this.host.closed?.();
    });
  }

  get isOpen(): boolean {
    return this.client.readyState === open;
  }

  /** From now on its frames go to the client; it may still be opening. */
  connect(server: WebSocketLike): void {
    this.server = server;
    server.on('message', (data, isBinary) => this.received(server, data, isBinary));
    server.on('open', () => {
      for (const [frame, turn] of this.early.splice(0)) if (turn?.isAnswered !== true) this.toServer(frame);
    });
    server.on('error', () => server.terminate());
    server.on('close', (code, reason) => {
      this.turns.failAll(broken);
      this.turns.leave();
      const isCode = code >= 1000 && code < 5000 && !unsendable.includes(code);
      this.close(isCode ? code : 1011, reason.toString());
    });
  }

  close(code: number, reason: string): void {
    if (!this.isOpen) return;
    this.client.close(code, reason);
    this.leave();
  }

  /** Closes the socket as soon as nothing waits or runs. */
  drain(): void {
    this.isDraining = true;
    this.moved();
  }

  /** Resolves when the client takes more. */
  taken(): Promise<void> {
    return this.isClientFull ? new Promise((resolve) => void this.takers.push(resolve)) : Promise.resolve();
  }

  forward(frame: Frame, turn?: Turn): void {
    this.host.forward(frame, turn);
  }

  toClient(data: Buffer | string, binary = false): void {
    this.send(this.client, data, binary);
  }

  toServer(frame: Frame, turn?: Turn): void {
    if (this.server?.readyState === connecting) {
      this.early.push([frame, turn]);
      this.moved();
    } else if (this.server !== undefined) this.send(this.server, frame.data, frame.isBinary);
  }

  sign(text: string): void {
    if (!this.isClientFull) this.toClient(text);
  }

  stop(turn: Turn): boolean {
    if (this.server?.readyState !== open) return true;
    this.send(this.server, cancelText(turn), false);
    return false;
  }

  abandon(): void {
    this.server?.terminate();
  }

  /** Who may be read, and whether all is over. */
  moved(): void {
    const { client, server, limits, turns } = this;
    if (this.isServerPaused !== this.isClientFull) {
      this.isServerPaused = !this.isServerPaused;
      if (this.isServerPaused) server?.pause();
      else server?.resume();
    }
    if (!this.isClientFull) for (const take of this.takers.splice(0)) take();
    const early = this.early.reduce((sum, [{ data }]) => sum + data.length, 0);
    const isFull = turns.heldBytes + early + (server?.bufferedAmount ?? 0) > limits.maxBufferedBytes;
    if (isFull !== (this.pinging !== undefined)) {
      if (isFull) client.pause();
      else client.resume();
      clearInterval(this.pinging);
      this.pinging = isFull ? setInterval(() => client.ping(), pingMs) : undefined;
    }
    if (this.isDraining && turns.count === 0) this.close(restarts, 'the server restarts: connect again');
  }

  private get isClientFull(): boolean {
    return this.client.bufferedAmount > this.limits.maxBufferedBytes;
  }

  private received(from: WebSocketLike, given: unknown, isBinary: boolean): void {
    if (!this.isOpen) return;
    const frame = { data: bytesOf(given), isBinary };
    this.idle?.refresh();
    if (from === this.server) this.turns.fromServer(frame);
    else if (frame.data.length <= this.limits.maxMessageBytes) this.turns.fromClient(frame);
    else this.close(1009, `a message may have at most ${this.limits.maxMessageBytes} bytes`);
  }

  private send(to: WebSocketLike, data: Buffer | string, binary: boolean): void {
    if (to.readyState !== open) return;
    to.send(data, { binary }, () => this.moved());
    this.moved();
  }

  private lookIdle(): void {
    if (this.turns.count > 0) this.idle?.refresh();
    else this.close(1000, 'nothing was sent for long');
  }

  /** Nothing of it can go on, whoever closed it. */
  private leave(): void {
    clearInterval(this.pinging);
    this.turns.leave();
    this.server?.close(1000, 'the client left');
    for (const take of this.takers.splice(0)) take();
  }
}

const broken = fault(502, 'upstream_failed', 'The model server closed its socket.');

function bytesOf(given: unknown): Buffer {
  if (Buffer.isBuffer(given)) return given;
  if (Array.isArray(given)) return Buffer.concat(given.map(bytesOf));
  return given instanceof ArrayBuffer ? Buffer.from(given) : Buffer.from(String(given));
}
