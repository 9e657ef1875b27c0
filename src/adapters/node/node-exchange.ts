/** A request and a response of node:http or node:http2. The body is measured and steered; no byte of it is taken. */
import type { Server } from 'node:http';
import type { HeaderSource } from '../../base/headers/header-source.js';
import { declaredBytes } from '../../base/request-body.js';
import type { UploadState } from '../../base/stream/upload-watch.js';
import type { Exchange } from '../http/exchange.js';
import type { LifeSigns } from '../http/life-signs.js';
import type { RequestFlow } from '../http/request-flow.js';
import type { HttpErrorResponse } from '../http/to-http-response.js';
import { showLife } from './begun-answer.js';
import type { NodeRequest, NodeResponse } from './node-request.js';
import { http2StreamOf, isFlowHeader, stripRequestHeaders } from './node-request.js';
import { onResponseEnd } from './on-response-end.js';
import { abortResponse, dropLateWrites, ignoreLateErrors, mustAbortResponse, respond } from './respond.js';

const over: UploadState = { type: 'over' };
const unread: UploadState = { type: 'unread' };
/** A smaller body is not worth a reconnect: Node drains it, and most of it has arrived together with the headers. */
const drainableBytes = 16 * 1024;
const continued = new WeakSet<NodeResponse>();

/** `Req` is what the framework calls the request. */
export class NodeExchange<Req> implements Exchange<Req> {
  readonly req: Req;
  readonly flow: RequestFlow | undefined;
  protected readonly incoming: NodeRequest;
  protected readonly outgoing: NodeResponse;
  /** As the client wrote it; undefined without one. */
  private contentLength: string | undefined = undefined;
  /** There is a `Transfer-Encoding`: a body of unknown length follows. */
  private isChunked = false;
  /** There is an `Expect`: the client may wait for permission to upload. */
  private hasExpectation = false;
  private hasFlowHeaders = false;
  /** Signs of life are under way: the answer may begin before its head is known. */
  showsLife = false;
  /** The head of a stream was sent, and nothing of it yet. */
  isSilent = false;

  constructor(incoming: NodeRequest, outgoing: NodeResponse, req: Req, flow: RequestFlow | undefined) {
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.req = req;
    this.flow = flow;
    const { rawHeaders } = incoming;
    for (let i = 0; i < rawHeaders.length; i += 2) this.read(rawHeaders[i]!, rawHeaders[i + 1]!);
    // A request that never was on a wire, as those of adapters for serverless platforms.
    if (rawHeaders.length === 0) for (const name in incoming.headers) this.read(name, String(incoming.headers[name]));
  }

  /** Every request pays for this: comparing lengths and first letters leaves little to lower-case (bench: http). */
  private read(name: string, value: string): void {
    switch (name.length) {
      case 6:
        if (name.toLowerCase() === 'expect') this.hasExpectation = true;
        return;
      case 14:
        if (name.toLowerCase() === 'content-length') this.contentLength ??= value;
        return;
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') this.isChunked = true;
    }
    if (isFlowHeader(name)) this.hasFlowHeaders = true;
  }

  /** HTTP/2 streams end inside nghttp2: a handler that starts there opens and resets streams, and Node 20 can spin. */
  get endsInsideRuntime(): boolean {
    return this.incoming.httpVersionMajor === 2;
  }

  get headers(): HeaderSource {
    return this.incoming.headers;
  }

  get isAnswered(): boolean {
    // A response that has ended has begun. `headersSent` is first: every request reads it anyhow (bench: http).
    return this.outgoing.headersSent && this.outgoing.writableEnded;
  }

  get hasBegun(): boolean {
    return this.outgoing.headersSent;
  }

  stripHeaders(): void {
    if (this.hasFlowHeaders) stripRequestHeaders(this.incoming);
  }

  /** Content-Length; 0 without a body; `unknownBodyBytes` for a body of unknown length. */
  bodyBytes(unknownBodyBytes: number): number {
    const { contentLength } = this;
    if (contentLength !== undefined) return declaredBytes(contentLength, unknownBodyBytes);
    const isOpen = this.isChunked || http2StreamOf(this.incoming)?.endAfterHeaders === false;
    return isOpen ? unknownBodyBytes : 0;
  }

  /** HTTP/2 is left alone: Node 20 damaged its heap, and died, where streams were answered amid uploads being read. */
  upload(): UploadState {
    const { incoming, outgoing } = this;
    if (outgoing.headersSent || incoming.complete || incoming.destroyed || incoming.httpVersionMajor > 1) return over;
    if (incoming.readableLength > 0) return unread;
    // The sockets of injected requests count nothing.
    const { bytesRead }: { bytesRead?: number } = incoming.socket;
    return bytesRead === undefined ? over : { type: 'coming', bytes: bytesRead };
  }

  onEnd(done: (isSent: boolean) => void): void {
    onResponseEnd(this.incoming, this.outgoing, done);
  }

  /** Lets Node read ahead, as far as was booked: where nobody reads, it does not notice a client that left. */
  wait(bookedBytes: number): void {
    const { incoming } = this;
    if (http2StreamOf(incoming) !== undefined) return;
    // A public way exists only for a whole server, the `highWaterMark` of createServer.
    const state = (incoming as { _readableState?: { highWaterMark: number } })._readableState;
    if (state === undefined || state.highWaterMark > bookedBytes) return;
    state.highWaterMark = bookedBytes + 1;
    // The sockets of injected requests, as of Fastify's `inject`, cannot be paused.
    const { socket }: { socket: Partial<Pick<NodeRequest['socket'], 'isPaused' | 'resume'>> } = incoming;
    if (socket.isPaused?.() === true) socket.resume?.();
  }

  /** Before an answer of flow control, or one that nobody knows yet. */
  setOwnHeaders(): void {}

  /** Once: a request that is sent to another server waits on. */
  showLife(signs: LifeSigns): void {
    if (!this.showsLife) showLife(this.outgoing, signs, this);
    this.showsLife = true;
  }

  /** Tells a client that sent `Expect: 100-continue` to go on, where the host left that to the handler behind this. */
  proceed(): void {
    const { incoming, outgoing } = this;
    // A body that has arrived needs no permission.
    if (!this.hasExpectation || outgoing.headersSent || incoming.complete || continued.has(outgoing)) return;
    const { server } = incoming.socket as { server?: Pick<Server, 'listenerCount'> };
    if ((server?.listenerCount('checkContinue') ?? 0) === 0) return;
    continued.add(outgoing);
    outgoing.writeContinue();
  }

  /** The client would upload into a rejection (HTTP/2 resets the stream); at the end idle connections are no use. */
  mustClose(isShuttingDown: boolean): boolean {
    const { httpVersionMajor, complete } = this.incoming;
    if (httpVersionMajor !== 1) return false;
    return isShuttingDown || (!complete && this.bodyBytes(Infinity) > drainableBytes);
  }

  /** In the next turn: what is open then is answered, or broken off if part of it was sent or no answer is safe. */
  evict(answer: () => HttpErrorResponse): void {
    const { incoming, outgoing } = this;
    setImmediate(() => {
      if (outgoing.writableEnded || outgoing.destroyed) return;
      ignoreLateErrors(outgoing);
      if (outgoing.headersSent || mustAbortResponse(incoming)) abortResponse(outgoing);
      else this.answer(answer());
    });
  }

  /** For frameworks that want to write their responses themselves. */
  protected answer(response: HttpErrorResponse): void {
    this.setOwnHeaders();
    respond(this.incoming, this.outgoing, response);
    dropLateWrites(this.outgoing);
  }
}
