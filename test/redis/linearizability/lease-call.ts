/** What a call of the lease script says and what its answer promises, out of the words that go over the wire. */
import { replyWidth } from '../../../src/redis/leases/lease-reply.js';

/** As the checker reads it: `checker/main.go`. */
export interface LeaseCall {
  readonly sequence: number;
  /** The limit that the replica used when it called. */
  readonly cap: number;
  readonly inFlight: number;
  readonly safeShare: number;
  readonly limit: number;
  readonly isLeaving: boolean;
  readonly leaseUs: number;
  readonly drainUs: number;
  readonly forgetUs: number;
  /** The epoch of the store that the replica's last answer was of; 0: none. */
  readonly remembers: number;
}

export interface LeaseAnswer {
  /** -1: the store has seen this call, or a later one. */
  readonly grant: number;
  readonly safeShare: number;
  /** The store begins a new one when it knows nothing. */
  readonly epoch: number;
}

/** Of a call for one key. */
export function readCall([, , , , lease, drain, forget, operation, ...told]: readonly string[]): LeaseCall {
  const [sequence = 0, , limit = 0, , cap = 0, inFlight = 0, , safeShare = 0, remembers = 0] = told.map(Number);
  return {
    sequence,
    cap,
    inFlight,
    safeShare,
    limit,
    isLeaving: operation === 'leave',
    leaseUs: Number(lease) * 1_000,
    drainUs: Number(drain) * 1_000,
    forgetUs: Number(forget) * 1_000,
    remembers,
  };
}

export function readAnswer(reply: unknown): LeaseAnswer {
  if (!Array.isArray(reply) || reply.length !== replyWidth) throw new Error(`no answer for one key: ${reply}`);
  return { grant: Number(reply[2]), safeShare: Number(reply[3]), epoch: Number(reply[4]) };
}
