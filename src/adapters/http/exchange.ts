/** One request and its response, as a runtime has them: everything that flow control must know and do. */
import type { HeaderSource } from '../../base/headers/header-source.js';
import type { UploadState } from '../../base/stream/upload-watch.js';
import type { LifeSigns } from './life-signs.js';
import type { RequestFlow } from './request-flow.js';
import type { HttpErrorResponse } from './to-http-response.js';

/** *Contract*: one object for one request; what has no use is left out. *Cost*: each member, in every request. */
export interface Exchange<Req> {
  /** The request as policies find it, in `item.request.req`. Read after `stripHeaders`. */
  readonly req: Req;
  readonly headers: HeaderSource;
  /** The lease that an adapter before this one left on the request. */
  readonly flow: RequestFlow | undefined;
  /** True when something else has ended the response, for instance a timeout. */
  readonly isAnswered?: boolean;
  /** The response has begun: only the host knows how to end it. */
  readonly hasBegun?: boolean;
  /** The end is told while the runtime is at work on the connection, so that no other handler may start then. */
  readonly endsInsideRuntime?: boolean;
  /** Takes the flow headers off the request. */
  stripHeaders(): void;
  /** The length of the body as far as it is known; 0 without one. */
  bodyBytes(unknownBodyBytes: number): number;
  /** How far the body has come; absent where the platform receives bodies itself, however many requests wait. */
  upload?(): UploadState;
  /** Calls `done` once, when the response is over; before this returns if it is over already. */
  onEnd(done: (isSent: boolean) => void): void;
  /** Why the response ended unsent; undefined: the client left. */
  failure?(): unknown;
  /** The request has to wait. It may end before this returns. */
  wait?(bookedBytes: number): void;
  /** What has the request's `url`, and its `body` if that was parsed before. @default `req` */
  readonly asked?: unknown;
  /** Begins the answer of a request that waits for long, and shows life until its own bytes come. */
  showLife?(signs: LifeSigns): void;
  /** The request may go on. */
  proceed?(): void;
  /** Whether a rejection must close the connection. */
  mustClose?(isShuttingDown: boolean): boolean;
  /** Ends a response whose handler does not stop: by `answer` if it has not begun, else by breaking it off. */
  evict(answer: () => HttpErrorResponse, reason: unknown): void;
}

/** An AbortError, as upstream calls expect. Handlers that let it through have not failed; Koa heeds `expose`. */
export function clientDisconnected(): DOMException {
  return Object.assign(new DOMException('The client left', 'AbortError'), { status: 499, expose: true });
}
