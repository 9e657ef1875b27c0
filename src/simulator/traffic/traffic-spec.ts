/** Traffic, as a scenario describes it: who sends, how often, how large requests are, and how long clients wait. */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import { type Distribution, distribution } from '../random/distributions.js';
import { type Rate, rate } from '../random/rate-profile.js';
import { oneOfShapes, type Shapes } from '../schemas.js';
import { someRows, type TraceRow } from '../traces/trace-row.js';

/** When requests come. Times are ms; rates are requests per second. */
export type Arrivals =
  /** Independent of each other. */
  | { readonly type: 'poisson'; readonly rate: Rate }
  /** `cv` is the coefficient of variation of the gaps: 1 is Poisson, more is burstier. */
  | { readonly type: 'gamma'; readonly rate: Rate; readonly cv: number }
  /** Evenly spaced. `offset`: part of a gap before the first, 0…1. @default drawn at random */
  | { readonly type: 'fixed'; readonly rate: Rate; readonly offset?: number | undefined }
  /** `threads` clients: each sends again after an answer and `think`, and starts `stagger` after the one before it. */
  | {
      readonly type: 'closed-loop';
      readonly threads: number;
      readonly think?: Distribution | undefined;
      readonly stagger?: number | undefined;
      readonly requestsPerThread?: number | undefined;
    }
  /** Agents: each session makes `turns` requests, `toolTime` apart; a prompt is all before it, and `promptTokens`. */
  | {
      readonly type: 'sessions';
      readonly rate: Rate;
      readonly turns: Distribution;
      readonly toolTime?: Distribution | undefined;
    }
  /** Requests as they were recorded. `speed` 2 is twice as fast. */
  | { readonly type: 'trace'; readonly rows: readonly TraceRow[]; readonly speed?: number | undefined };

/** The conditions of a good answer; all that are given must hold. */
export interface SloSpec {
  /** Longest time to the first token, ms. */
  readonly ttft?: number | undefined;
  /** Longest mean time between tokens, ms. */
  readonly perToken?: number | undefined;
  /** Longest time to the last token, ms. */
  readonly total?: number | undefined;
}

/** The behaviour of clients. */
export interface ClientSpec {
  /** They leave when there is no first token by then, ms. @default never */
  readonly patience?: Distribution | undefined;
  /** They leave when the answer is not whole by then, ms. @default never */
  readonly deadline?: Distribution | undefined;
  /** False: nobody notices that they left, and the work is done for nothing. @default true */
  readonly tellsGateway?: boolean | undefined;
  /** Their behaviour after a drop. @default nothing */
  readonly retries?: RetrySpec | undefined;
}

export interface RetrySpec {
  /** Retries of one request at most. @default 2 */
  readonly max?: number | undefined;
  /** Longest pause before the first retry, ms; it doubles, and any length up to it is as likely. @default 500 */
  readonly initial?: number | undefined;
  /** Longest pause of all, ms. @default 8000 */
  readonly longest?: number | undefined;
  /** Wait at least as long as Retry-After says. @default true */
  readonly obeysRetryAfter?: boolean | undefined;
  /** Retries that each request earns for all clients of this traffic together. @default 0.1 */
  readonly budget?: number | undefined;
}

export interface TrafficSpec {
  /** The fairness ID. Traces bring their own, unless this is given. */
  readonly tenant?: string | undefined;
  /** The number of equal tenants, named tenant-0, tenant-1 and so on. @default 1 */
  readonly tenants?: number | undefined;
  /** @default 0, or what the trace says */
  readonly priority?: number | undefined;
  /** The class in figures and reports. @default `priority N` */
  readonly class?: string | undefined;
  readonly arrivals: Arrivals;
  /** @default 0, or what the trace says */
  readonly promptTokens?: Distribution | undefined;
  /** @default 1, or what the trace says */
  readonly outputTokens?: Distribution | undefined;
  /** Service time on servers of slots, ms. @default as the server says */
  readonly serviceTime?: Distribution | undefined;
  /** Slots that one request takes, on servers of slots. @default 1 */
  readonly seats?: Distribution | undefined;
  /** The size as the gateway believes it: prompt, seats, or all tokens. @default prompt, or seats where given */
  readonly tokens?: 'prompt' | 'seats' | 'total' | undefined;
  /** Bytes of a body. @default four for each prompt token */
  readonly bytes?: number | undefined;
  /** How long a request may wait at the gateway, ms. @default as its band says */
  readonly ttl?: Distribution | undefined;
  /** Target for the first token that the request carries (`x-slo-ttft-ms`), ms; it counts for goodput. @default none */
  readonly sloTtft?: Distribution | undefined;
  /** A request may wait until so long before its own `sloTtft`, ms: what is provably late is dropped. @default `ttl` */
  readonly ttlMargin?: number | undefined;
  readonly slo?: SloSpec | undefined;
  readonly client?: ClientSpec | undefined;
  /** Not before, ms. @default 0 */
  readonly startAt?: number | undefined;
  /** Not after, ms. @default the end of the traffic */
  readonly endAt?: number | undefined;
}

const span = s.durationAboveZero('30s');
const times: Schema<Distribution> = distribution(s.duration('100ms'));
const type = s.anything();
const counts: Schema<Distribution> = distribution(s.atLeastZero());

const arrivalShapes: Shapes<Arrivals['type']> = {
  poisson: s.object({ type, rate: rate() }),
  gamma: s.object({ type, rate: rate(), cv: s.aboveZero() }),
  fixed: s.object({ type, rate: rate(), offset: s.optional(s.ratio()) }),
  'closed-loop': s.object({
    type,
    threads: s.positiveInteger(),
    think: s.optional(times),
    stagger: s.optional(s.duration('1ms')),
    requestsPerThread: s.optional(s.positiveInteger()),
  }),
  sessions: s.object({ type, rate: rate(), turns: counts, toolTime: s.optional(times) }),
  trace: s.object({ type, rows: someRows, speed: s.optional(s.aboveZero()) }),
};

const client: Schema<ClientSpec> = s.object({
  ...s.optionals(times, 'patience', 'deadline'),
  tellsGateway: s.optional(s.flag()),
  retries: s.optional(
    s.object({
      max: s.optional(s.integer({ from: 0 })),
      ...s.optionals(span, 'initial', 'longest'),
      obeysRetryAfter: s.optional(s.flag()),
      budget: s.optional(s.atLeastZero()),
    }),
  ),
});

export const trafficSpec: Schema<TrafficSpec> = s.object(
  {
    tenant: s.optional(s.text('the name of a tenant')),
    tenants: s.optional(s.positiveInteger()),
    priority: s.optional(s.integer()),
    class: s.optional(s.text('the name of a class')),
    arrivals: oneOfShapes<Arrivals>('type', arrivalShapes),
    ...s.optionals(counts, 'promptTokens', 'outputTokens', 'seats'),
    serviceTime: s.optional(distribution(s.durationAboveZero('100ms'))),
    tokens: s.optional(s.oneOf('prompt', 'seats', 'total')),
    bytes: s.optional(s.integer({ from: 0 })),
    ...s.optionals(times, 'ttl', 'sloTtft'),
    ttlMargin: s.optional(s.duration('10ms')),
    slo: s.optional(s.object(s.optionals(span, 'ttft', 'perToken', 'total'))),
    client: s.optional(client),
    startAt: s.optional(s.duration('0s')),
    endAt: s.optional(span),
  },
  ({ arrivals: given, tenants, sloTtft, ttlMargin }, report) => {
    if (ttlMargin !== undefined && sloTtft === undefined) report('nothing, or also `sloTtft`', ['ttlMargin']);
    if (given?.type === 'trace' && (tenants ?? 1) > 1) report('one tenant, or those of the trace', ['tenants']);
  },
);
