/**
 * A fetch whose requests wait for their turn in the process that calls hosted models, or model servers.
 *
 *   classify → enqueue ─┬─ Dispatched → attempt ─┬─ answered → the answer, whose body holds the lease
 *                 ▲     └─ drop → answer or error └─ evicted, refused, late ─┐
 *                 └──────────────────── while retry.max allows ──────────────┘
 */
import type { AdapterGate, Classification, ErrorResponseOptions, HttpFlowRequest } from '../adapters/http/index.js';
import { toHttpResponse } from '../adapters/http/index.js';
import { describeValue } from '../base/faults/flow-config-error.js';
import { pause } from '../base/pause.js';
import { promptTokens } from '../base/prompt-tokens.js';
import * as s from '../base/schema/schema.js';
import type { Drop, EndpointPicker, Lease, Outcome } from '../index.js';
import { FlowConfigError, FlowControlError } from '../index.js';
import { Attempt, type AttemptResult } from './attempt.js';
import { FetchCall, turnFor } from './fetch-call.js';
import type { CallContext, Fetch, FetchSettings, FlowFetchOptions } from './fetch-options.js';
import { checkGate, optionsSchema } from './fetch-options.js';

/** The request that policies see, in `item.request`: the call in `req`, its model and its size. */
export interface FetchRequest extends HttpFlowRequest<FetchCall> {
  /** The model that a JSON body names, for filters by label. */
  readonly model?: string | undefined;
  /** Of the prompt, for quotas; undefined where the host has named the tokens, or nobody knows. */
  readonly inputTokens?: number | undefined;
  /** The most that the body allows, for quotas. */
  readonly maxOutputTokens?: number | undefined;
}

/** Counts of what happened to requests since the fetch was made. */
export interface FetchCounts {
  /** Answers whose seat came back when they were collected: nobody read or cancelled them, a mistake; see the docs. */
  readonly unread: number;
  /** Attempts that were given up for another one. */
  readonly retried: number;
}

/** A fetch with its counts. */
export interface FlowFetch extends Fetch {
  readonly counts: FetchCounts;
}

/**
 * A fetch for the clients of model APIs. It waits for a lease, sends the request, to the lease's endpoint where there
 * is a pool, and passes the answer on while it reads its usage. The seat is given back when the body has ended, was
 * cancelled or failed. A drop is an answer of the error contract, so that the client's own retries work. A caller that
 * aborts gets its own reason, as from fetch. @throws FlowConfigError for options that cannot be right.
 * @example
 * const openai = new OpenAI({ fetch: flowFetch(flow, { classify: () => ({ fairnessId: tenant.id, priority: 10 }) }) });
 */
export function flowFetch(flow: AdapterGate<FetchRequest>, options: FlowFetchOptions = {}): FlowFetch {
  checkGate(flow, 'flowFetch');
  const settings = s.parse(optionsSchema, options, 'flowFetch options');
  const counts = { unread: 0, retried: 0 };
  // The clients of all providers find the message there; Dynamo's contract has a body of its own.
  const { body = settings.contract === 'dynamo' ? undefined : 'openai' } = settings;
  const responseOptions: ErrorResponseOptions = { ...settings, body };
  // In the platform's place this fetch gets what it sends itself: that has its seat, and goes to what was there before.
  const platform = globalThis.fetch;
  const sent = new WeakSet<AbortSignal>();

  // One parameter that has to be there, as the platform's says of itself.
  async function fetch(input: string | URL | Request, init: RequestInit | undefined = undefined): Promise<Response> {
    if (init?.signal && sent.has(init.signal)) return platform(input, init);
    const context = settings.context?.getStore();
    const call = new FetchCall(input, init, context?.signal);
    if (settings.skip?.(call) === true) return (settings.fetch ?? platform)(input, init);
    if (call.signal?.aborted) leave(call);
    const ask = turnOf(flow, call, settings, context);
    const mostRetries = call.isReplayable ? settings.retry.max : 0;
    let outcome = await ask();
    for (let retries = 0; ; retries++) {
      if (outcome.type !== 'Dispatched') return dropped(outcome, call);
      const { lease, queuedMs } = outcome;
      const mayRetry = retries < mostRetries;
      const attempt = new Attempt(lease, call, settings, counts, mayRetry);
      sent.add(attempt.end.signal);
      const result = await attempt.run();
      if (result.type === 'answered') return result.response;
      const again = mayRetry ? await waitAgain(attempt, result, call, ask) : undefined;
      if (again === undefined) return giveUp(result, lease, queuedMs, call);
      counts.retried += 1;
      outcome = again;
    }
  }

  async function waitAgain(attempt: Attempt, result: AttemptResult, call: FetchCall, askAgain: () => Promise<Outcome>) {
    const { lease, end } = attempt;
    if (result.type === 'evicted') return lease.requeue();
    if (result.type !== 'refused') return askAgain();
    // A detector has learnt from the answer, so the gate holds the request until there is room.
    if (lease.isPutOff && end.leave()) {
      result.discard();
      return lease.requeue();
    }
    const { waitMs } = result;
    const isElsewhere = settings.pool !== undefined && lease.endpoint !== undefined;
    if (!isElsewhere && (waitMs === undefined || waitMs > settings.retry.maxWaitMs)) return undefined;
    result.discard();
    end.settle();
    if (!isElsewhere && waitMs !== undefined) await pause(waitMs, settings.clock, call.signal);
    return askAgain();
  }

  function giveUp(result: AttemptResult, lease: Lease, queuedMs: number, call: FetchCall): Response {
    if (result.type === 'refused') return result.pass();
    const { fairnessId, priority } = lease;
    lease.release();
    return dropped({ type: 'EvictedOther', reason: 'evicted', fairnessId, priority, queuedMs }, call);
  }

  function dropped(drop: Drop, call: FetchCall): Response {
    if (drop.reason === 'cancelled' && call.signal?.aborted) leave(call);
    call.leaveBody(undefined);
    const response = toHttpResponse(drop, responseOptions);
    if (settings.onDrop === 'throw') throw new FlowControlError(drop, response);
    return new Response(response.body, response);
  }

  return Object.defineProperty(fetch, 'counts', { value: counts, enumerable: true }) as FlowFetch;
}

/**
 * Wraps a picker: it sees the endpoints that a request was sent to before only if no other endpoint has room.
 * @example new FlowController({ pool, endpointPicker: elsewhere(leastLoaded()), … })
 */
export function elsewhere(picker: EndpointPicker<FetchRequest>): EndpointPicker<FetchRequest> {
  return {
    type: picker.type,
    pick(endpoints, item, nowMs) {
      const { tried } = item.request.req;
      const others = tried.length === 0 ? endpoints : endpoints.filter(({ id }) => !tried.includes(id));
      return picker.pick(others.length > 0 ? others : endpoints, item, nowMs);
    },
  };
}

function leave(call: FetchCall): never {
  const reason: unknown = call.signal?.reason;
  call.leaveBody(reason);
  throw reason;
}

function turnOf(flow: AdapterGate<FetchRequest>, call: FetchCall, settings: FetchSettings, context?: CallContext) {
  const { byteSize, signal, model, maxOutputTokens, body } = call;
  const inputTokens = model === undefined || typeof body !== 'string' ? undefined : promptTokens(body, byteSize);
  const facts = { byteSize, signal, model, inputTokens, maxOutputTokens, req: call };
  const { estimate, reentrant } = settings;
  return turnFor(flow, classified(call, settings, context), facts, estimate && (() => estimate(call)), reentrant);
}

function classified(call: FetchCall, { classify }: FetchSettings, context: CallContext | undefined): Classification {
  const given: unknown = classify?.(call);
  const isRight = given === undefined || (typeof given === 'object' && given !== null && !('then' in given));
  if (!isRight) {
    const expected = 'an object with a fairnessId, at once: look tenants up first';
    throw new FlowConfigError('flowFetch', [{ path: 'classify', expected, got: describeValue(given) }]);
  }
  return { fairnessId: 'default-flow', ...context, ...given };
}
