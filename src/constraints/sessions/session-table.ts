/**
 * The sessions that are resident: how many there are, what they hold at each endpoint, and when the next idle one ends.
 *
 *     dispatch of its first turn ──► running ⇄ idle ── inactivity, or told ──► gone, and everything it held is given back
 *                                       ▲        ╲
 *     told of by another replica ──► elsewhere ◄──╯ ── told ──► gone
 *
 * An endpoint is known by its ID: that is what replicas have in common. Invariant: `size` = sessions that began and did
 * not end; the tokens of an endpoint are the sum over its sessions and their prefixes, each prefix once.
 */
import { put } from '../../base/put.js';
import type { EndpointView } from '../../endpoints/endpoint.js';

/** The beginning that sessions have in common, such as a system prompt. */
export interface SharedPrefix {
  /** The same text for the same beginning. */
  readonly id: string;
  /** Its length, tokens from 0 up. */
  readonly tokens: number;
}

export class Session {
  /** Turns that run. */
  running = 0;
  /** The largest context of its turns, tokens. */
  tokens = 0;
  /** When its last turn here ended. */
  idleSinceMs: number = -Infinity;
  /** The host ended it, and it ends with its last running turn. */
  isLeaving = false;
  /** True when something of it was sent to a server. */
  isServed = false;
  /** True when its last turn ran in another replica, which says when it ends. */
  isElsewhere = false;
  /** The ID of the endpoint where its last turn went. */
  endpoint: string | undefined = undefined;
  readonly key: string;
  readonly prefix: SharedPrefix | undefined;

  constructor(key: string, prefix: SharedPrefix | undefined) {
    this.key = key;
    this.prefix = prefix;
  }
}

/** Beside its prefix. At least one token, so that sessions of unknown size are bounded too. */
function ownTokens({ prefix }: Session, context: number): number {
  return Math.max(context - (prefix?.tokens ?? 0), 1);
}

/** The context that the sessions of one endpoint hold. */
class Holdings {
  tokens = 0;
  sessions = 0;
  /** For each prefix: how many sessions have it, and the tokens that are counted for it. */
  private readonly prefixes = new Map<string, { sessions: number; tokens: number }>();

  add(session: Session): void {
    const { prefix } = session;
    this.sessions++;
    this.tokens += ownTokens(session, session.tokens);
    if (prefix === undefined) return;
    const held = this.prefixes.get(prefix.id);
    if (held !== undefined) {
      held.sessions++;
      return;
    }
    this.prefixes.set(prefix.id, { sessions: 1, tokens: prefix.tokens });
    this.tokens += prefix.tokens;
  }

  remove(session: Session): void {
    const { prefix } = session;
    this.sessions--;
    this.tokens -= ownTokens(session, session.tokens);
    const held = prefix && this.prefixes.get(prefix.id);
    if (prefix === undefined || held === undefined) return;
    held.sessions--;
    if (held.sessions > 0) return;
    this.prefixes.delete(prefix.id);
    this.tokens -= held.tokens;
  }

  /** The sum with one more session, of so many tokens. */
  sumWith(session: Session, context: number): number {
    const { prefix } = session;
    const isPrefixNew = prefix !== undefined && !this.prefixes.has(prefix.id);
    return this.tokens + ownTokens(session, context) + (isPrefixNew ? prefix.tokens : 0);
  }
}

const none = /* @__PURE__ */ new Holdings();

export class SessionTable {
  /** Sessions that ended because their inactivity lease was over. */
  expired = 0;
  private readonly sessions = new Map<string, Session>();
  /** Sessions without a running turn, the one that is idle longest first. */
  private readonly idle = new Set<Session>();
  /** By the endpoint's ID. */
  private readonly holdings = new Map<string, Holdings>();
  private readonly inactivityMs: number;

  constructor(inactivityMs: number) {
    this.inactivityMs = inactivityMs;
  }

  get size(): number {
    return this.sessions.size;
  }

  /** Sessions without a running turn. */
  get idleSize(): number {
    return this.idle.size;
  }

  /** Sessions that are resident because other replicas told of them. O(sessions). */
  get elsewhereSize(): number {
    return [...this].filter(({ isElsewhere }) => isElsewhere).length;
  }

  /** Tokens that all endpoints hold together. O(endpoints). */
  get tokens(): number {
    return [...this.holdings.values()].reduce((sum, { tokens }) => sum + tokens, 0);
  }

  get(key: string): Session | undefined {
    return this.sessions.get(key);
  }

  [Symbol.iterator](): Iterator<Session> {
    return this.sessions.values();
  }

  tokensAt({ id }: EndpointView): number {
    return this.holdings.get(id)?.tokens ?? 0;
  }

  /** Tokens that the endpoint would hold if the session were there with at least this many. It is not there yet. */
  tokensWith({ id }: EndpointView, session: Session, tokens: number): number {
    const context = Math.max(session.tokens, tokens);
    return (this.holdings.get(id) ?? none).sumWith(session, context);
  }

  /** A turn begins at the endpoint; its session with it where it was not resident. */
  began(session: Session, endpoint: EndpointView, tokens: number): void {
    this.sessions.set(session.key, session);
    this.idle.delete(session);
    session.isElsewhere = false;
    session.running++;
    session.isLeaving = false;
    this.settleAt(endpoint.id, session, tokens);
  }

  /** A turn of the session ran in another replica, at this endpoint. That one, or a turn here, says when it ends. */
  adopt(session: Session, endpoint: string, tokens: number): void {
    this.sessions.set(session.key, session);
    session.isServed = true;
    if (session.running === 0) {
      this.idle.delete(session);
      session.isElsewhere = true;
    }
    this.settleAt(endpoint, session, tokens);
  }

  /** The session is at this endpoint from now on, and its context has at least so many tokens. */
  settleAt(endpoint: string, session: Session, tokens: number): void {
    this.leaveEndpoint(session);
    session.tokens = Math.max(session.tokens, tokens);
    session.endpoint = endpoint;
    (this.holdings.get(endpoint) ?? put(this.holdings, endpoint, new Holdings())).add(session);
  }

  /** The context of a session with a running turn has at least so many tokens. */
  grew(session: Session, tokens: number): void {
    const { endpoint } = session;
    if (endpoint !== undefined && tokens > session.tokens) this.settleAt(endpoint, session, tokens);
  }

  /** A turn ended. A session of which nothing was ever sent ends with it. True when the session ended. */
  ended(session: Session, nowMs: number, wasSent: boolean): boolean {
    session.running--;
    session.isServed ||= wasSent;
    if (session.running > 0) return false;
    session.idleSinceMs = nowMs;
    if (session.isLeaving || !session.isServed) return this.remove(session);
    this.idle.add(session);
    return false;
  }

  /** The session ends: now, or with its last running turn. True when it ended now. */
  end(session: Session): boolean {
    if (session.running === 0) return this.remove(session);
    session.isLeaving = true;
    return false;
  }

  /** Ends the sessions whose inactivity lease is over. Amortized O(1). */
  sweep(nowMs: number): void {
    for (const session of this.idle) {
      if (session.idleSinceMs + this.inactivityMs > nowMs) return;
      this.remove(session);
      this.expired++;
    }
  }

  /** When the next idle session ends, if it stays idle; Infinity while none is idle. */
  get nextEndAtMs(): number {
    for (const { idleSinceMs } of this.idle) return idleSinceMs + this.inactivityMs;
    return Infinity;
  }

  /** False for one that is gone, and then it does nothing: another may have its key by now. */
  private remove(session: Session): boolean {
    this.idle.delete(session);
    if (this.sessions.get(session.key) !== session) return false;
    this.sessions.delete(session.key);
    session.isElsewhere = false;
    this.leaveEndpoint(session);
    return true;
  }

  private leaveEndpoint(session: Session): void {
    const { endpoint } = session;
    session.endpoint = undefined;
    const held = endpoint === undefined ? undefined : this.holdings.get(endpoint);
    if (endpoint === undefined || held === undefined) return;
    held.remove(session);
    if (held.sessions === 0) this.holdings.delete(endpoint);
  }
}
