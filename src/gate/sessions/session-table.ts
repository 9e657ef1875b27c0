/**
 * The sessions that are resident: how many there are, what they hold at each endpoint, and when the next idle one ends.
 *
 *     dispatch of its first turn ──► running ⇄ idle ── inactivity, or told ──► gone, and everything it held is given back
 *
 * Invariant: `size` = sessions that began and did not end; the tokens of an endpoint are the sum over its sessions and their prefixes, each
 * prefix once.
 */
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
  /** When its last turn ended. */
  idleSinceMs = 0;
  /** It was told to end, and ends with its last running turn. */
  isLeaving = false;
  /** Something of it was sent to a server. */
  isServed = false;
  /** Where its last turn went. */
  endpoint: EndpointView | undefined = undefined;
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

/** What the sessions of one endpoint hold. */
class Holdings {
  tokens = 0;
  /** Of each prefix, how many sessions have it, and the tokens that are counted for it. */
  private readonly prefixes = new Map<string, { sessions: number; tokens: number }>();

  add(session: Session): void {
    const { prefix } = session;
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
  /** What all endpoints hold together. */
  tokens = 0;
  private readonly sessions = new Map<string, Session>();
  /** Sessions without a running turn, the one that is idle longest first. */
  private readonly idle = new Set<Session>();
  private readonly holdings = new WeakMap<EndpointView, Holdings>();
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

  get(key: string): Session | undefined {
    return this.sessions.get(key);
  }

  tokensAt(endpoint: EndpointView): number {
    return this.holdings.get(endpoint)?.tokens ?? 0;
  }

  /** What the endpoint would hold if the session were there, with so many tokens at least. It is not there yet. */
  tokensWith(endpoint: EndpointView, session: Session, tokens: number): number {
    const context = Math.max(session.tokens, tokens);
    return (this.holdings.get(endpoint) ?? none).sumWith(session, context);
  }

  /** A turn begins at the endpoint; its session with it where it was not resident. */
  began(session: Session, endpoint: EndpointView, tokens: number): void {
    this.sessions.set(session.key, session);
    this.idle.delete(session);
    session.running++;
    session.isLeaving = false;
    this.settleAt(endpoint, session, tokens);
  }

  /** The session is at this endpoint from now on, and its context has at least so many tokens. */
  settleAt(endpoint: EndpointView, session: Session, tokens: number): void {
    this.leaveEndpoint(session);
    session.tokens = Math.max(session.tokens, tokens);
    session.endpoint = endpoint;
    let held = this.holdings.get(endpoint);
    if (held === undefined) {
      held = new Holdings();
      this.holdings.set(endpoint, held);
    }
    this.tokens -= held.tokens;
    held.add(session);
    this.tokens += held.tokens;
  }

  /** The context of a session with a running turn has at least so many tokens. */
  grew(session: Session, tokens: number): void {
    const { endpoint } = session;
    if (endpoint !== undefined && tokens > session.tokens) this.settleAt(endpoint, session, tokens);
  }

  /** A turn of the session ended. A session of which nothing was ever sent ends with it. */
  ended(session: Session, nowMs: number, wasSent: boolean): void {
    session.running--;
    session.isServed ||= wasSent;
    if (session.running > 0) return;
    session.idleSinceMs = nowMs;
    if (session.isLeaving || !session.isServed) this.remove(session);
    else this.idle.add(session);
  }

  /** The session ends: now, or with its last running turn. */
  end(session: Session): void {
    if (session.running > 0) session.isLeaving = true;
    else this.remove(session);
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
    return Number.POSITIVE_INFINITY;
  }

  /** Does nothing for one that is gone: another may have its key by now. */
  private remove(session: Session): void {
    this.idle.delete(session);
    if (this.sessions.get(session.key) !== session) return;
    this.sessions.delete(session.key);
    this.leaveEndpoint(session);
  }

  private leaveEndpoint(session: Session): void {
    const held = session.endpoint && this.holdings.get(session.endpoint);
    session.endpoint = undefined;
    if (held === undefined) return;
    this.tokens -= held.tokens;
    held.remove(session);
    this.tokens += held.tokens;
  }
}
