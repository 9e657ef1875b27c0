/** A request and a response of node:http or node:http2, for the control. */
import type { HeaderSource } from '../../base/headers/header-source.js';
import type { UploadState } from '../../base/stream/upload-watch.js';
import { clientDisconnected, type Exchange } from '../http/exchange.js';
import type { RequestFlow } from '../http/request-flow.js';
import type { HttpErrorResponse } from '../http/to-http-response.js';
import { dropLateWrites, ignoreLateErrors } from './late-writes.js';
import type { NodeRequest, NodeResponse } from './node-request.js';
import { onResponseEnd } from './on-response-end.js';
import { bodyBytes, continueUpload, mustCloseToReject, readAhead, uploadState } from './request-body.js';
import { RequestHead, stripRequestHeaders } from './request-head.js';
import { abortResponse, mustAbortResponse, respond } from './respond.js';

/** `Req` is what the framework calls the request. */
export class NodeExchange<Req> implements Exchange<Req> {
  readonly req: Req;
  readonly boundsReadAhead = true;
  readonly flow: RequestFlow | undefined;
  protected readonly incoming: NodeRequest;
  protected readonly outgoing: NodeResponse;
  private readonly head: RequestHead;

  constructor(incoming: NodeRequest, outgoing: NodeResponse, req: Req, flow: RequestFlow | undefined) {
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.req = req;
    this.flow = flow;
    this.head = new RequestHead(incoming);
  }

  /**
   * Node tells of the end of an HTTP/2 stream from inside nghttp2, on the stack of the frame that ended it. A handler
   * that starts there opens, resets and writes streams of the same session, and Node 20 can then spin for ever.
   */
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
    if (this.head.hasFlowHeaders) stripRequestHeaders(this.incoming);
  }

  bodyBytes(unknownBodyBytes: number): number {
    return bodyBytes(this.incoming, this.head, unknownBodyBytes);
  }

  upload(): UploadState {
    return this.outgoing.headersSent ? { type: 'over' } : uploadState(this.incoming);
  }

  onEnd(done: (isSent: boolean) => void): void {
    onResponseEnd(this.incoming, this.outgoing, done);
  }

  failure(): unknown {
    return clientDisconnected();
  }

  wait(bookedBytes: number): void {
    readAhead(this.incoming, bookedBytes);
  }

  proceed(): void {
    if (this.head.hasExpectation) continueUpload(this.incoming, this.outgoing);
  }

  /** A gateway that shuts down has no use for idle connections either. */
  mustClose(isShuttingDown: boolean): boolean {
    return isShuttingDown ? this.incoming.httpVersionMajor === 1 : mustCloseToReject(this.incoming, this.head);
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
    respond(this.incoming, this.outgoing, response);
    dropLateWrites(this.outgoing);
  }
}
