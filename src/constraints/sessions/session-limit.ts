/**
 * Bounds the sessions that are resident in the servers: turns of a resident session pass, turns of new ones wait until
 * others have ended. Invariant: a session is counted from the dispatch of its first turn to its end, once, whatever
 * becomes of its turns; its end gives back everything that it was counted for.
 */

import { configError } from '../../base/faults/flow-config-error.js';
import { Listeners } from '../../base/listeners.js';
import { type Definition, define } from '../../base/policy-definition.js';
import { textIn } from '../../base/request-field.js';
import * as s from '../../base/schema/schema.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Constraint, RequestWait } from '../../gate/constraint.js';
import type { SessionFigures } from '../../gate/reported-figures.js';
import type { SeatView } from '../../gate/server-answer.js';
import type { ItemView } from '../../tiers/views.js';
import type { SessionLimitOptions, SessionSettings } from './session-options.js';
import { sessionOptions, sessionParameters } from './session-options.js';
import type { ResidentSession, SessionClaim, SessionPeer, SessionSharing } from './session-sharing.js';
import { Session, SessionTable, type SharedPrefix } from './session-table.js';

export interface SessionLimit extends Constraint {
  /** Sessions that are resident, idle ones too. */
  residentSessions(nowMs: number): number;
  /** Tokens that sessions hold at an endpoint, idle ones too. */
  tokensAt(endpoint: EndpointView, nowMs: number): number;
  sessions(held: readonly ItemView[], nowMs: number): SessionFigures;
  /** Connects this limit with other replicas' before the first request. @throws FlowConfigError when it is connected */
  share(peer: SessionPeer): SessionSharing;
}

const type = 'session-limit-detector';

function isPrefix(given: unknown): given is SharedPrefix {
  if (typeof given !== 'object' || given === null) return false;
  const { id, tokens } = given as Partial<Record<keyof SharedPrefix, unknown>>;
  return typeof id === 'string' && typeof tokens === 'number' && tokens >= 0 && tokens < Infinity;
}

/** The session that a seat counts for, and its endpoint. */
interface Turn {
  readonly session: Session;
  endpoint: EndpointView;
}

class Sessions implements SessionLimit {
  readonly type = type;
  private readonly table: SessionTable;
  private readonly turns = new WeakMap<SeatView, Turn>();
  private readonly listeners = new Listeners();
  /** Also heard from one controller to the other, where two share the detector. */
  readonly subscribe: Listeners['subscribe'] = this.listeners.subscribe;
  private readonly settings: SessionSettings;
  /** Undefined where sessions are those of this process. */
  private peer: SessionPeer | undefined = undefined;

  constructor(settings: SessionSettings) {
    this.settings = settings;
    this.table = new SessionTable(settings.inactivity);
  }

  sessionOf(item: ItemView): string | undefined {
    return textIn(this.settings.by(item));
  }

  withRoomFor(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): readonly EndpointView[] {
    this.table.sweep(nowMs);
    const key = this.keyOf(item);
    if (key === undefined) return endpoints;
    const resident = this.table.get(key);
    // The picker of this replica has not seen where it was.
    const there = resident?.isElsewhere ? endpoints.find(({ id }) => id === resident.endpoint) : undefined;
    if (there !== undefined) return [there];
    const { maxSessions = Infinity, footprint } = this.settings;
    if (resident === undefined && this.table.size >= maxSessions) return [];
    if (footprint === undefined) return endpoints;
    const session = resident ?? this.newSession(key, item);
    const roomy = endpoints.filter(
      (endpoint) => endpoint.id === resident?.endpoint || this.fits(session, item.tokens, endpoint, footprint),
    );
    // The server of a resident session may be gone, and the others full.
    return roomy.length === 0 && resident !== undefined ? endpoints : roomy;
  }

  waitOf(_endpoints: readonly EndpointView[], _item: ItemView, nowMs: number): RequestWait {
    return { atMs: Math.max(this.table.nextEndAtMs, nowMs), notBeforeMs: nowMs, missing: 'another session to end' };
  }

  dispatched(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    const { item } = seat;
    const moved = this.turns.get(seat);
    if (moved !== undefined) {
      moved.endpoint = endpoint;
      this.table.settleAt(endpoint.id, moved.session, item.tokens);
      this.peer?.held(moved.session, false);
      return;
    }
    this.table.sweep(nowMs);
    const key = this.keyOf(item);
    if (key === undefined) return;
    const resident = this.table.get(key);
    const session = resident ?? this.newSession(key, item);
    const isNew = resident === undefined || resident.isElsewhere;
    this.table.began(session, endpoint, item.tokens);
    this.turns.set(seat, { session, endpoint });
    this.peer?.held(session, isNew);
    // Larger turns of the session may wait in other bands, and pass from now on.
    if (resident === undefined) this.listeners.announce();
  }

  reported(endpoint: EndpointView, _nowMs: number, seat: SeatView): void {
    const turn = this.turns.get(seat);
    const { promptTokens, completionTokens } = seat.usage;
    if (turn?.endpoint !== endpoint) return;
    this.table.grew(turn.session, promptTokens + completionTokens);
    this.peer?.held(turn.session, false);
  }

  released(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    const turn = this.turns.get(seat);
    // A seat that was moved is given back where it had been.
    if (turn === undefined || turn.endpoint !== endpoint) return;
    const { session } = turn;
    if (this.table.ended(session, nowMs, !seat.isUnsent)) this.peer?.ended(session, !session.isLeaving);
    this.listeners.announce();
  }

  sessionEnded(_endpoint: EndpointView, _nowMs: number, seat: SeatView): void {
    const turn = this.turns.get(seat);
    if (turn === undefined) return;
    if (this.table.end(turn.session)) this.peer?.ended(turn.session, false);
    this.listeners.announce();
  }

  share(peer: SessionPeer): SessionSharing {
    if (this.peer !== undefined)
      throw configError('sessionLimit', 'share', 'a limit that is shared once', 'one that is shared');
    this.peer = peer;
    const { inactivity: inactivityMs, maxSessions = Infinity } = this.settings;
    return {
      inactivityMs,
      maxSessions,
      adopt: (claim, nowMs) => this.adopt(claim, nowMs),
      release: (name, isUnsent) => this.release(name, isUnsent),
      own: (nowMs) => this.own(nowMs),
      // Names must stay, or resident sessions would be taken for others.
      stop: () => {
        this.peer = { nameOf: (key) => peer.nameOf(key), held: () => {}, ended: () => {} };
      },
    };
  }

  residentSessions(nowMs: number): number {
    this.table.sweep(nowMs);
    return this.table.size;
  }

  tokensAt(endpoint: EndpointView, nowMs: number): number {
    this.table.sweep(nowMs);
    return this.table.tokensAt(endpoint);
  }

  sessions(held: readonly ItemView[], nowMs: number): SessionFigures {
    const { table, settings } = this;
    table.sweep(nowMs);
    const waiting = new Set<string>();
    for (const item of held) {
      const key = this.keyOf(item);
      if (key !== undefined && table.get(key) === undefined) waiting.add(key);
    }
    return {
      resident: table.size,
      idle: table.idleSize,
      maxSessions: settings.maxSessions ?? Infinity,
      waiting: waiting.size,
      tokens: table.tokens,
      expired: table.expired,
      ...(this.peer !== undefined && { elsewhere: table.elsewhereSize }),
    };
  }

  private keyOf(item: ItemView): string | undefined {
    const key = this.sessionOf(item);
    return key === undefined || this.peer === undefined ? key : this.peer.nameOf(key);
  }

  private newSession(key: string, item: ItemView): Session {
    const prefix: unknown = this.settings.sharedPrefix?.(item);
    if (!isPrefix(prefix)) return new Session(key, undefined);
    return new Session(key, { id: this.peer?.nameOf(prefix.id) ?? prefix.id, tokens: prefix.tokens });
  }

  private adopt({ name, endpoint, tokens, prefix, forMs }: SessionClaim, nowMs: number): boolean {
    const { table } = this;
    table.sweep(nowMs);
    const resident = table.get(name);
    // The replica of its last turn tells the others how long it stays.
    if (resident?.running === 0 && !resident.isElsewhere && this.idleForMs(resident, nowMs) > forMs) return false;
    const session = resident ?? new Session(name, prefix);
    table.adopt(session, endpoint, tokens);
    // Its turns may have waited here, as those of a new session.
    if (resident === undefined) this.listeners.announce();
    return session.isElsewhere;
  }

  private idleForMs({ idleSinceMs }: Session, nowMs: number): number {
    return idleSinceMs + this.settings.inactivity - nowMs;
  }

  private release(name: string, isUnsent: boolean): boolean {
    const session = this.table.get(name);
    if (session === undefined) return false;
    const hadTurnsHere = session.running > 0 || session.idleSinceMs !== -Infinity;
    const hasEnded = (!isUnsent || !hadTurnsHere) && this.table.end(session);
    // It is resident for the others, too, until its turn here ends.
    if (session.running > 0) this.peer?.held(session, true);
    if (!hasEnded) return false;
    this.listeners.announce();
    return true;
  }

  private own(nowMs: number): [session: ResidentSession, forMs: number][] {
    const { table, settings } = this;
    table.sweep(nowMs);
    const all: [ResidentSession, number][] = [];
    for (const session of table) {
      if (session.isElsewhere) continue;
      all.push([session, session.running > 0 ? settings.inactivity : this.idleForMs(session, nowMs)]);
    }
    return all;
  }

  /** A session that is larger than the whole cache goes to an endpoint without sessions. */
  private fits(session: Session, tokens: number, endpoint: EndpointView, footprint: number): boolean {
    const { table } = this;
    return table.tokensAt(endpoint) === 0 || table.tokensWith(endpoint, session, tokens) <= footprint * endpoint.weight;
  }
}

/**
 * Lets turns of resident sessions pass. Turns of new sessions wait until there is room; under a fairness policy of
 * turns, the session that has waited longest goes first. A session ends when the host says so with
 * `lease.endSession()`, or after `inactivity` without a turn.
 *
 * It judges sessions, and not how full servers are. The requests of each session queue apart, as with
 * `holBlocking: 'none'`, so that no turn of a resident session stands behind one of a new session. Costs O(endpoints)
 * for each request with a session, and O(waiting sessions) for each walk while new ones wait. @throws FlowConfigError
 * @example
 * new FlowController({ maxConcurrency: 64, constraints: [sessionLimit({ maxSessions: 200, inactivity: '10m' })] })
 */
export function sessionLimit<R = unknown>(given: SessionLimitOptions<R> = {}): SessionLimit {
  return new Sessions(s.parse(sessionOptions, { ...given, by: given.by ?? 'sessionId' }, 'sessionLimit'));
}

export const sessionLimitPlugin: Definition<Constraint> = define(type, sessionParameters, sessionLimit);
