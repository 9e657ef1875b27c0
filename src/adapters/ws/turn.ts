/** One turn of a socket, from `response.create` to the event that ends it, as an exchange of flow control. */
import { fieldsOf, parseJson } from '../../base/stream/content-pieces.js';
import type { Exchange } from '../http/exchange.js';
import { errorOf, type LifeSigns } from '../http/life-signs.js';
import type { RequestFlow } from '../http/request-flow.js';
import type { HttpErrorResponse } from '../http/to-http-response.js';
import { type SocketDialect, type TurnEvent, turnText } from './turn-events.js';

export interface Frame {
  readonly data: Buffer;
  readonly isBinary: boolean;
}

/** Bytes that a frame takes while it is kept. */
export const weightOf = ({ data }: Frame): number => data.length + 64;

/** What a turn needs of its socket: to write a sign of life to a client that reads, and to end with an error. */
export interface TurnOwner {
  readonly dialect: SocketDialect;
  sign(text: string): void;
  fail(turn: Turn, error: object): void;
}

/** Invariant: it ends once, and whoever asked for its end hears of it then, or at once. */
export class Turn implements Exchange<TurnEvent> {
  readonly req: TurnEvent;
  readonly headers = {};
  readonly flow = undefined;
  readonly asked = { body: { stream: true } };
  readonly id: string = `resp_${crypto.randomUUID()}`;
  /** Of the client's event; undefined once it has gone on, and for a turn that the server began by itself. */
  frame: Frame | undefined;
  readonly isOwn: boolean;
  /** `ending`: the client was told that it failed, and the server does not know. Written by Turns. */
  phase: 'waiting' | 'running' | 'ending' | 'over' = 'waiting';
  /** The name that the server gave to its response. Written by Turns. */
  responseId: string | undefined = undefined;
  /** Once it is dispatched. Written by Turns. */
  granted: RequestFlow | undefined = undefined;
  private readonly owner: TurnOwner;
  private readonly listeners: ((isSent: boolean) => void)[] = [];
  private isSent: boolean | undefined = undefined;
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(owner: TurnOwner, event: TurnEvent, frame: Frame | undefined) {
    this.owner = owner;
    this.req = event;
    this.frame = frame;
    this.isOwn = frame !== undefined;
  }

  get isAnswered(): boolean {
    return this.phase === 'ending' || this.phase === 'over';
  }

  stripHeaders(): void {}

  bodyBytes(): number {
    return this.frame?.data.length ?? 0;
  }

  onEnd(done: (isSent: boolean) => void): void {
    if (this.isSent === undefined) this.listeners.push(done);
    else done(this.isSent);
  }

  showLife(signs: LifeSigns): void {
    const sign = (): void => {
      this.after(signs.everyMs, sign);
      this.owner.sign(turnText(this.owner.dialect, this, 'queued', signs.place()));
      signs.tell('sign');
    };
    this.after(signs.afterMs, sign);
  }

  evict(answer: () => HttpErrorResponse): void {
    this.reject(answer());
  }

  reject({ status, headers, body }: HttpErrorResponse): void {
    const waitMs = Number(headers['retry-after-ms']) || undefined;
    this.owner.fail(this, errorOf(status, waitMs, body, fieldsOf(parseJson(body))));
  }

  /** One clock for a turn: its next sign, the end of its time, or of the server's. */
  after(ms: number, then: () => void): void {
    clearTimeout(this.timer);
    this.timer = ms === Infinity ? undefined : setTimeout(then, ms);
  }

  end(isSent: boolean): void {
    this.isSent = isSent;
    this.frame = undefined;
    clearTimeout(this.timer);
    for (const listener of this.listeners) listener(isSent);
  }
}
