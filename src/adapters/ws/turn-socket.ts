/**
 * The sockets of turns: the client's, and the server's where there is one.
 * Invariant: what one side does not take is not read from the other, beyond `maxBufferedBytes`. A client that is not
 * read is pinged, so that one that has gone is noticed all the same. When a client leaves, its server's socket closes.
 */
import type { Frame, Turn } from './turn.js';
import { fault, type SocketDialect } from './turn-events.js';
import { type TurnHost, Turns } from './turns.js';

/** A `WebSocket` of the package `ws`, as far as it is used. */
export interface WebSocketLike {
  readonly readyState: number;
  readonly bufferedAmount: number;
  readonly isPaused: boolean;
  send(data: Buffer | string, options: { binary: boolean }, sent: () => void): void;
  close(code?: number, reason?: string): void;
  terminate(): void;
  ping(): void;
  pause(): void;
  resume(): void;
  on(event: 'open' | 'error', listener: (error: Error) => void): unknown;
  on(event: 'message', listener: (data: unknown, isBinary: boolean) => void): unknown;
  on(event: 'close', listener: (code: number, reason: Buffer) => void): unknown;
}

export type SocketLimits = Readonly<Record<'idleMs' | 'maxMessageBytes' | 'maxBufferedBytes', number>>;

const connecting = 0;
const open = 1;
const pingMs = 5_000;
/** How long a server may go on with a response that is to stop; then its socket is broken off. */
const mostEndingMs = 5_000;

export class TurnSocket extends Turns {
  readonly client: WebSocketLike;
  private readonly limits: SocketLimits;
  private server: WebSocketLike | undefined = undefined;
  private readonly idle: ReturnType<typeof setTimeout> | undefined;
  private pinging: ReturnType<typeof setInterval> | undefined = undefined;
  private isDraining = false;
  private readonly takers: (() => void)[] = [];

  constructor(client: WebSocketLike, dialect: SocketDialect, limits: SocketLimits, host: TurnHost) {
    super(dialect, host);
    this.client = client;
    this.limits = limits;
    this.idle = limits.idleMs === Infinity ? undefined : setTimeout(() => this.lookIdle(), limits.idleMs);
    client.on('message', (data, isBinary) => this.received(client, data, isBinary));
    // The close follows, and may take its time.
    client.on('error', () => this.part());
    client.on('close', () => this.part());
  }

  /** Before there is a server, the first turn is to choose one. */
  protected override get isReady(): boolean {
    return this.server === undefined ? this.host.isServed || this.count === 0 : this.server.readyState !== connecting;
  }

  get isOpen(): boolean {
    return this.client.readyState === open;
  }

  /** It may still be opening. `closed` hears of its end before the client, and why it never opened. */
  connect(server: WebSocketLike, closed?: (failure: unknown, code: number) => void): void {
    let failure: unknown = 'closed';
    this.server = server;
    server.on('message', (data, isBinary) => this.server === server && this.received(server, data, isBinary));
    server.on('open', () => {
      failure = undefined;
      this.opened();
    });
    server.on('error', (error) => {
      failure &&= error;
      server.terminate();
    });
    server.on('close', (code, reason) => {
      if (!this.isOpen || this.server !== server) return;
      closed?.(failure, code);
      if (this.server !== server) return;
      this.leave(broken);
      // No code came, or none that may be sent. Source: RFC 6455, section 7.4.
      this.close(code === 1005 || code === 1006 ? 1011 : code, reason.toString() || serverLeft);
    });
  }

  /** Another server is to come; frames wait for it. */
  disconnect(): void {
    this.server?.close();
    this.server = undefined;
  }

  close(code: number, reason: string): void {
    if (!this.isOpen) return;
    this.client.close(code, reason);
    this.part();
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

  protected override toClient(data: Buffer | string, binary = false): void {
    this.send(this.client, data, binary);
  }

  toServer({ data, isBinary }: Frame): void {
    if (this.server !== undefined) this.send(this.server, data, isBinary);
  }

  override sign(text: string): void {
    if (!this.isClientFull) this.toClient(text);
  }

  protected override stop(turn: Turn): boolean {
    const { server } = this;
    if (server?.readyState !== open) return true;
    this.send(server, JSON.stringify({ type: 'response.cancel', response_id: turn.responseId }), false);
    turn.after(mostEndingMs, () => server.terminate());
    return false;
  }

  /** Who may be read, and whether all is over. */
  protected override moved(): void {
    const { client, server, limits } = this;
    if (this.isClientFull) server?.pause();
    else if (server?.isPaused === true) server.resume();
    if (!this.isClientFull) for (const take of this.takers.splice(0)) take();
    const isFull = this.heldBytes + (server?.bufferedAmount ?? 0) > limits.maxBufferedBytes;
    if (isFull !== (this.pinging !== undefined)) {
      if (isFull) client.pause();
      else client.resume();
      clearInterval(this.pinging);
      this.pinging = isFull ? setInterval(() => client.ping(), pingMs) : undefined;
    }
    if (this.isDraining && this.count === 0) this.close(1012, 'it restarts');
  }

  private get isClientFull(): boolean {
    return this.client.bufferedAmount > this.limits.maxBufferedBytes;
  }

  private received(from: WebSocketLike, given: unknown, isBinary: boolean): void {
    if (!this.isOpen) return;
    const frame = { data: bytesOf(given), isBinary };
    this.idle?.refresh();
    if (from === this.server) this.fromServer(frame);
    else if (frame.data.length <= this.limits.maxMessageBytes) this.fromClient(frame);
    else this.close(1009, `at most ${this.limits.maxMessageBytes} bytes`);
  }

  private send(to: WebSocketLike, data: Buffer | string, binary: boolean): void {
    if (to.readyState !== open) return;
    to.send(data, { binary }, () => this.moved());
    this.moved();
  }

  private lookIdle(): void {
    if (this.count > 0) this.idle?.refresh();
    else this.close(1000, 'idle');
  }

  /** Nothing of it can go on, whoever closed it. */
  private part(): void {
    clearInterval(this.pinging);
    clearTimeout(this.idle);
    this.leave();
    this.server?.close();
    for (const take of this.takers.splice(0)) take();
  }
}

const serverLeft = 'The model server closed its socket.';
const broken = fault(502, 'upstream_failed', serverLeft);

function bytesOf(given: unknown): Buffer {
  if (Buffer.isBuffer(given)) return given;
  return Array.isArray(given) ? Buffer.concat(given) : Buffer.from(given as ArrayBuffer);
}
