/**
 * The connection to the store: a time limit for each call, a breaker after three misses in a row, and figures of both.
 *
 *     closed ── 3 misses ──► open ── retry time, jittered and doubling ──► one probe ── answered ──► closed
 *
 * Invariant: `run` settles once and in time, whatever the client does, which holds at most `mostOutstanding` commands
 * since the last answer. Answers come in order: an older command whose reply was lost does not count for ever.
 */
import { letProcessEnd } from '../../base/clock.js';
import type { LinkFigures, Store, StoreScript, Texts } from './store.js';
import type { StoreSettings } from './store-options.js';
import { badReply, problemOf, StoreError, type StoreProblem, symptomOf } from './store-problem.js';

export interface LinkListener {
  problem?(problem: StoreProblem): void;
  /** The same problem as the last is told again after this, ms. @default when the breaker was closed meanwhile */
  readonly sameAfterMs?: number;
  breaker?(isOpen: boolean): void;
  /** There is a connection, perhaps a new one. */
  connected?(): void;
}

type OnLate = (reply: unknown) => void;
type Read<T> = (reply: unknown) => T | undefined;

const missesToOpen = 3;
const firstRetryMs = 200;
/** The most commands without an answer that a client may hold for us, late ones included. */
const mostOutstanding = 256;

const whyNotAsked = {
  connecting: 'the connection is being made',
  'breaker-open': 'the store did not answer the last calls',
  busy: `${mostOutstanding} commands have no answer yet`,
} as const;

export class StoreLink {
  private readonly counts = { calls: 0, misses: 0, isBreakerOpen: false, breakerOpenings: 0 };
  private latencyMs: number | undefined = undefined;
  private problem: StoreProblem | undefined = undefined;
  private missesInRow = 0;
  private retryAtMs = 0;
  private retryMs = firstRetryMs;
  private told: { readonly code: string; readonly atMs: number } | undefined = undefined;
  /** The numbers of the commands without an answer, in the order of sending. */
  private readonly outstanding = new Set<number>();
  /** The last error of the client about its connection, since there was one. */
  private connectionError: unknown = undefined;
  private readonly held = new Set<() => void>();
  private readonly settings: Omit<StoreSettings, 'prefix'>;
  private readonly where: string;
  private readonly longestRetryMs: number;
  private readonly store: Store;
  private readonly listener: LinkListener;
  private readonly unhear: readonly ((() => void) | undefined)[];

  /** `where` opens messages, such as `pool "chat"`. `longestRetryMs`: between probes of a store that is silent. */
  constructor(
    store: Store,
    settings: Omit<StoreSettings, 'prefix'>,
    where: string,
    listener: LinkListener = {},
    longestRetryMs = 1_000,
  ) {
    this.settings = settings;
    this.where = where;
    this.longestRetryMs = longestRetryMs;
    this.store = store;
    this.listener = listener;
    this.unhear = [store.onError((error) => this.lost(error)), store.onReady?.(() => this.connected())];
  }

  get figures(): LinkFigures {
    return { ...this.counts, latencyMs: this.latencyMs, problem: this.problem };
  }

  /** Ms until the breaker lets a probe through; 0 while it is closed. */
  get retryInMs(): number {
    return this.counts.isBreakerOpen ? Math.max(0, this.retryAtMs - this.settings.clock.now()) : 0;
  }

  /** The script's answer; `onLate` gets one that came after the time limit. @throws (rejects) StoreError */
  run(script: StoreScript, keys: Texts, args: Texts, onLate?: OnLate): Promise<unknown> {
    const nowMs = this.settings.clock.now();
    if (this.counts.isBreakerOpen && nowMs < this.retryAtMs) return Promise.reject(this.notAsked('breaker-open', keys));
    if (this.outstanding.size + this.held.size >= mostOutstanding) return Promise.reject(this.notAsked('busy', keys));
    const { callTimeout: timeoutMs } = this.settings;
    const send = (leftMs: number): Promise<unknown> => this.send(script, keys, args, leftMs, onLate);
    // Nothing is wrong with a client that connects, until it says so.
    if (this.connectionError !== undefined || !this.store.isConnecting?.()) return send(timeoutMs);
    return this.connection(keys).then(send);
  }

  /** `run`, and what `read` makes of the answer; if that is nothing, the call missed. @throws (rejects) StoreError */
  async ask<T>(script: StoreScript, keys: Texts, args: Texts, read: Read<T>, onLate?: (late: T) => void): Promise<T> {
    const hearLate = (reply: unknown): void => {
      const late = read(reply);
      if (late !== undefined) onLate?.(late);
    };
    const answer = read(await this.run(script, keys, args, hearLate));
    if (answer === undefined) throw this.missed(badReply(this.where, keys));
    return answer;
  }

  /** Tells the listener, unless it was told of the same. */
  tell(problem: StoreProblem): void {
    const nowMs = this.settings.clock.now();
    const { sameAfterMs = Infinity } = this.listener;
    if (this.told?.code === problem.code && nowMs - this.told.atMs < sameAfterMs) return;
    this.told = { code: problem.code, atMs: nowMs };
    this.listener.problem?.(problem);
  }

  close(): void {
    for (const unhear of this.unhear) unhear?.();
  }

  /** The ms that are left of the time limit when the client has connected, or has failed to. */
  private connection(keys: readonly string[]): Promise<number> {
    const { clock, callTimeout: timeoutMs } = this.settings;
    const endsAtMs = clock.now() + timeoutMs;
    return new Promise((resolve, reject) => {
      const goOn = (): void => {
        clock.clearTimeout(timer);
        this.held.delete(goOn);
        resolve(Math.max(1, endsAtMs - clock.now()));
      };
      const giveUp = (): void => {
        this.held.delete(goOn);
        reject(this.notAsked('connecting', keys));
      };
      this.held.add(goOn);
      const timer = letProcessEnd(clock.setTimeout(giveUp, timeoutMs));
    });
  }

  private send(script: StoreScript, keys: Texts, args: Texts, timeoutMs: number, onLate?: OnLate): Promise<unknown> {
    const { clock } = this.settings;
    const sentAtMs = clock.now();
    if (this.counts.isBreakerOpen) this.postponeRetry(sentAtMs);
    const number = ++this.counts.calls;
    this.outstanding.add(number);
    return new Promise((resolve, reject) => {
      let isOver = false;
      const timer = clock.setTimeout(() => {
        isOver = true;
        reject(this.missed(this.connectionProblem(keys) ?? this.timeoutProblem(keys)));
      }, timeoutMs);
      letProcessEnd(timer);
      this.store.run(script, keys, args).then(
        (reply) => {
          this.countNoLonger(number);
          clock.clearTimeout(timer);
          this.answered(clock.now() - sentAtMs);
          if (isOver) onLate?.(reply);
          else resolve(reply);
        },
        (error) => {
          this.outstanding.delete(number);
          clock.clearTimeout(timer);
          if (!isOver) reject(this.failed(error, keys));
        },
      );
    });
  }

  private failed(error: unknown, keys: readonly string[]): StoreError {
    const symptom = symptomOf(error);
    const known = symptom === undefined ? undefined : this.connectionProblem(keys);
    if (known !== undefined) return this.missed(known);
    if (symptom === 'unsent' && this.store.isConnecting?.()) return this.notAsked('connecting', keys);
    const cause = symptom === 'cut' ? 'the connection was closed' : error;
    return this.missed(problemOf(cause, this.where, keys));
  }

  private connectionProblem(keys: readonly string[]): StoreProblem | undefined {
    const { connectionError } = this;
    return connectionError === undefined ? undefined : problemOf(connectionError, this.where, keys);
  }

  /** A client that has no connection says why first, and then only that it has none. */
  private lost(error: unknown): void {
    if (this.connectionError === undefined || symptomOf(error) === undefined) this.connectionError = error;
    this.goOn();
  }

  private connected(): void {
    this.connectionError = undefined;
    this.retryAtMs = -Infinity;
    this.goOn();
    this.listener.connected?.();
  }

  private goOn(): void {
    for (const goOn of [...this.held]) goOn();
  }

  /** Command `number` was answered. An older command that still has no answer has lost it. Amortized O(1). */
  private countNoLonger(number: number): void {
    for (const older of this.outstanding) {
      if (older > number) return;
      this.outstanding.delete(older);
    }
  }

  private answered(latencyMs: number): void {
    this.latencyMs = latencyMs;
    this.missesInRow = 0;
    this.problem = undefined;
    this.connectionError = undefined;
    this.retryMs = firstRetryMs;
    if (!this.counts.isBreakerOpen) return;
    this.counts.isBreakerOpen = false;
    this.told = undefined;
    this.listener.breaker?.(false);
  }

  private missed(problem: StoreProblem): StoreError {
    this.counts.misses++;
    this.missesInRow++;
    this.problem = problem;
    this.tell(problem);
    if (!this.counts.isBreakerOpen && this.missesInRow >= missesToOpen) {
      this.counts.isBreakerOpen = true;
      this.counts.breakerOpenings++;
      this.postponeRetry(this.settings.clock.now());
      this.listener.breaker?.(true);
    }
    return new StoreError(problem);
  }

  /** Half of the time is fixed and half is jitter, so that replicas do not come back together. */
  private postponeRetry(nowMs: number): void {
    this.retryAtMs = nowMs + Math.min(this.retryMs, this.longestRetryMs) * (0.5 + 0.5 * this.settings.random());
    this.retryMs *= 2;
  }

  private timeoutProblem(keys: readonly string[]): StoreProblem {
    const cause = `no answer within callTimeout (${this.settings.callTimeout} ms)`;
    const message = `${this.where}: ${cause} (keys ${keys.join(', ')}): see the store's load and SLOWLOG, or raise it`;
    return { code: 'timeout', message, keys, cause };
  }

  private notAsked(code: keyof typeof whyNotAsked, keys: readonly string[]): StoreError {
    const cause = whyNotAsked[code];
    return new StoreError({ code, message: `${this.where}: not asked, because ${cause}`, keys, cause });
  }
}

/** Undefined if the answer has another length, or a part of it is no finite number. */
export function numbersOf(reply: unknown, length: number): number[] | undefined {
  if (!Array.isArray(reply) || reply.length !== length) return undefined;
  const numbers = reply.map(numberOf);
  return numbers.every(Number.isFinite) ? numbers : undefined;
}

/** Clients answer texts, some of them bytes. An empty text is no number, although `Number` takes it for 0. */
function numberOf(part: unknown): number {
  if (typeof part === 'number') return part;
  const text = typeof part === 'string' || part instanceof Uint8Array ? String(part) : '';
  return text.trim() === '' ? NaN : Number(text);
}
