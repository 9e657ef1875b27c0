/** Session limit and carrier of messages. Invariant: an adopted session is not told of until its turn here. */
import type { SharedPrefix } from './session-table.js';

/** A session that is resident here. */
export interface ResidentSession {
  /** By `nameOf`. */
  readonly key: string;
  /** The ID of the endpoint where its last turn went. */
  readonly endpoint: string | undefined;
  /** The largest context of its turns. */
  readonly tokens: number;
  readonly prefix: SharedPrefix | undefined;
}

/** A session as it is known to all replicas. */
export interface SessionClaim {
  /** By `nameOf`. */
  readonly name: string;
  /** The ID of the endpoint at which it counts. */
  readonly endpoint: string;
  /** The largest context of its turns, tokens from 0 up. */
  readonly tokens: number;
  readonly prefix: SharedPrefix | undefined;
  /** How long it stays resident without another turn, ms above 0. */
  readonly forMs: number;
}

/** Hears of the sessions that have turns here. Must not throw. */
export interface SessionPeer {
  /** The name under which all replicas know a session, or a shared prefix. Asked several times for a request. */
  nameOf(key: string): string;
  /** A session is at this endpoint, of this size. `isNew`: it was not resident here, or only because others told so. */
  held(session: ResidentSession, isNew: boolean): void;
  /** A session ended, but not for its inactivity. `isUnsent`: because nothing of it was sent to a server. */
  ended(session: ResidentSession, isUnsent: boolean): void;
}

/** The side of the limit. */
export interface SessionSharing {
  readonly inactivityMs: number;
  /** Infinity = unlimited. */
  readonly maxSessions: number;
  /** Counts a foreign session. False where it stays this replica's own: a turn runs here, or ended here later. */
  adopt(claim: SessionClaim, nowMs: number): boolean;
  /** A session ended elsewhere; with a running turn here it ends after that. `isUnsent`: if it had no turns here. */
  release(name: string, isUnsent: boolean): boolean;
  /** Sessions that have turns here or had the last one here, and how long they stay resident without another, ms. */
  own(nowMs: number): [session: ResidentSession, forMs: number][];
  /** Nothing is told from now on. Names stay; the limit cannot be shared again. */
  stop(): void;
}
