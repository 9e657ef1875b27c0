/** The reference's words for what happened, and headgate's: error chains, canonical codes, message prefixes. */

import type { DropCode } from '../../../src/core/outcome/explain-drop.js';
import type { DropType } from '../../../src/core/outcome/outcome.js';
import type { Drop, DropReason } from '../../../src/index.js';

/** The sentinel errors that the reference wraps around a drop of this kind. */
export function errorChainOf({ type, reason }: Pick<Drop, 'type' | 'reason'>): string[] {
  return [type.startsWith('Rejected') ? 'ErrRejected' : 'ErrEvicted', ...causesByType(type, reason)];
}

function causesByType(type: DropType, reason: DropReason): readonly string[] {
  switch (type) {
    case 'RejectedCapacity':
      return ['ErrQueueAtCapacity'];
    case 'RejectedNoEndpoints':
      return ['ErrNoEndpoints'];
    case 'EvictedTTL':
      return ['ErrTTLExpired'];
    case 'EvictedNoEndpoints':
      return ['ErrTTLExpired', 'ErrNoEndpoints'];
    case 'EvictedContextCancelled':
      return causes.get('cancelled') ?? [];
    default:
      return causes.get(reason) ?? [];
  }
}

/** `Canceled` is the platform's own error behind a cancelled context; here the signal's abort stands for both. */
const causes: ReadonlyMap<DropReason, readonly string[]> = new Map([
  ['cancelled', ['ErrContextCancelled', 'Canceled']],
  ['ttl-expired', ['ErrTTLExpired']],
  ['shutting-down', ['ErrFlowControllerNotRunning']],
]);

const reasonsByError: readonly (readonly [error: string, reason: DropReason])[] = [
  ['ErrFlowControllerNotRunning', 'shutting-down'],
  ['ErrTTLExpired', 'ttl-expired'],
  ['ErrContextCancelled', 'cancelled'],
  ['Canceled', 'cancelled'],
];

/** The drop that headgate would report for an outcome and an error chain of the reference. */
export function dropFrom(outcome: string, errorChain: readonly string[]): Drop {
  const byChain = reasonsByError.find(([error]) => errorChain.includes(error))?.[1];
  // An outcome or a cause that nobody foresaw must become an internal error, and nothing worse.
  const reason = byChain ?? (outcome === 'RejectedCapacity' ? 'band-max-requests' : ('unforeseen' as DropReason));
  return { type: outcome as DropType, reason, fairnessId: 'tenant', priority: 0, queuedMs: 0 };
}

/** The reference's canonical codes and their statuses; only those that a drop can become. */
export const statusOfCode: Readonly<Record<string, number>> = {
  ResourceExhausted: 429,
  ServiceUnavailable: 503,
  Internal: 500,
};

/** What opens the reference's message → the codes of our bodies that say the same. The first that fits counts. */
const codesByMessage: readonly (readonly [prefix: string, codes: readonly DropCode[]])[] = [
  ['request timed out in queue and no endpoints are available', ['ERR_FLOW_NO_ENDPOINTS', 'ERR_FLOW_TTL_EXPIRED']],
  ['request timed out in queue', ['ERR_FLOW_TTL_EXPIRED']],
  ['no endpoints available', ['ERR_FLOW_NO_ENDPOINTS']],
  ['client disconnected', ['ERR_FLOW_CANCELLED']],
  ['flow controller shutting down', ['ERR_FLOW_SHUTTING_DOWN']],
  ['internal flow control error', ['ERR_FLOW_INTERNAL']],
  ['unhandled flow control outcome', ['ERR_FLOW_INTERNAL']],
  ['request rejected by flow control', ['ERR_FLOW_SATURATED', 'ERR_FLOW_NO_ENDPOINTS']],
];

/** The capacity error has no prefix: its message is its own text. */
const codesWithoutPrefix: Readonly<Record<string, readonly DropCode[]>> = {
  ResourceExhausted: ['ERR_FLOW_SATURATED'],
  Internal: ['ERR_FLOW_INTERNAL'],
};

/** The codes that stand for a message of the reference and its canonical code. */
export function codesForMessage(message: string, canonicalCode = 'ResourceExhausted'): readonly DropCode[] {
  return codesByMessage.find(([prefix]) => message.includes(prefix))?.[1] ?? codesWithoutPrefix[canonicalCode] ?? [];
}
