/**
 * How many requests of a batch go at a time: found by additive increase and multiplicative decrease.
 *
 *     fetch ──► line ──► window, headroom, pause ──► gateway ──► answer: what it tells sets all three
 *
 * Invariant: the requests in flight, until the end of their answer's body, never exceed the window, nor the reported
 * headroom. After the pause one may always go when none is in flight, because only an answer tells of room.
 */
import type { output } from 'zod/v4/core';
import { realClock } from '../base/clock.js';
import { bandHeadroomHeader } from '../base/headers/header-names.js';
import { isRefusal } from '../base/headers/retry-after.js';
import { isReplayable } from '../base/request-body.js';
import * as s from '../base/schema/schema.js';
import { watchedBody } from '../base/stream/watched-body.js';
import { withBody } from '../base/stream/with-body.js';
import type { Clock } from '../index.js';
import { type RetryPolicy, retryDelayMs, retryPolicyShape } from './retry-delay.js';
import { platformFetch } from './retrying-fetch.js';
import { discardBody, type Fetch, replayableInput, signalOf } from './sent-again.js';

export interface BatchDispatcherOptions extends RetryPolicy {
  /** Sends one request. @default the platform's fetch */
  fetch?: Fetch | undefined;
  /** Requests in flight at the start. @default 1 */
  initial?: number | undefined;
  /** The most requests in flight, whatever headroom is reported, an integer from 1 up. @default 64 */
  max?: number | undefined;
  /** The growth of the window with each window of answers, above 0. @default 1 */
  increase?: number | undefined;
  /** The part of the window that a refusal leaves, above 0 and below 1. @default 0.5 */
  decrease?: number | undefined;
  /** The pause after an answer of no headroom; ms above 0. @default 1000 */
  probeMs?: number | undefined;
  /** How often a request is sent at most, an integer from 1 up. @default 10 */
  maxAttempts?: number | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}

export interface BatchDispatcher {
  /** Waits for its turn, and again after a refusal. The place is free when the body was read, or cancelled. */
  readonly fetch: Fetch;
  /** Requests that may be in flight, as learnt from answers. */
  readonly window: number;
  /** The room that the gateway told last of its band; undefined when its last answer told nothing. */
  readonly headroom: number | undefined;
  readonly inFlight: number;
  /** Requests that wait for their turn here. */
  readonly waiting: number;
}

const isPart = (given: unknown): given is number => typeof given === 'number' && given > 0 && given < 1;
const shape = {
  fetch: s.optional(s.callable<Fetch>(), platformFetch),
  initial: s.optional(s.numberFrom(1), 1),
  max: s.optional(s.positiveInteger(), 64),
  increase: s.optional(s.aboveZero(), 1),
  decrease: s.optional(s.value('a number above 0, below 1', isPart), 0.5),
  probeMs: s.optional(s.msAboveZero(), 1000),
  maxAttempts: s.optional(s.positiveInteger(), 10),
  clock: s.optional(s.clock(), realClock),
} satisfies Record<Exclude<keyof BatchDispatcherOptions, keyof RetryPolicy>, unknown>;

const optionsSchema = s.object(s.withKeys(retryPolicyShape, shape));

/**
 * A fetch for work that can wait, such as a batch beside chat. It begins with few requests, adds one for each window of
 * answers, and halves after a refusal (429, 503, 529), sent again no sooner than the answer says. It never has more in
 * flight than the gateway's `x-llm-d-flow-band-headroom-requests` says (`bandHeadroom: true`). Make one for each
 * gateway. After `maxAttempts`, or where it cannot be sent again, the refusal is the answer; no other failure is
 * retried. Source: Chiu and Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance" (1989).
 * @throws FlowConfigError
 * @example
 * const batch = batchDispatcher();
 * await Promise.all(prompts.map(async (body) => (await batch.fetch(url, { method: 'POST', body })).json()));
 */
export function batchDispatcher(options: BatchDispatcherOptions = {}): BatchDispatcher {
  return new Dispatcher(s.parse(optionsSchema, options, 'batchDispatcher options'));
}

type Settings = output<typeof optionsSchema>;

class Dispatcher implements BatchDispatcher {
  readonly fetch: Fetch;
  window: number;
  headroom: number | undefined = undefined;
  inFlight = 0;
  /** Refused requests go first. Entries let a request go, in the order of a set. */
  private readonly refused = new Set<() => void>();
  private readonly fresh = new Set<() => void>();
  private closedUntilMs = -Infinity;
  /** Counts decreases: a refusal of what was sent before the last one teaches nothing new. */
  private decreases = 0;
  private timer: unknown = undefined;
  private readonly settings: Settings;

  constructor(settings: Settings) {
    this.settings = settings;
    this.window = Math.min(settings.initial, settings.max);
    this.fetch = (input, init) => this.send(input, init);
  }

  get waiting(): number {
    return this.refused.size + this.fresh.size;
  }

  private async send(input: string | URL | Request, init: RequestInit | undefined): Promise<Response> {
    const { fetch, maxAttempts } = this.settings;
    const attempts = isReplayable(init?.body) ? maxAttempts : 1;
    const signal = signalOf(input, init);
    for (let attempt = 0; ; attempt++) {
      await this.turn(attempt > 0 ? this.refused : this.fresh, signal);
      const { decreases } = this;
      const isLast = attempt + 1 >= attempts;
      let response: Response;
      try {
        response = await fetch(isLast ? input : replayableInput(input, init), init);
      } catch (error) {
        this.end();
        throw error;
      }
      const delayMs = this.learn(response, attempt, decreases);
      if (delayMs === undefined) this.pump();
      const isAnswer = delayMs === undefined || isLast;
      if (isAnswer && response.body) return withBody(response, watchedBody(response.body, () => this.end()).stream);
      if (!isAnswer) discardBody(response);
      this.end();
      // React Native has no bodies as streams.
      if (isAnswer) return response;
    }
  }

  /** Learns from an answer. Returns the pause after a refusal that may be sent again. */
  private learn(response: Response, attempt: number, decreases: number): number | undefined {
    const { max, increase, decrease, probeMs, clock } = this.settings;
    const { status, headers } = response;
    const told = headroomOf(headers);
    const delayMs = retryDelayMs(response, attempt, this.settings);
    const pauseMs = Math.max(delayMs ?? 0, told === 0 ? probeMs : 0);
    this.closedUntilMs = Math.max(this.closedUntilMs, clock.now() + pauseMs);
    if (told !== undefined || !isRefusal(status)) this.headroom = told;
    if (!isRefusal(status)) {
      // A window that was not used up says nothing about a larger one.
      if (status < 400 && this.inFlight + 1 > this.window)
        this.window = Math.min(max, this.window + increase / this.window);
    } else if (decreases === this.decreases) {
      this.decreases++;
      this.window = Math.max(1, this.window * decrease);
    }
    return delayMs;
  }

  /** One request may always go when none is in flight, because only its answer can tell of room. */
  private mayGo(nowMs: number): boolean {
    if (nowMs < this.closedUntilMs) return false;
    return this.inFlight === 0 || this.inFlight + 1 <= Math.min(this.window, this.headroom ?? Infinity);
  }

  /** Resolves when one more may be in flight, and counts it. Rejects with the signal's reason. */
  private turn(line: Set<() => void>, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const go = (): void => {
        signal?.removeEventListener('abort', callOff);
        resolve();
      };
      const callOff = (): void => {
        line.delete(go);
        this.pump();
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', callOff, { once: true });
      line.add(go);
      this.pump();
    });
  }

  private end(): void {
    this.inFlight--;
    this.pump();
  }

  private pump(): void {
    const { clock } = this.settings;
    const nowMs = clock.now();
    clock.clearTimeout(this.timer);
    this.timer = undefined;
    for (const line of [this.refused, this.fresh]) {
      for (const go of line) {
        if (!this.mayGo(nowMs)) break;
        line.delete(go);
        this.inFlight++;
        go();
      }
    }
    if (this.waiting > 0 && nowMs < this.closedUntilMs)
      this.timer = clock.setTimeout(() => this.pump(), this.closedUntilMs - nowMs);
  }
}

function headroomOf(headers: Headers): number | undefined {
  const text = headers.get(bandHeadroomHeader);
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
