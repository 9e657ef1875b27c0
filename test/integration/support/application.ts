/** The same small application on every framework: flow control in front of one handler. */
import type { Server } from 'node:net';
import type { Writable } from 'node:stream';
import type {
  AdapterGate,
  FlowControlOptions,
  HttpFlowRequest,
  NodeRequest,
  RequestFlow,
} from '../../../src/adapters/node/index.js';

/** What the handler does, in words that every framework understands. */
export interface Io {
  readonly req: NodeRequest;
  readonly path: string;
  readonly flow: RequestFlow | undefined;
  send(status: number, body: string): void;
  /** Begins a streamed response of type text/event-stream. */
  stream(): Writable;
}

export interface Application {
  /** Frameworks differ in what they call a request, and the tests' gate does not look at it. */
  readonly gate: AdapterGate<HttpFlowRequest<unknown>>;
  /** Options that do not name the request work on every framework. */
  readonly options?: FlowControlOptions<unknown> | undefined;
  readonly handler: (io: Io) => void | Promise<void>;
  /** Runs before flow control. */
  readonly before?: ((req: NodeRequest) => Promise<void>) | undefined;
  /** Told of errors that reach the framework. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export interface Host {
  readonly name: string;
  readonly protocol: 'http1' | 'http2';
  create(application: Application): Server | Promise<Server>;
}

export function pathOf(url: string | undefined): string {
  return (url ?? '/').split('?')[0]!;
}
