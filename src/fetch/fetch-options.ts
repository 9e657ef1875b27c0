/** The options of `flowFetch`, and how they are checked. */
import type { AdapterGate, Classification, ErrorResponseOptions } from '../adapters/http/index.js';
import { describeValue } from '../base/faults/flow-config-error.js';
import * as s from '../base/schema/schema.js';
import { type Clock, type Duration, type EndpointView, FlowConfigError, realClock, type Schema } from '../index.js';
import type { FetchCall } from './fetch-call.js';
import type { Cause } from './reentrant.js';

/** The signature that every fetch has. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** The part of `AsyncLocalStorage` that is used, so that nothing of Node is imported. */
export interface ContextStorage<T> {
  getStore(): T | undefined;
}

/** What a host leaves in `context`: the flow, and when calls stop. The adapters' `context` leaves all of it. */
export interface CallContext extends Partial<Classification>, Cause {
  readonly signal?: AbortSignal | undefined;
}

export interface FetchTimeouts {
  /** A stream without a content token for so long, held until then, is asked for again by `retry.max`. @default none */
  firstToken?: Duration | undefined;
  /** The same by the model in the request: reasoning models think for longer. */
  firstTokenByModel?: Readonly<Record<string, Duration>> | undefined;
  /** To the answer's head; for a stream's last attempt in place of `firstToken`. @default none */
  firstByte?: Duration | undefined;
  /** The longest silence of an answer on either side; then it is broken off. @default 5 minutes */
  idle?: Duration | undefined;
}

export interface FetchRetry {
  /** How often a request goes through the gate again, an integer from 0 up. @default 1 */
  max?: number | undefined;
  /** The longest wait that a refusal may ask for, ms. @default 60_000 */
  maxWaitMs?: number | undefined;
}

/** The pool's method that keeps work from an endpoint for a while. */
export interface MarkablePool {
  markOverloaded(endpoint: EndpointView, forMs: number): boolean;
}

export interface FlowFetchOptions extends ErrorResponseOptions {
  /** Sends a dispatched request. @default the platform's at each call, or the one that the flow's own replaced */
  fetch?: Fetch | undefined;
  /** Names the flow; what it leaves out is `context`'s. Synchronous; exceptions reject. @default `default-flow`, 0 */
  classify?: ((call: FetchCall) => Partial<Classification>) | undefined;
  /** An `AsyncLocalStorage` with tenant, priority, signal, such as an adapter's `context`. */
  context?: ContextStorage<CallContext> | undefined;
  /** Calls of a request with a seat of this controller: at once or not at all, or in its seat. @default 'reject' */
  reentrant?: 'share' | 'reject' | undefined;
  /** True for calls without a lease: they go to `fetch` at once, with all headers. @default none does */
  skip?: ((call: FetchCall) => boolean) | undefined;
  /** Tokens to book; undefined books none. @default a JSON body's prompt at four bytes a token, and its answer */
  estimate?: ((call: FetchCall) => number | undefined) | undefined;
  /** Whether answers are read for their usage. @default true */
  usage?: boolean | undefined;
  /** When a request is sent again without the caller's doing. `false` is never. */
  retry?: FetchRetry | false | undefined;
  timeouts?: FetchTimeouts | undefined;
  /** `respond`: by the error contract. `throw`: the call rejects with a FlowControlError. @default 'respond' */
  onDrop?: 'respond' | 'throw' | undefined;
  /** An endpoint's URL. @default path and query of the call at its `url` or `address` label, else at its id */
  route?: ((endpoint: EndpointView, call: FetchCall) => string | URL) | undefined;
  /** Headers for an endpoint, in place of the caller's: its API key. */
  headersFor?: ((endpoint: EndpointView, call: FetchCall) => Readonly<Record<string, string>>) | undefined;
  /** Has an endpoint avoided that refused for load, as long as it says, or 5 s. */
  pool?: MarkablePool | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}

type Spans = Readonly<Record<'firstToken' | 'firstByte' | 'idle', number>>;

/** The options with their defaults, spans of time in ms; Infinity: no bound. */
export interface FetchSettings extends Omit<FlowFetchOptions, 'usage' | 'retry' | 'timeouts' | 'clock'> {
  readonly usage: boolean;
  readonly retry: { readonly max: number; readonly maxWaitMs: number };
  readonly timeouts: Spans & { readonly firstTokenByModel: Readonly<Record<string, number>> };
  readonly clock: Clock;
}

/** Parameters and results cannot be checked here; `toHttpResponse` takes them as they are. */
const asItIs = s.optional(s.element<never>((given) => given as never));
export const responseShape: { readonly [K in keyof ErrorResponseOptions]-?: Schema<ErrorResponseOptions[K]> } = {
  contract: asItIs,
  body: asItIs,
  maxRetryAfterSeconds: s.optional(s.positiveInteger()),
  hasEndpoints: s.optional(s.callable<() => boolean>()),
  random: s.optional(s.callable<() => number>()),
};
/** Of the storage in which calls find the request that causes them. */
export const contextOption: Schema<ContextStorage<CallContext> | undefined> = s.optional(
  s.objectWith('an AsyncLocalStorage', 'getStore'),
);

/** No working server pauses for longer. */
export const longestIdleMs = 300_000;

const retrySchema = s.object({
  max: s.optional(s.integer({ from: 0 }), 1),
  maxWaitMs: s.optional(s.integer({ from: 0 }), 60_000),
});
const never = { max: 0, maxWaitMs: 0 };

export const optionsSchema: Schema<FetchSettings> = s.object({
  fetch: s.optional(s.callable<Fetch>()),
  classify: s.optional(s.callable<NonNullable<FlowFetchOptions['classify']>>()),
  context: contextOption,
  reentrant: s.optional(s.oneOf('share', 'reject')),
  skip: s.optional(s.callable<NonNullable<FlowFetchOptions['skip']>>()),
  estimate: s.optional(s.callable<NonNullable<FlowFetchOptions['estimate']>>()),
  usage: s.optional(s.flag(), true),
  retry: s.otherwise(
    s.element<typeof never>((given, report) => (given === false ? never : s.readBy(retrySchema, given, report))),
    {},
  ),
  timeouts: s.orEmpty(
    s.object({
      firstToken: s.optional(s.positiveDuration('5s'), Infinity),
      firstTokenByModel: s.optional(s.record(s.durationAboveZero('60s')), {}),
      firstByte: s.optional(s.positiveDuration('5m'), Infinity),
      idle: s.optional(s.durationAboveZero('5m'), longestIdleMs),
    }),
  ),
  onDrop: s.optional(s.oneOf('respond', 'throw')),
  route: s.optional(s.callable<NonNullable<FlowFetchOptions['route']>>()),
  headersFor: s.optional(s.callable<NonNullable<FlowFetchOptions['headersFor']>>()),
  pool: s.optional(s.objectWith<MarkablePool>('an EndpointPool', 'markOverloaded')),
  clock: s.optional(s.clock(), realClock),
  ...responseShape,
} satisfies Record<keyof FlowFetchOptions, unknown>);

/** @throws FlowConfigError for what is no controller. */
export function checkGate(gate: Partial<AdapterGate> | null | undefined, subject: string): void {
  if (typeof gate?.enqueue === 'function') return;
  const expected = 'a FlowController, or what has its enqueue';
  throw new FlowConfigError(subject, [{ path: 'flow', expected, got: describeValue(gate) }]);
}
