/**
 * Passes a server's answer on as it comes: from undici's parser straight into the response, with back-pressure.
 *
 *     asked ─► passing ─► ended          an answer that succeeds
 *          ├─► judging ─► passing        a refusal, or an error of the request, whose beginning is read first
 *          └─► holding ─► passing        a stream whose first content token is awaited
 *
 * Invariant: it settles once; a client never takes half an answer for a whole one; after it has settled nothing of this
 * exchange is written any more.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { FirstTokenWatch } from '../../base/stream/first-token.js';
import { GatheredBytes } from '../../base/stream/gathered-bytes.js';
import type { RequestState } from '../request-state.js';
import { toClient } from './forwarded-headers.js';

type Controller = Dispatcher.DispatchController;

/** Errors are short; a longer answer is no error, and passes. */
const longestError = 65_536;

/** Bytes that pass by, for whoever reads along. */
export interface Tap {
  push(chunk: Buffer): void;
  end(): void;
}

export interface RelayHost {
  /** The longest time in which the client takes nothing, ms. */
  readonly idleMs: number;
  /** No answer after this one on the same connection. */
  readonly closesConnection: boolean;
  /** The request is about to be sent. */
  begins(): void;
  /** Whether an answer with a status from 400 up is kept from the client; `beginning` is its first part. */
  keeps(status: number, headers: IncomingHttpHeaders, beginning: Buffer): boolean;
  /** Undefined for an answer that need not be held until its first content token. */
  watch(headers: IncomingHttpHeaders): FirstTokenWatch | undefined;
  /** The answer passes: the request will not be sent again. */
  passes(status: number, headers: IncomingHttpHeaders): Tap | undefined;
  /** True when the client has the answer, false when it was kept. */
  done(isAnswered: boolean): void;
  fail(error: unknown): void;
}

export class Relay implements Dispatcher.DispatchHandler {
  private readonly state: RequestState;
  private readonly host: RelayHost;
  private controller: Controller | undefined = undefined;
  private isSettled = false;
  private status = 0;
  private headers: IncomingHttpHeaders = {};
  /** The beginning of an answer that may be kept; undefined while bytes pass. */
  private beginning: GatheredBytes | undefined = undefined;
  /** The head of an answer that is no stream passes with its first bytes: until then an error can be told. */
  private isHeadHeld = false;
  /** While the first content token is awaited. */
  private watch: FirstTokenWatch | undefined = undefined;
  private tap: Tap | undefined = undefined;
  private hearsDrain = false;
  /** Bytes of the answer that are to come, as its length says; undefined for one that does not say it. */
  private leftBytes: number | undefined = undefined;

  constructor(state: RequestState, host: RelayHost) {
    this.state = state;
    this.host = host;
  }

  /** Ends the exchange, unless it is over. */
  abort(reason: unknown): void {
    if (this.isSettled) return;
    this.failWith(reason);
    this.abortUpstream(reason as Error);
  }

  /** Not before there is a connection: the request may have been given up meanwhile. */
  onRequestStart(controller: Controller): void {
    this.controller = controller;
    if (this.isSettled) this.abortUpstream(new Error('the request was given up'));
    else this.host.begins();
  }

  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || this.isSettled) return;
    this.status = status;
    this.headers = headers;
    if (status < 400) this.watch = this.host.watch(headers);
    if (status >= 400 || this.watch !== undefined) this.beginning = new GatheredBytes();
    else if (isStream(headers)) this.pass();
    else this.isHeadHeld = true;
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.isHeadHeld) this.passHead();
    if (this.isSettled) return;
    if (this.beginning === undefined) {
      this.write(controller, chunk);
      return;
    }
    this.beginning.push(chunk);
    this.watch?.push(chunk);
    const { length } = this.beginning;
    if (this.watch?.hasBegun ?? length >= longestError) this.judge();
  }

  onResponseEnd(): void {
    if (this.beginning !== undefined && !this.isSettled) this.judge();
    if (this.isHeadHeld) this.passHead();
    if (this.isSettled) return;
    this.tap?.end();
    const { res } = this.state;
    if (!res.writableEnded) res.end();
    if (res.writableLength > 0) res.setTimeout(this.host.idleMs);
    this.isSettled = true;
    this.host.done(true);
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.failWith(error);
  }

  private failWith(error: unknown): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.host.fail(error);
  }

  private passHead(): void {
    this.isHeadHeld = false;
    if (!this.isSettled) this.pass();
  }

  private judge(): void {
    const beginning = Buffer.concat(this.beginning?.parts() ?? []);
    this.beginning = undefined;
    if (this.status >= 400 && this.host.keeps(this.status, this.headers, beginning)) {
      this.isSettled = true;
      this.abortUpstream(new Error('another server will be asked'));
      this.host.done(false);
      return;
    }
    this.pass();
    if (this.controller !== undefined && !this.isSettled && beginning.length > 0)
      this.write(this.controller, beginning);
  }

  /** An answer whose status line or headers have bytes that Node does not write cannot be passed on, nor is it read. */
  private pass(): void {
    const { state, host, status } = this;
    const { res } = state;
    const headers = toClient(this.headers, state.id, state.ownsCors);
    if (host.closesConnection) headers.connection = 'close';
    try {
      res.writeHead(status, headers);
    } catch (error) {
      // The headers that were taken belong to the answer that is not sent.
      for (const name in headers) if (name !== 'x-request-id') res.removeHeader(name);
      this.failWith(error);
      this.abortUpstream(error as Error);
      return;
    }
    this.tap = host.passes(status, this.headers);
    // Other heads are sent with the first bytes, in one packet.
    if (isStream(this.headers)) res.flushHeaders();
    const length = this.headers['content-length'];
    if (length !== undefined) this.leftBytes = Number(length);
  }

  private write(controller: Controller, chunk: Buffer): void {
    const { res } = this.state;
    // A client that has left, or an answer that the gate gave in its place.
    if (res.destroyed || res.writableEnded) {
      this.abortUpstream(new Error('the response is over'));
      return;
    }
    this.tap?.push(chunk);
    if (this.leftBytes !== undefined) this.leftBytes -= chunk.length;
    if (this.leftBytes === 0) {
      // The end is told in the same call, which saves a small answer a turn through the socket.
      res.end(chunk);
      return;
    }
    if (res.write(chunk)) return;
    controller.pause();
    // The timeout is set only while the client takes nothing, because every write would set it again. Node destroys the
    // socket at its end.
    res.setTimeout(this.host.idleMs);
    if (this.hearsDrain) return;
    this.hearsDrain = true;
    res.on('drain', () => {
      res.setTimeout(0);
      controller.resume();
    });
  }

  private abortUpstream(reason: Error): void {
    this.controller?.abort(reason);
  }
}

function isStream(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.startsWith('text/event-stream') === true;
}
