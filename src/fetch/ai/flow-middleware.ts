/** Flow control for the AI SDK: calls of models wait for their turn, hold a seat to their end, and can be evicted. */
import type { AdapterGate, Classification, ErrorResponseOptions } from '../../adapters/http/index.js';
import { toHttpResponse } from '../../adapters/http/index.js';
import { isRefusal } from '../../base/headers/retry-after.js';
import { promptTokens, tokensOfMedium } from '../../base/prompt-tokens.js';
import * as s from '../../base/schema/schema.js';
import type { Drop, Duration, FlowRequest, Lease, Outcome } from '../../index.js';
import { FlowControlError, realClock } from '../../index.js';
import { type CallFacts, callerSignal, turnFor } from '../fetch-call.js';
import type { CallContext, ContextStorage } from '../fetch-options.js';
import { checkGate, contextOption, longestIdleMs, responseShape } from '../fetch-options.js';
import { LeaseEnd, leasedStream } from '../lease-end.js';
import type { CallParams, GenerateResult, Model, StreamPart, StreamResult } from './language-model.js';
import { streamUsage, usageOf } from './language-model.js';

/** The request that policies see, in `item.request`. */
export interface ModelRequest
  extends FlowRequest,
    Pick<Classification, 'affinityKey' | 'sessionId' | 'endpointSubset'> {
  readonly model: string;
  readonly provider: string;
  /** Of the prompt, for quotas; undefined where the host has named the tokens. */
  readonly inputTokens?: number | undefined;
  /** The most that the call allows, for quotas. */
  readonly maxOutputTokens?: number | undefined;
}

export interface FlowMiddlewareOptions extends ErrorResponseOptions {
  /** Names the flow; the rest comes from `providerOptions.headgate`, else `context`. */
  classify?: ((params: CallParams, model: Model) => Partial<Classification>) | undefined;
  /** An `AsyncLocalStorage` with tenant, priority, signal, such as an adapter's `context`. */
  context?: ContextStorage<CallContext> | undefined;
  /** As in `flowFetch`. @default 'reject' */
  reentrant?: 'share' | 'reject' | undefined;
  /** Tokens to book for a call. @default the prompt at four letters a token, and the answer */
  estimate?: ((params: CallParams) => number | undefined) | undefined;
  /** How often an evicted or put-off call waits again, an integer from 0 up. @default 1 */
  maxRetries?: number | undefined;
  /** The longest silence of a stream; then it is broken off. @default 5 minutes */
  idleTimeout?: Duration | undefined;
}

/** The middleware for `wrapLanguageModel`, and the counts of the calls. */
export interface FlowMiddleware {
  /** What `ai` 6 asks for; `ai` 7 takes any. */
  readonly specificationVersion: 'v3';
  /** Streams that nobody read or cancelled, and whose seat came back when they were collected. */
  readonly counts: { readonly unread: number };
  wrapGenerate<P extends CallParams, R extends GenerateResult>(call: GenerateCall<P, R>): Promise<R>;
  wrapStream<P extends CallParams, R extends StreamResult>(call: StreamCall<P, R>): Promise<R>;
}

export interface GenerateCall<P, R> {
  readonly params: P;
  readonly model: Model & { doGenerate(params: P): PromiseLike<R> };
}

export interface StreamCall<P, R> {
  readonly params: P;
  readonly model: Model & { doStream(params: P): PromiseLike<R> };
}

const optionsSchema = s.object({
  classify: s.optional(s.callable<NonNullable<FlowMiddlewareOptions['classify']>>()),
  context: contextOption,
  reentrant: s.optional(s.oneOf('share', 'reject')),
  estimate: s.optional(s.callable<NonNullable<FlowMiddlewareOptions['estimate']>>()),
  maxRetries: s.optional(s.integer({ from: 0 }), 1),
  idleTimeout: s.optional(s.durationAboveZero('5m'), longestIdleMs),
  ...responseShape,
} satisfies Record<keyof FlowMiddlewareOptions, unknown>);

/**
 * A middleware for `wrapLanguageModel`. A call waits for a lease, and its model gets a signal that also aborts at an
 * eviction. The reported usage is charged. The seat comes back when the answer has ended, was cancelled or failed. A
 * drop is a FlowControlError that the SDK takes for a provider's, so that its own retries work.
 * @throws FlowConfigError for options that cannot be right.
 * @example
 * const model = wrapLanguageModel({ model: provider('llama'), middleware: flowMiddleware(flow) });
 * await generateText({ model, prompt, providerOptions: { headgate: { fairnessId: 'tenant-a', priority: 10 } } });
 */
export function flowMiddleware(flow: AdapterGate<ModelRequest>, options: FlowMiddlewareOptions = {}): FlowMiddleware {
  checkGate(flow, 'flowMiddleware');
  const settings = s.parse(optionsSchema, options, 'flowMiddleware options');
  const { classify, context, reentrant, estimate, maxRetries, idleTimeout: idleMs } = settings;
  const counts = { unread: 0 };

  async function ask(params: CallParams, model: Model, signal: AbortSignal | undefined): Promise<Outcome> {
    const named: Classification = {
      fairnessId: 'default-flow',
      ...context?.getStore(),
      ...params.providerOptions?.headgate,
      ...classify?.(params, model),
    };
    const facts = { ...factsOf(params), signal, model: model.modelId, provider: model.provider };
    return turnFor(flow, named, facts, estimate && (() => estimate(params)), reentrant)();
  }

  /** Runs `work` with a lease, once more where it can wait again. The answer of `work` then holds the lease. */
  async function inTurn<T, R>(params: CallParams, model: Model, work: (end: LeaseEnd<T>) => Promise<R>): Promise<R> {
    const signal = callerSignal(params.abortSignal, context?.getStore()?.signal);
    signal?.throwIfAborted();
    let outcome = await ask(params, model, signal);
    for (let retries = 0; ; retries++) {
      if (outcome.type !== 'Dispatched') {
        if (outcome.reason === 'cancelled') signal?.throwIfAborted();
        throw callError(outcome, options);
      }
      const { lease, queuedMs } = outcome;
      const end = new LeaseEnd<T>(lease, signal);
      try {
        return await work(end);
      } catch (error) {
        tellAnswer(lease, answerIn(error));
        const mayWait = (lease.isEvicted || lease.isPutOff) && retries < maxRetries && signal?.aborted !== true;
        if (!mayWait || !end.leave()) {
          end.settle();
          if (!lease.isEvicted) throw error;
          const { fairnessId, priority } = lease;
          const drop = { type: 'EvictedOther', reason: 'evicted', fairnessId, priority, queuedMs } as const;
          throw callError(drop, options);
        }
        outcome = await lease.requeue();
      }
    }
  }

  return {
    specificationVersion: 'v3',
    counts,
    wrapGenerate<P extends CallParams, R extends GenerateResult>({ params, model }: GenerateCall<P, R>): Promise<R> {
      return inTurn<never, R>(params, model, async (end) => {
        const result = await model.doGenerate({ ...params, abortSignal: end.signal });
        tellAnswer(end.lease, result.response?.headers && { status: 200, headers: result.response.headers });
        end.lease.report(usageOf(result.usage));
        end.settle();
        return result;
      });
    },
    wrapStream<P extends CallParams, R extends StreamResult>({ params, model }: StreamCall<P, R>): Promise<R> {
      return inTurn<StreamPart, R>(params, model, async (end) => {
        const result = await model.doStream({ ...params, abortSignal: end.signal });
        end.signal.throwIfAborted();
        tellAnswer(end.lease, result.response?.headers && { status: 200, headers: result.response.headers });
        end.reader = streamUsage(end.lease);
        end.awaitPieces(realClock, idleMs);
        end.isAnswered = true;
        return { ...result, stream: leasedStream(result.stream.getReader(), [], end, counts) };
      });
    },
  };
}

function factsOf({ prompt, maxOutputTokens }: CallParams): CallFacts {
  const files: ArrayBufferView[] = [];
  const json = JSON.stringify(prompt, function (this: Record<string, unknown>, name, value) {
    const file = this[name];
    return ArrayBuffer.isView(file) ? void files.push(file) : value;
  });
  // In letters: as long as JSON with base64 in it, which is what most providers send.
  const { length = 0 } = json ?? {};
  const byteSize = files.reduce((sum, { byteLength }) => sum + Math.ceil(byteLength / 3) * 4, length);
  return { byteSize, inputTokens: promptTokens(json ?? '', length) + files.length * tokensOfMedium, maxOutputTokens };
}

function tellAnswer(lease: Lease, answer: Parameters<Lease['answered']>[0] | undefined): void {
  if (answer !== undefined) lease.answered(answer);
}

/** The SDK recognizes its errors by these symbols, even if they come from another copy of it. */
const markers = ['vercel.ai.error', 'vercel.ai.error.AI_APICallError'].map((name) => Symbol.for(name));

/** A FlowControlError with the members of an APICallError, so that the SDK's own retries work. */
function callError(drop: Drop, options: ErrorResponseOptions): FlowControlError {
  const error = new FlowControlError(drop, toHttpResponse(drop, options));
  for (const marker of markers) Object.defineProperty(error, marker, { value: true });
  const outward = { responseHeaders: error.headers, isRetryable: isRefusal(error.status) };
  return Object.assign(error, { url: 'headgate:', requestBodyValues: {}, ...outward });
}

interface ProviderError {
  readonly statusCode: number;
  readonly responseHeaders?: Readonly<Record<string, string>> | undefined;
  readonly responseBody?: string | undefined;
}

/** The answer of a server behind a provider's error; undefined for errors of another kind. */
function answerIn(error: unknown) {
  if (!(error instanceof Error) || !('statusCode' in error) || !Number.isInteger(error.statusCode)) return undefined;
  const { statusCode: status, responseHeaders: headers = {}, responseBody: body } = error as unknown as ProviderError;
  return status >= 100 && status <= 599 ? { status, headers, body } : undefined;
}
