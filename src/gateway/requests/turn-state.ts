/** A turn of a socket as a request of its own. An error ends it by an event of the client's dialect. */
import { ServerResponse } from 'node:http';
import type { LifeSigns } from '../../adapters/http/life-signs.js';
import type { Turn } from '../../adapters/ws/turn.js';
import { isEnd, type TurnEvent } from '../../adapters/ws/turn-events.js';
import { fieldsOf } from '../../base/stream/content-pieces.js';
import { type UsageReader, usageReader } from '../../upstream/index.js';
import { type AttemptOptions, type AttemptResult, type ErrorAnswer, tellFirstToken } from '../forwarding/attempt.js';
import { type GatewayHttpRequest, RequestState } from '../request-state.js';

type Take = (state: TurnState, options: AttemptOptions, tell: (result: AttemptResult) => void) => void;

export class TurnState extends RequestState {
  readonly turn: Turn;
  /** Called when it has its seat. */
  readonly take: Take;
  /** What `take` was given last. */
  attempt: { readonly options: AttemptOptions; readonly tell: Parameters<Take>[2] } | undefined = undefined;
  private usage: UsageReader | undefined = undefined;

  /** `req` asked for the socket; each of its turns strips and keeps headers of its own. */
  constructor(req: GatewayHttpRequest, turn: Turn, take: Take) {
    const { headers, rawHeaders } = req;
    const own: GatewayHttpRequest = Object.assign(Object.create(req), {
      headers: { ...headers },
      rawHeaders: [...rawHeaders],
    });
    super(own, responseFor(own, turn));
    this.turn = turn;
    this.take = take;
    this.bytes = turn.frame?.data;
    turn.onEnd((isSent) => {
      this.usage?.end();
      if (isSent && !this.res.headersSent) this.res.writeHead(200);
    });
  }

  override onEnd(done: (isSent: boolean) => void): void {
    // A turn that was answered with an error was answered.
    this.turn.onEnd((isSent) => done(isSent || this.res.writableEnded));
  }

  override get isStream(): boolean {
    return true;
  }

  override showLife(signs: LifeSigns): void {
    this.turn.showLife(signs);
  }

  /** Reads an event of the server. True where `isMoved` has it: the client does not get it. */
  heard(event: TurnEvent, text: string, isMoved: (state: TurnState, answer: ErrorAnswer) => boolean): boolean {
    const error = errorIn(event);
    if (error !== undefined && isMoved(this, error)) return true;
    const { lease, attempt } = this;
    this.isPassedOn = true;
    this.bytes = undefined;
    this.isServed ||= isEnd(event);
    if (lease === undefined || attempt === undefined) return false;
    if (this.usage === undefined && error === undefined) lease.answered({ status: 200, headers: {} });
    this.usage ??= usageReader({ lease, cachedTokens: true });
    this.usage.push(`data: ${text}\n\n`);
    if (this.ttftMs === undefined) tellFirstToken(this, this.usage, attempt.options.detectors);
    return false;
  }
}

/**
 * The answer that an event would be over HTTP; undefined for one that is no error. Where no status is told, the code
 * tells it. Source: codex, `codex-api/src/endpoint/responses_websocket.rs` (status, error, headers).
 */
function errorIn({ type, fields }: TurnEvent): ErrorAnswer | undefined {
  if (type !== 'error' && type !== 'response.failed') return undefined;
  const error = fieldsOf(fields.error) ?? fieldsOf(fieldsOf(fields.response)?.error) ?? fields;
  const told = Number(fields.status ?? fields.status_code ?? error.status);
  const isBusy = /rate_limit|overloaded|slow_down/.test(`${error.code} ${error.type}`);
  const headers = { 'retry-after-ms': fields.retry_after_ms ?? error.retry_after_ms, ...fieldsOf(fields.headers) };
  return {
    status: told >= 400 && told < 600 ? Math.trunc(told) : isBusy ? 503 : 400,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
    body: JSON.stringify(error),
  };
}

/** On no connection: its one body becomes the event. */
function responseFor(req: GatewayHttpRequest, turn: Turn): ServerResponse {
  const res = new ServerResponse(req);
  const finish = res.end.bind(res);
  const end = (body?: unknown): ServerResponse => {
    const headers = { 'retry-after-ms': String(res.getHeader('retry-after-ms')) };
    finish();
    if (res.statusCode >= 400) turn.reject({ status: res.statusCode, headers, body: String(body ?? '') });
    return res;
  };
  return Object.assign(res, { end });
}
