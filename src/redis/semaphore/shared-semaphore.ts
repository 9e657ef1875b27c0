/**
 * A few expensive slots that many processes share: a permit for each, renewed while it is held.
 *
 * Invariant: a permit is renewed until it is released, and is lost only when it was not renewed in time.
 */
import { letProcessEnd } from '../../base/clock.js';
import { type Clock, type Duration, realClock, schemas } from '../../index.js';
import { numbersOf } from '../engine/answer.js';
import { EngineLink, type LinkFigures } from '../engine/engine-link.js';
import { EngineError, type EngineProblem } from '../engine/engine-problem.js';
import { type RedisClient, redisClient } from '../engine/redis-client.js';
import { keyName, newReplicaId } from '../leases/lease-options.js';
import { semaphoreScript } from './semaphore-script.js';

export interface SharedSemaphoreOptions {
  /** Names the semaphore. */
  readonly name: string;
  /** Seats of all permits together. */
  readonly limit: number;
  /** How long a permit lasts without renewal; it is renewed at a third of that. @default '30s' */
  readonly ttl?: Duration | undefined;
  /**
   * The answer of `tryAcquire` while the engine is away: a permit that it does not know (`open`), or none.
   * @default 'closed'
   */
  readonly fallback?: 'open' | 'closed' | undefined;
  /** Opens the names of keys. @default 'headgate' */
  readonly prefix?: string | undefined;
  /** How long a call may take. @default '50ms' */
  readonly callTimeout?: Duration | undefined;
  /** @default realClock */
  readonly clock?: Clock | undefined;
  /** Source of jitter, 0…1. @default Math.random */
  readonly random?: (() => number) | undefined;
}

export interface Permit {
  readonly seats: number;
  /** True once it was not renewed in time: another may hold its seats. */
  readonly isLost: boolean;
  /** Gives the seats back; a second call does nothing. Never rejects: a permit that is not given back expires. */
  release(): Promise<void>;
}

export interface SharedSemaphore {
  /**
   * A permit, or undefined when there is no room. It asks once: callers that wait poll, and have no order among them.
   */
  tryAcquire(seats?: number): Promise<Permit | undefined>;
  readonly engine: LinkFigures;
  /** The last problem of the engine; undefined while it answers. */
  readonly problem: EngineProblem | undefined;
  close(): void;
}

const { clock, integer, object, oneOf, optional, positiveDuration, positiveInteger, randomSource } = schemas;

const optionsSchema = object({
  name: keyName,
  limit: positiveInteger(),
  ttl: optional(positiveDuration('30s'), 30_000),
  fallback: optional(oneOf('open', 'closed'), 'closed'),
  prefix: optional(keyName, 'headgate'),
  callTimeout: optional(positiveDuration('50ms'), 50),
  clock: optional(clock(), realClock),
  random: optional(randomSource(), Math.random),
});

/**
 * A weighted semaphore. A request for more than the limit gets its permit when no other permit is held. Two round trips
 * for each permit and one for each renewal: for hundreds of permits at a time; for requests by the thousand take
 * `sharedConcurrency`.
 * @throws FlowConfigError
 */
export function sharedSemaphore(client: RedisClient, options: SharedSemaphoreOptions): SharedSemaphore {
  schemas.parse(redisClient, client, 'sharedSemaphore: client');
  const settings = schemas.parse(optionsSchema, options, 'sharedSemaphore');
  const { name, limit, ttl, fallback, prefix, callTimeout: timeoutMs, clock: time, random } = settings;
  const link = new EngineLink(client, { timeoutMs, clock: time, random, where: `semaphore "${name}"` });
  const keys = ['expiries', 'seats', 'used'].map((part) => `${prefix}:{${name}}:semaphore:${part}`);
  const seatsSchema = integer({ from: 1 });

  function call(mode: 'acquire' | 'renew' | 'release', id: string, seats: number): Promise<boolean> {
    // The caller went on without this permit, so it must be given back here.
    const undo = (isHeld: boolean): void => {
      if (mode === 'acquire' && isHeld) void call('release', id, seats).catch(() => {});
    };
    const most = mode === 'acquire' ? Math.max(limit, seats) : Number.MAX_SAFE_INTEGER;
    const args = [mode, id, seats, limit, ttl].map(String);
    return link.ask(semaphoreScript(), keys, args, (reply) => isHeldIn(reply, most), undo);
  }

  function permit(id: string, seats: number, isKnown: boolean): Permit {
    let isHeld = true;
    let isLost = false;
    let expiresAtMs = time.now() + ttl;
    let timer: unknown;
    const renewLater = (): void => {
      timer = time.setTimeout(() => void renew(), ttl / 3);
      letProcessEnd(timer);
    };
    async function renew(): Promise<void> {
      const sentAtMs = time.now();
      try {
        if (await call('renew', id, seats)) expiresAtMs = sentAtMs + ttl;
        else isLost = true;
      } catch {
        isLost = time.now() > expiresAtMs;
      }
      if (isHeld && !isLost) renewLater();
    }
    if (isKnown) renewLater();
    return {
      seats,
      get isLost() {
        return isLost;
      },
      async release() {
        if (!isHeld) return;
        isHeld = false;
        time.clearTimeout(timer);
        if (isKnown) await call('release', id, seats).catch(() => {});
      },
    };
  }

  return {
    async tryAcquire(seats = 1) {
      schemas.parse(seatsSchema, seats, 'tryAcquire: seats');
      const id = newReplicaId();
      try {
        return (await call('acquire', id, seats)) ? permit(id, seats, true) : undefined;
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        return fallback === 'open' ? permit(id, seats, false) : undefined;
      }
    },
    get engine() {
      return link.figures;
    },
    get problem() {
      return link.figures.problem;
    },
    close: () => link.close(),
  };
}

/** Whether the permit is held. Undefined for what is no answer of the script, or has more seats in use than may be. */
function isHeldIn(reply: unknown, mostUsed: number): boolean | undefined {
  const [held, used = Number.NaN] = numbersOf(reply, 2) ?? [];
  if (held === 0 && used >= 0) return false;
  return held === 1 && 0 < used && used <= mostUsed ? true : undefined;
}
