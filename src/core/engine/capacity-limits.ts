/** Does one more request fit? Global, then its band, then its flow; bytes before requests. */
import type { Limits } from '../options.js';
import type { LimitHit } from '../outcome/explanation.js';

/** Waiting requests of one place: the whole controller, a band, a flow, or one fairness ID in a band. */
export interface WaitingFigures {
  readonly waiting: number;
  readonly waitingBytes: number;
}

/** The limit that one more request of `byteSize` bytes would exceed. A limit may be reached exactly. */
export function exceededLimit(
  scope: LimitHit['scope'],
  used: WaitingFigures,
  limits: Limits,
  byteSize: number,
): LimitHit | undefined {
  if (used.waitingBytes + byteSize > limits.maxBytes)
    return { scope, resource: 'bytes', max: limits.maxBytes, used: used.waitingBytes };
  if (used.waiting + 1 > limits.maxRequests)
    return { scope, resource: 'requests', max: limits.maxRequests, used: used.waiting };
  return undefined;
}

/** True when the limits can never be exceeded, so that nothing needs to be counted for them. */
export function isUnlimited(limits: Limits): boolean {
  return limits.maxRequests === Infinity && limits.maxBytes === Infinity;
}
