/** Virtual time around a real store: timers run in order, and the store's scripts are told what time it is. */
import type { Redis } from 'ioredis';
import TinyQueue from 'tinyqueue';
import type { Clock } from '../../../src/index.js';
import type { IoRedisClient } from '../../../src/redis/index.js';
import { edited } from './control.js';

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly callback: () => void;
  isCleared: boolean;
}

/** What becomes of one call of a script. */
export interface CallFate {
  /** The call never reaches the store. */
  readonly isCut?: boolean;
  /** The store runs it, and the answer is lost. */
  readonly isReplyLost?: boolean;
  /** There and back, ms. */
  readonly latencyMs?: number;
}

const timeLine = "local time = redis.call('TIME')";
const virtualTimeLine = 'local time = { tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV]) }';

/** The script, with the time as its last two arguments: s and µs. */
export function withVirtualTime(text: string): string {
  return edited(text, timeLine, virtualTimeLine);
}

export class VirtualWorld implements Clock {
  storeCalls = 0;
  /** How far the store's clock has jumped. */
  storeOffsetMs = 0;
  private readonly timers = new TinyQueue<Timer>([], (a, b) => a.atMs - b.atMs || a.order - b.order);
  private readonly pending = new Set<Promise<unknown>>();
  private readonly digests = new Map<string, string>();
  private readonly redis: Redis;
  /**
   * The store's clock, which is ahead of the real one, so that no key expires before its virtual time. It begins with
   * a day: fractions are then rounded in each run as in the last.
   */
  private readonly epochMs = (Math.ceil(Date.now() / 86_400_000) + 1) * 86_400_000;
  private nowMs = 0;
  private made = 0;

  constructor(redis: Redis) {
    this.redis = redis;
  }

  now(): number {
    return this.nowMs;
  }

  storeNowMs(): number {
    return this.epochMs + this.nowMs + this.storeOffsetMs;
  }

  setTimeout(callback: () => void, delayMs: number): Timer {
    const timer = { atMs: this.nowMs + Math.max(0, delayMs), order: this.made++, callback, isCleared: false };
    this.timers.push(timer);
    return timer;
  }

  clearTimeout(timer: unknown): void {
    if (timer !== undefined) (timer as Timer).isCleared = true;
  }

  /** A client of the store whose calls fare as `fate` says; each is asked when it is made. */
  client(fate: () => CallFate, edit: (text: string) => string = (text) => text): IoRedisClient {
    const call = (digest: string, keys: number, rest: readonly string[]): Promise<unknown> => {
      const { isCut = false, isReplyLost = false, latencyMs = 1 } = fate();
      if (isCut) return new Promise(() => {});
      return new Promise((resolve, reject) => {
        this.setTimeout(() => {
          this.storeCalls++;
          const atMs = this.storeNowMs();
          const args = [...rest, String(Math.floor(atMs / 1000)), String(Math.floor((atMs % 1000) * 1000))];
          const run = this.redis.evalsha(digest, keys, ...args);
          void this.wait(
            run.then(
              (reply) => {
                if (!isReplyLost) this.setTimeout(() => resolve(reply), latencyMs / 2);
              },
              (error) => void this.setTimeout(() => reject(error), latencyMs / 2),
            ),
          );
        }, latencyMs / 2);
      });
    };
    return {
      evalsha: (digest, keys, ...rest) => {
        const known = this.digests.get(digest);
        return known === undefined ? Promise.reject(new Error('NOSCRIPT')) : call(known, keys, rest);
      },
      eval: async (text, keys, ...rest) => {
        const loaded = (await this.wait(this.redis.script('LOAD', withVirtualTime(edit(text))))) as string;
        return call(loaded, keys, rest);
      },
    };
  }

  /** Runs until `untilMs`. */
  async run(untilMs: number): Promise<void> {
    await this.settle();
    for (let timer = this.timers.peek(); timer !== undefined && timer.atMs <= untilMs; timer = this.timers.peek()) {
      this.timers.pop();
      if (timer.isCleared) continue;
      this.nowMs = timer.atMs;
      timer.callback();
      await this.settle();
    }
    this.nowMs = untilMs;
  }

  /** The store has answered all that it was asked, and all that follows from it has happened. */
  private async settle(): Promise<void> {
    for (let turn = 0; turn < 12; turn++) await undefined;
    while (this.pending.size > 0) {
      await Promise.allSettled([...this.pending]);
      for (let turn = 0; turn < 12; turn++) await undefined;
    }
  }

  private wait<T>(promise: Promise<T>): Promise<T> {
    this.pending.add(promise);
    const done = (): void => void this.pending.delete(promise);
    promise.then(done, done);
    return promise;
  }
}
