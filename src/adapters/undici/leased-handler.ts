/** The handler below while a call holds its lease: it passes everything to the caller, and tells the call its end. */
import type { Dispatcher } from 'undici';
import type { RequestFlow } from '../http/request-flow.js';

type Handler = Dispatcher.DispatchHandler;
type Controller = Dispatcher.DispatchController;
type Parameter<Name extends keyof Handler, Index extends number> = Parameters<NonNullable<Handler[Name]>>[Index];

/** The part of an OutboundCall that is used. */
interface Call {
  /** The caller has been told that it failed, whatever the dispatcher says now. */
  readonly hasFailed: boolean;
  readonly reason: unknown;
  stopWork: ((reason: Error) => void) | undefined;
  end(isSent: boolean, reason?: unknown): void;
}

export class LeasedHandler implements Handler {
  readonly flow: RequestFlow;
  private readonly call: Call;
  private readonly handler: Handler;

  constructor(call: Call, handler: Handler, flow: RequestFlow) {
    this.call = call;
    this.handler = handler;
    this.flow = flow;
  }

  onRequestStart(controller: Controller, context: object | undefined): void {
    if (this.call.hasFailed) {
      controller.abort(this.call.reason as Error);
      return;
    }
    this.call.stopWork = (reason) => controller.abort(reason);
    this.handler.onRequestStart?.(controller, { ...context, flow: this.flow });
  }

  onRequestUpgrade(
    controller: Controller,
    statusCode: number,
    headers: Parameter<'onRequestUpgrade', 2>,
    socket: Parameter<'onRequestUpgrade', 3>,
  ): void {
    // From here on the call is only a socket.
    this.call.stopWork = (reason) => void socket.destroy(reason);
    socket.once('close', () => this.call.end(socket.errored === null, socket.errored));
    this.handler.onRequestUpgrade?.(controller, statusCode, headers, socket);
  }

  onResponseStarted(): void {
    this.handler.onResponseStarted?.();
  }

  onResponseStart(
    controller: Controller,
    statusCode: number,
    headers: Parameter<'onResponseStart', 2>,
    statusMessage?: string,
  ): void {
    this.handler.onResponseStart?.(controller, statusCode, headers, statusMessage);
  }

  onResponseData(controller: Controller, chunk: Parameter<'onResponseData', 1>): void {
    this.handler.onResponseData?.(controller, chunk);
  }

  onResponseEnd(controller: Controller, trailers: Parameter<'onResponseEnd', 1>): void {
    this.call.end(true);
    this.handler.onResponseEnd?.(controller, trailers);
  }

  /** Comes after `onResponseEnd` when that threw, as undici's own retry does. */
  onResponseError(controller: Controller, error: Error): void {
    if (this.call.hasFailed) return;
    this.call.end(false, error);
    this.handler.onResponseError?.(controller, error);
  }
}
