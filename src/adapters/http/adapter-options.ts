/** The options that every framework adapter takes, and what they become. */
import { isAsyncFunction } from '../../base/async-function.js';
import { describeValue } from '../../base/faults/flow-config-error.js';
import * as s from '../../base/schema/schema.js';
import type { FlowGate, FlowKey, FlowRequest, Lease, Outcome, Schema } from '../../index.js';
import { FlowConfigError } from '../../index.js';
import type { FlowKeyOptions } from './flow-key-from-headers.js';
import type { WaitingOptions } from './life-signs.js';
import type { ErrorResponseOptions } from './to-http-response.js';

/** The part of a controller that an adapter uses. With `enter`, a request that need not wait has no AbortSignal. */
export interface AdapterGate<R extends FlowRequest = FlowRequest> extends FlowGate<R> {
  enter?(request: R, key: FlowKey, waiting?: () => R): Outcome | Promise<Outcome>;
  /** For the option `bandHeadroom`: how many requests more may wait in the band; undefined without such a limit. */
  bandHeadroom?(priority: number): number | undefined;
  /** The controller behind a gate that stands before one. @default the gate itself is one */
  readonly controller?: object | undefined;
}

/** Fields that pickers and filters of endpoints read. */
export interface PlacementHints {
  /** For `affinity()`: requests with the same key go to the same endpoint while it has room. */
  readonly affinityKey?: string | undefined;
  /** For `sessionLimit()`: the session whose turn the request is. */
  readonly sessionId?: string | undefined;
  /** For `families()`: the session that began this one. */
  readonly parentSessionId?: string | undefined;
  /** For `lastChildFirst` of `families()`: the requests of its family that their caller awaits together; how many. */
  readonly group?: { readonly id: string; readonly of: number } | undefined;
  /** For `subsetHint()`: the only endpoints that the request may go to. */
  readonly endpointSubset?: readonly string[] | string | undefined;
}

/** The request that an adapter gives to the controller: policies find the HTTP request in `item.request.req`. */
export interface HttpFlowRequest<Req> extends FlowRequest, PlacementHints {
  readonly req: Req;
}

/** Which flow a request belongs to, and what flow control should know of it. */
export interface Classification
  extends FlowKey,
    Pick<FlowRequest, 'tokens' | 'ttlMs' | 'maxWaitMs' | 'sloTtftMs'>,
    PlacementHints {}

/** What a request tells the calls that it causes: its flow, its session or key, and when they should stop. */
export interface RequestContext extends PlacementHints {
  readonly fairnessId: string;
  readonly priority: number;
  /** Its seat, and who gave it: a call that waits for the same gate may wait for this seat. */
  readonly lease?: Lease | undefined;
  readonly gate?: object | undefined;
  /** Aborts when the client leaves, and at an eviction. */
  readonly signal: AbortSignal;
}

/** The part of `AsyncLocalStorage` that adapters use, so that nothing of Node is imported. */
export interface ContextScope {
  run<T>(store: RequestContext, next: () => T): T;
}

/** `Subject` is what the framework calls the request: `req` in Node and Express, `ctx` in Koa. */
export interface FlowControlOptions<Subject> extends ErrorResponseOptions, Omit<FlowKeyOptions, 'trust'> {
  /**
   * Whether the flow headers of a request may be believed. Say true only where a proxy of your own sets them and
   * removes what clients send: otherwise clients name any tenant and any objective. They are never forwarded.
   * @default false
   */
  trust?: boolean | ((subject: Subject) => boolean) | undefined;
  /** Names the flow in place of the headers. Synchronous. An exception goes to the host's error handling. */
  classify?: ((subject: Subject) => Classification) | undefined;
  /** Bytes that count, from 0. @default Content-Length up to `readAheadBytes`; without a length `unknownBodyBytes` */
  byteSize?: ((subject: Subject) => number) | undefined;
  /**
   * How much of a body may arrive, and counts, while its request waits. What is announced and never sent takes nothing
   * from others. On fetch runtimes, which receive bodies themselves, and for calls that go out, all is booked.
   * @default 2097152
   */
  readAheadBytes?: number | undefined;
  /** A larger Content-Length gets 413; integer bytes from 1 up. @default none does */
  maxRequestBytes?: number | undefined;
  /**
   * How long a client with a seat may be silent before its body has arrived, ms above 0. Time in which the handler does
   * not read, or after the response has begun, does not count. Then it gets 408; `lease.signal` aborts. HTTP/1 only.
   * @default 30_000
   */
  uploadIdleMs?: number | undefined;
  /** The least rate of such an upload after `uploadIdleMs`, bytes per second from 0 up; HTTP/1 only. @default 4096 */
  minUploadBytesPerSecond?: number | undefined;
  /** Signs of life while requests wait, where they are received. @default silence */
  waiting?: WaitingOptions<Subject> | undefined;
  /** Bytes to book for a body of unknown length. @default 65536 */
  unknownBodyBytes?: number | undefined;
  /** `respond`: the adapter answers. `throw`: the host's error handling gets it. @default 'respond' */
  onDrop?: 'respond' | 'throw' | undefined;
  /** `manual`: the handler calls `lease.release()`, for longer work. @default 'response-end' */
  releaseOn?: 'response-end' | 'manual' | undefined;
  /**
   * Whether `x-llm-d-flow-band-headroom-requests` says how many more may wait in the band. Every client then learns how
   * much others have waiting. Bands without `maxRequests` send no header. @default false
   */
  bandHeadroom?: boolean | undefined;
  /** An `AsyncLocalStorage` for handlers, where `flowFetch` and `flowMiddleware` find flow, session and signal. */
  context?: ContextScope | undefined;
  /** True for requests that need no lease: health checks, CORS preflights. Their flow headers are removed, too. */
  skip?: ((subject: Subject) => boolean) | undefined;
}

const aFunction = s.optional(atOnce('a function that answers at once', isFunction));
const waiting = s.object({
  after: s.optional(s.aboveZero()),
  every: s.optional(s.aboveZero()),
  isStream: aFunction,
  place: aFunction,
  informational: s.optional(s.flag()),
  json: s.optional(s.oneOf('whitespace')),
  onSign: aFunction,
} satisfies Record<keyof WaitingOptions<never>, unknown>);

const optionsSchema = s.object({
  trust: s.optional(atOnce('true, false or a function that answers at once', (given) => isFlag(given, isFunction))),
  objectives: s.optional(
    s.value('a Map or an object of priorities by name', (given) => typeof given === 'object' && given !== null),
  ),
  defaultFairnessId: s.optional(s.text('a string that is not empty')),
  sessionHeaders: s.optional(
    s.value('true, false or a list of header names', (given): given is unknown => isFlag(given, isListOfNames)),
  ),
  classify: aFunction,
  byteSize: aFunction,
  waiting: s.optional(waiting),
  unknownBodyBytes: s.optional(s.integer({ from: 0 })),
  readAheadBytes: s.optional(s.integer({ from: 0 })),
  maxRequestBytes: s.optional(s.positiveInteger()),
  uploadIdleMs: s.optional(
    s.value('ms above 0, or Infinity', (given): given is number => typeof given === 'number' && given > 0),
  ),
  minUploadBytesPerSecond: s.optional(s.number({ from: 0 })),
  onDrop: s.optional(s.oneOf('respond', 'throw')),
  releaseOn: s.optional(s.oneOf('response-end', 'manual')),
  bandHeadroom: s.optional(s.flag()),
  context: s.optional(s.objectWith<ContextScope>('an AsyncLocalStorage', 'run')),
  skip: aFunction,
  contract: s.optional(wordOrFunction('gateway-api', 'llm-d', 'dynamo')),
  body: s.optional(wordOrFunction('problem', 'openai')),
  maxRetryAfterSeconds: s.optional(s.positiveInteger()),
  hasEndpoints: aFunction,
  random: aFunction,
} satisfies Record<keyof FlowControlOptions<never>, unknown>);

/** Finds a misspelt `trust` before an attacker does. @throws FlowConfigError that lists every problem. */
export function checkAdapter(gate: Partial<AdapterGate> | null | undefined, options: object): void {
  if (!isFunction(gate?.enqueue)) throw lacking('enqueue', 'flowControl', 'flow');
  const { bandHeadroom } = s.parse(optionsSchema, options, 'flowControl options');
  if (bandHeadroom === true && !isFunction(gate?.bandHeadroom))
    throw lacking('bandHeadroom', 'flowControl options', 'bandHeadroom');

  function lacking(method: keyof AdapterGate, subject: string, path: string): FlowConfigError {
    const expected = `a FlowController, or what has its ${method}`;
    return new FlowConfigError(subject, [{ path, expected, got: describeValue(gate) }]);
  }
}

/** An async function is an error, because its promise is truthy: `trust` would believe everybody. */
function atOnce(expected: string, isRight: (given: unknown) => boolean): Schema<unknown> {
  return s.element((given, report) => {
    if (!isRight(given)) report(expected);
    else if (isAsyncFunction(given)) report(expected, [], 'an async function');
    return given;
  });
}

function wordOrFunction(...words: readonly string[]): Schema<unknown> {
  const word = s.oneOf(...words);
  return s.element((given, report) => {
    if (isFunction(given) && !isAsyncFunction(given)) return given;
    return s.readBy(word, given, (expected) =>
      report(`${expected}, or a function`, [], isFunction(given) ? 'an async function' : undefined),
    );
  });
}

/** Names that `Headers.get` takes; it throws at others. */
function isListOfNames(value: unknown): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === 'string' && /^[!#$%&'*+.^_`|~\w-]+$/.test(name));
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

function isFlag(value: unknown, orElse: (value: unknown) => boolean): boolean {
  return typeof value === 'boolean' || orElse(value);
}
