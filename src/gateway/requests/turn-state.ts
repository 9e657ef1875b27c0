/** A turn of a socket as a request of its own. An error ends it by an event of the client's dialect. */
import { ServerResponse } from 'node:http';
import type { LifeSigns } from '../../adapters/http/life-signs.js';
import type { Turn } from '../../adapters/ws/turn.js';
import type { EndpointView } from '../../index.js';
import type { AdaptiveDetector } from '../../types/index.js';
import { type UsageReader, usageReader } from '../../upstream/index.js';
import { type GatewayHttpRequest, RequestState } from '../request-state.js';

/** On no connection: its one body becomes the event. */
class TurnResponse extends ServerResponse {
  private readonly turn: Turn;

  constructor(req: GatewayHttpRequest, turn: Turn) {
    super(req);
    this.turn = turn;
  }

  override writeHead(status: number, headers?: unknown): this {
    for (const [name, value] of Object.entries(Object(headers))) this.setHeader(name, String(value));
    return super.writeHead(status);
  }

  override end(body?: unknown): this {
    const { statusCode: status, turn } = this;
    const wait = this.getHeader('retry-after-ms');
    super.end();
    if (status >= 400) turn.reject({ status, headers: { 'retry-after-ms': String(wait) }, body: String(body ?? '') });
    return this;
  }
}

export class TurnState extends RequestState {
  readonly turn: Turn;
  readonly signText: Turn['signText'];
  private usage: UsageReader | undefined = undefined;

  /** `req` asked for the socket; each of its turns strips and keeps headers of its own. */
  constructor(req: GatewayHttpRequest, turn: Turn, forward: (endpoint: EndpointView) => void) {
    const { headers, rawHeaders } = req;
    const own: GatewayHttpRequest = Object.create(req, {
      headers: { value: { ...headers }, writable: true },
      rawHeaders: { value: [...rawHeaders], writable: true },
    });
    super(own, new TurnResponse(own, turn));
    this.turn = turn;
    this.signText = turn.signText;
    this.forward = forward;
    this.bytes = turn.frame?.data;
    turn.onEnd((isSent) => {
      this.usage?.end();
      // A turn that was answered with an error was answered.
      if (isSent && !this.res.headersSent) this.res.writeHead(200);
      this.finish(isSent || this.res.writableEnded);
    });
  }

  override showLife(signs: LifeSigns): void {
    this.turn.showLife(signs);
  }

  /** Reads an event of the server. Detectors are told of the time to the first token. */
  heard(text: string, isEnd: boolean, detectors: readonly AdaptiveDetector[]): void {
    const { lease } = this;
    this.isPassedOn = true;
    this.isServed ||= isEnd;
    if (lease === undefined) return;
    if (this.usage === undefined) lease.answered({ status: 200, headers: {} });
    this.usage ??= usageReader({ lease, cachedTokens: true });
    this.usage.push(`data: ${text}\n\n`);
    if (this.ttftMs !== undefined || this.usage.firstTokenAtMs === undefined) return;
    this.ttftMs = this.usage.firstTokenAtMs - this.startedAtMs;
    const ttftMs = Math.max(this.usage.firstTokenAtMs - lease.dispatchedAtMs, 0);
    for (const detector of detectors) detector.observe({ ttftMs, promptTokens: this.usage.usage.promptTokens });
  }
}
