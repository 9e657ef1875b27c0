/**
 * All replicas know of resident sessions: each tells by publish and subscribe when one begins, moves, grows or ends.
 *
 *     turn here ──► table ──► message ──► tables of the others, until it is told again, ends, or its time is over
 *
 * Invariant: no request waits for the network, and nothing waits to be sent. What is heard is not sent on. Telling a
 * session again repairs a lost message.
 */
import type { output } from 'zod/v4/core';
import { letProcessEnd } from '../../base/clock.js';
import { put } from '../../base/put.js';
import * as s from '../../base/schema/schema.js';
import type { Clock } from '../../index.js';
import type { ResidentSession, SessionClaim, SessionLimit } from '../../types/index.js';
import { keepListening } from '../store/keep-listening.js';
import { channelOf, hashedName } from '../store/keys.js';
import { storeWithMessages } from '../store/redis-store.js';
import type { Store, StoreMessages } from '../store/store.js';
import { keyName, newReplicaId, storeShape } from '../store/store-options.js';
import { longestName, mostSessions, readMessage, type SessionMessage } from './session-messages.js';

/** Among which replicas, and under which names, sessions are shared. */
export interface SharedSessionsOptions {
  /** Replicas with this name share their sessions. */
  readonly name: string;
  /** Whether messages hold hashes of sessions and shared prefixes; the same in all replicas. @default false */
  readonly hashKeys?: boolean | undefined;
  /** The most sessions of other replicas here, from 1 up. @default 10,000, or twice `maxSessions` where that is more */
  readonly maxElsewhere?: number | undefined;
  /** Opens the name of the channel. @default 'headgate' */
  readonly prefix?: string | undefined;
  /** The clock of the controller. @default realClock */
  readonly clock?: Clock | undefined;
}

export interface SharedSessions {
  /** Messages that were given to the publisher. */
  readonly sent: number;
  /** Messages that were not sent, because too many had no answer yet. */
  readonly skipped: number;
  /** Messages of other replicas that were understood. */
  readonly received: number;
  /** Sessions from elsewhere that were not counted, because of `maxElsewhere`. */
  readonly refused: number;
  /** Stops to publish and to subscribe; sessions of other replicas are no longer counted. Never rejects. */
  close(): Promise<void>;
}

const mostUnanswered = 256;
/** A new replica is told within this time; replicas that start within it are told together. */
const newcomerMs = 100;
/** A session that grew by this factor since it was told is told again at once. */
const growth = 1.25;
/** Hashes are kept, because the session of a waiting request is asked for again and again. */
const mostHashes = 10_000;

const optionsSchema = s.object({
  name: keyName,
  hashKeys: s.optional(s.flag(), false),
  maxElsewhere: s.optional(s.positiveInteger()),
  prefix: storeShape.prefix,
  clock: storeShape.clock,
});

const isLimit = (given: unknown): given is SessionLimit => 'share' in Object(given);
const limitSchema = s.value('a sessionLimit()', isLimit);

function naming(hashesAll: boolean): (key: string) => string {
  const hashes = new Map<string, string>();
  return (key) => {
    if (!hashesAll && key.length <= longestName) return key;
    if (hashes.size >= mostHashes && !hashes.has(key)) hashes.clear();
    return hashes.get(key) ?? put(hashes, key, hashedName(key));
  };
}

/**
 * Connects the `sessionLimit()` of all replicas. A session that is resident in one counts in all: towards `maxSessions`
 * and, at its endpoint (by its ID), towards `footprint`. Its turns pass in all. Call it before the first request. All
 * replicas need the same `by`, and should have the same limits.
 *
 * Replicas that see the same free place may all fill it: within the time of one message at most (replicas − 1) · the
 * free places that each saw. A lost message undercounts for a quarter of `inactivity`. Costs a message when a session
 * begins, moves, grows by a quarter, or ends, and four times in each `inactivity` one for each hundred sessions: O(1).
 * @throws FlowConfigError
 * @example
 * const limit = sessionLimit({ maxSessions: 200 });
 * const shared = sharedSessions(redisStore(client, subscriber), limit, { name: 'chat' });
 */
export function sharedSessions(store: Store, limit: SessionLimit, options: SharedSessionsOptions): SharedSessions {
  const { messages } = s.parse(storeWithMessages, store, 'sharedSessions: store');
  const settings = s.parse(optionsSchema, options, 'sharedSessions');
  return new SessionExchange(messages, s.parse(limitSchema, limit, 'sharedSessions: limit'), settings);
}

class SessionExchange implements SharedSessions {
  sent = 0;
  skipped = 0;
  received = 0;
  refused = 0;
  private readonly self = newReplicaId();
  private readonly messages: StoreMessages;
  private readonly channel: string;
  private readonly clock: Clock;
  private readonly sharing: ReturnType<SessionLimit['share']>;
  /** Sessions that other replicas told of, and when each is over unless it is told again. */
  private readonly elsewhere = new Map<string, { readonly endsAtMs: number; readonly timer: unknown }>();
  private readonly mostElsewhere: number;
  private readonly stopListening: () => Promise<void>;
  private readonly told = new WeakMap<ResidentSession, { endpoint: string | undefined; tokens: number }>();
  /** Sessions that ended and were not told yet: after those that take free places, or others would give these away. */
  private readonly endings = new Map<string, boolean>();
  private retelling: unknown = undefined;
  private newcomer: unknown = undefined;
  private unanswered = 0;
  private isClosed = false;

  constructor(messages: StoreMessages, limit: SessionLimit, settings: output<typeof optionsSchema>) {
    const { hashKeys, clock, maxElsewhere } = settings;
    this.messages = messages;
    this.channel = channelOf(settings, 'sessions');
    this.clock = clock;
    this.sharing = limit.share({
      nameOf: naming(hashKeys),
      held: (session, isNew) => this.held(session, isNew),
      ended: (session, isUnsent) => this.ended(session, isUnsent),
    });
    const { maxSessions } = this.sharing;
    this.mostElsewhere = maxElsewhere ?? Math.max(10_000, maxSessions === Infinity ? 0 : 2 * maxSessions);
    this.repeatSessions();
    const begun = (): void => void this.send({ kind: 'new', from: this.self });
    this.stopListening = keepListening(messages, this.channel, (text) => this.receive(text), clock, begun);
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    this.clock.clearTimeout(this.retelling);
    this.clock.clearTimeout(this.newcomer);
    for (const name of this.elsewhere.keys()) this.isOver(name);
    this.sharing.stop();
    await this.stopListening();
  }

  /** Never rejects: a session whose message is lost is told again. */
  private async send(message: SessionMessage): Promise<void> {
    if (this.unanswered >= mostUnanswered) return void this.skipped++;
    this.sent++;
    this.unanswered++;
    try {
      await this.messages.publish(this.channel, JSON.stringify(message));
    } catch {
    } finally {
      this.unanswered--;
    }
  }

  private held(session: ResidentSession, isNew: boolean): void {
    const before = this.told.get(session);
    const isKnown =
      before !== undefined && before.endpoint === session.endpoint && session.tokens < before.tokens * growth;
    if (isKnown && !isNew) return;
    if (isNew) {
      this.forget(session.key);
      this.endings.delete(session.key);
    }
    this.tell([[session, this.sharing.inactivityMs]]);
  }

  private ended({ key }: ResidentSession, isUnsent: boolean): void {
    this.forget(key);
    if (this.endings.size === 0) queueMicrotask(() => this.tellEndings());
    this.endings.set(key, isUnsent);
  }

  private tellEndings(): void {
    for (const [name, isUnsent] of this.endings) void this.send({ kind: 'ended', from: this.self, name, isUnsent });
    this.endings.clear();
  }

  private tell(sessions: readonly (readonly [ResidentSession, number])[]): void {
    const all: SessionClaim[] = [];
    for (const [session, forMs] of sessions) {
      const { key, endpoint, tokens, prefix } = session;
      this.told.set(session, { endpoint, tokens: Math.max(tokens, 1) });
      if (endpoint !== undefined) all.push({ name: key, endpoint, tokens, forMs: Math.ceil(forMs), prefix });
    }
    void this.send({ kind: 'held', from: this.self, sessions: all });
  }

  /** Repeats the sessions, for replicas that missed a message, and so that active sessions do not expire there. */
  private tellAll(): void {
    const own = this.sharing.own(this.clock.now());
    for (let from = 0; from < own.length; from += mostSessions) this.tell(own.slice(from, from + mostSessions));
  }

  private receive(text: string): void {
    const message = this.isClosed ? undefined : readMessage(text);
    if (message === undefined || message.from === this.self) return;
    this.received++;
    if (message.kind === 'new') this.greet();
    else if (message.kind === 'held') for (const session of message.sessions) this.adopt(session);
    else if (this.sharing.release(message.name, message.isUnsent)) this.forget(message.name);
  }

  private adopt(session: SessionClaim): void {
    if (this.elsewhere.size >= this.mostElsewhere && !this.elsewhere.has(session.name)) return void this.refused++;
    const forMs = Math.min(session.forMs, this.sharing.inactivityMs);
    const nowMs = this.clock.now();
    if (this.sharing.adopt({ ...session, forMs }, nowMs)) this.keep(session.name, nowMs + forMs);
  }

  /** If several replicas tell of it, the longest span counts. */
  private keep(name: string, endsAtMs: number): void {
    const known = this.elsewhere.get(name);
    if (known !== undefined && known.endsAtMs >= endsAtMs) return;
    this.forget(name);
    const timer = this.later(() => {
      if (this.clock.now() < endsAtMs) {
        this.forget(name);
        this.keep(name, endsAtMs);
      } else this.isOver(name);
    }, endsAtMs - this.clock.now());
    this.elsewhere.set(name, { endsAtMs, timer });
  }

  private isOver(name: string): void {
    this.forget(name);
    this.sharing.release(name, false);
  }

  private forget(name: string): void {
    this.clock.clearTimeout(this.elsewhere.get(name)?.timer);
    this.elsewhere.delete(name);
  }

  /** Replicas that start together are told in one message. */
  private greet(): void {
    this.newcomer ??= this.later(() => {
      this.newcomer = undefined;
      this.tellAll();
    }, newcomerMs);
  }

  private repeatSessions(): void {
    const again = (): void => {
      this.tellAll();
      this.repeatSessions();
    };
    this.retelling = this.later(again, Math.max(this.sharing.inactivityMs / 4, newcomerMs));
  }

  private later(run: () => void, delayMs: number): unknown {
    return letProcessEnd(this.clock.setTimeout(run, Math.min(delayMs, 2 ** 31 - 1)));
  }
}
