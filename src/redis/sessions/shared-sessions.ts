/**
 * Shares resident sessions between all replicas: each tells the others when a session begins, moves, grows or ends, by
 * publish and subscribe.
 *
 *     turn here ──► table ──► message ──► tables of the others, until it is told again, ends, or its time is over
 *
 * Invariant: no request waits for the network, and nothing waits to be sent. A replica does not send on what it heard
 * from others. A lost message is repaired when the session is told again.
 */
import { letProcessEnd } from '../../base/clock.js';
import { type Clock, type ResidentSession, type SessionClaim, type SessionLimit, schemas } from '../../index.js';
import { keepListening } from '../store/keep-listening.js';
import { channelOf, hashedName } from '../store/keys.js';
import { storeWithMessages } from '../store/redis-store.js';
import type { Store } from '../store/store.js';
import { keyName, newReplicaId, storeShape } from '../store/store-options.js';
import { RemoteSessions } from './remote-sessions.js';
import { longestName, mostSessions, readMessage, type SessionMessage } from './session-messages.js';

export interface SharedSessionsOptions {
  /** Replicas with this name share their sessions. */
  readonly name: string;
  /**
   * Whether messages hold a hash of sessions and shared prefixes, and not their names: the same in all replicas.
   * @default false
   */
  readonly hashKeys?: boolean | undefined;
  /**
   * The most sessions of other replicas that are counted here, an integer from 1 up. It bounds the memory that a faulty
   * replica can fill.
   * @default 10,000, or twice `maxSessions` where that is more
   */
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

/** Messages that the publisher has not answered. */
const mostUnanswered = 256;
/** A new replica is told within this time; replicas that start within it are told together. */
const newcomerMs = 100;
/** A session that grew by this factor since it was told is told again at once. */
const growth = 1.25;
/** Hashes are kept, because the session of a waiting request is asked for again and again. */
const mostHashes = 10_000;

const { flag, object, optional, parse, positiveInteger, value } = schemas;

const optionsSchema = object({
  name: keyName,
  hashKeys: optional(flag(), false),
  maxElsewhere: optional(positiveInteger()),
  prefix: storeShape.prefix,
  clock: storeShape.clock,
});

const isLimit = (given: unknown): given is SessionLimit =>
  typeof given === 'object' && given !== null && 'share' in given;
const limitSchema = value('a sessionLimit()', isLimit);

/** A hash for a name that is secret or long. */
function naming(hashesAll: boolean): (key: string) => string {
  const hashes = new Map<string, string>();
  return (key) => {
    if (!hashesAll && key.length <= longestName) return key;
    let hash = hashes.get(key);
    if (hash === undefined) {
      hash = hashedName(key);
      if (hashes.size >= mostHashes) hashes.clear();
      hashes.set(key, hash);
    }
    return hash;
  };
}

/**
 * Connects the `sessionLimit()` of all replicas. A session that is resident in one counts in all: towards `maxSessions`
 * and, at its endpoint (by its ID), towards `footprint`. Its turns pass in all. Call it before the first request. All
 * replicas need the same `by`, and should have the same limits.
 *
 * Replicas that see the same free place may all fill it. The pool then exceeds its limit by the sessions that began in
 * the others within the time of one message: at most (replicas − 1) · the free places that each saw. A lost message
 * undercounts until the session is told again, a quarter of `inactivity` later. Costs one message when a session
 * begins, moves to another endpoint or replica, grows by a quarter, or ends. Four times in each `inactivity` it costs
 * one more message for each hundred sessions. A message costs O(1), and no request waits for it.
 * @throws FlowConfigError
 * @example
 * const limit = sessionLimit({ maxSessions: 200 });
 * const shared = sharedSessions(redisStore(client, subscriber), limit, { name: 'chat' });
 */
export function sharedSessions(store: Store, limit: SessionLimit, options: SharedSessionsOptions): SharedSessions {
  const { messages } = parse(storeWithMessages, store, 'sharedSessions: store');
  const { hashKeys, clock, maxElsewhere, ...space } = parse(optionsSchema, options, 'sharedSessions');
  const self = newReplicaId();
  const channel = channelOf(space, 'sessions');
  /** The last message about a session. */
  const told = new WeakMap<ResidentSession, { endpoint: string | undefined; tokens: number }>();
  /**
   * Sessions that ended and were not told yet. Sessions that take free places here are told first; otherwise replicas
   * with waiting requests would give the same places away.
   */
  const endings = new Map<string, boolean>();
  const counts = { sent: 0, skipped: 0, received: 0, refused: 0 };
  const timers = { retelling: undefined as unknown, newcomer: undefined as unknown };
  let unanswered = 0;
  let isClosed = false;

  const sharing = parse(limitSchema, limit, 'sharedSessions: limit').share({ nameOf: naming(hashKeys), held, ended });
  const { inactivityMs, maxSessions } = sharing;
  const most = maxElsewhere ?? Math.max(10_000, maxSessions === Number.POSITIVE_INFINITY ? 0 : 2 * maxSessions);
  const elsewhere = new RemoteSessions(most, clock, (session) => sharing.release(session, false));

  function send(message: SessionMessage): void {
    if (unanswered >= mostUnanswered) {
      counts.skipped++;
      return;
    }
    counts.sent++;
    unanswered++;
    void publish(JSON.stringify(message));
  }

  /** Never rejects: a session whose message is lost is told again. */
  async function publish(text: string): Promise<void> {
    try {
      await messages.publish(channel, text);
    } catch {
    } finally {
      unanswered--;
    }
  }

  function held(session: ResidentSession, isNew: boolean): void {
    const before = told.get(session);
    const isKnown =
      before !== undefined && before.endpoint === session.endpoint && session.tokens < before.tokens * growth;
    if (isKnown && !isNew) return;
    if (isNew) {
      elsewhere.forget(session.key);
      endings.delete(session.key);
    }
    tell([[session, inactivityMs]]);
  }

  function ended({ key }: ResidentSession, isUnsent: boolean): void {
    elsewhere.forget(key);
    if (endings.size === 0) queueMicrotask(tellEndings);
    endings.set(key, isUnsent);
  }

  function tellEndings(): void {
    for (const [ending, isUnsent] of endings) send({ kind: 'ended', from: self, name: ending, isUnsent });
    endings.clear();
  }

  function tell(sessions: readonly (readonly [ResidentSession, number])[]): void {
    const all: SessionClaim[] = [];
    for (const [session, forMs] of sessions) {
      const { key, endpoint, tokens, prefix: shared } = session;
      told.set(session, { endpoint, tokens: Math.max(tokens, 1) });
      if (endpoint !== undefined) all.push({ name: key, endpoint, tokens, forMs: Math.ceil(forMs), prefix: shared });
    }
    send({ kind: 'held', from: self, sessions: all });
  }

  /** Repeats the sessions, for replicas that missed a message, and so that active sessions do not expire there. */
  function tellAll(): void {
    const own = sharing.own(clock.now());
    for (let from = 0; from < own.length; from += mostSessions) tell(own.slice(from, from + mostSessions));
  }

  function receive(text: string): void {
    const message = isClosed ? undefined : readMessage(text);
    if (message === undefined || message.from === self) return;
    counts.received++;
    if (message.kind === 'new') greet();
    else if (message.kind === 'held') message.sessions.forEach(adopt);
    else if (sharing.release(message.name, message.isUnsent)) elsewhere.forget(message.name);
  }

  function adopt(session: SessionClaim): void {
    if (!elsewhere.hasRoomFor(session.name)) {
      counts.refused++;
      return;
    }
    const forMs = Math.min(session.forMs, inactivityMs);
    if (sharing.adopt({ ...session, forMs }, clock.now())) elsewhere.keep(session.name, forMs);
  }

  /** Replicas that start together are told in one message. */
  function greet(): void {
    timers.newcomer ??= later(() => {
      timers.newcomer = undefined;
      tellAll();
    }, newcomerMs);
  }

  function later(run: () => void, delayMs: number): unknown {
    const timer = letProcessEnd(clock.setTimeout(run, delayMs));
    return timer;
  }

  function repeatSessions(): void {
    timers.retelling = later(
      () => {
        tellAll();
        repeatSessions();
      },
      Math.min(Math.max(inactivityMs / 4, newcomerMs), 2 ** 31 - 1),
    );
  }

  repeatSessions();
  const stopListening = keepListening(messages, channel, receive, clock, () => send({ kind: 'new', from: self }));

  return {
    get sent() {
      return counts.sent;
    },
    get skipped() {
      return counts.skipped;
    },
    get received() {
      return counts.received;
    },
    get refused() {
      return counts.refused;
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      for (const timer of Object.values(timers)) clock.clearTimeout(timer);
      elsewhere.clear();
      sharing.stop();
      await stopListening();
    },
  };
}
