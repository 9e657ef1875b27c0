/** Which status and which dropped reason a drop is answered with: one table per contract. */
import type { Drop } from '../../index.js';
import type { DropExplanation } from '../../types/index.js';
import { dynamoContract } from './dynamo-contract.js';
import { checkedMapping, droppedReasons, type HttpErrorMapping } from './http-error-mapping.js';

/**
 * - `gateway-api`: the table of the Gateway API inference extension: an expired TTL is 503, shutting down is 500.
 * - `llm-d`: what llm-d-router answers today: an expired TTL is 429 (503 without endpoints), shutting down is 503.
 * - `dynamo`: Dynamo's 503 for overload, with its flat body; `dynamoContract(529)` and `dynamoBody` for its later
 *   releases.
 * - a function: your own.
 */
export type ErrorContract = 'gateway-api' | 'llm-d' | 'dynamo' | ((drop: Drop) => HttpErrorMapping);

const dynamo = dynamoContract();

const llmD: Record<DropExplanation['cause'], number> = {
  saturated: 429,
  overloaded: 429,
  'no-endpoints': 503,
  'ttl-expired': 429,
  cancelled: 503,
  'shutting-down': 503,
  evicted: 429,
  infeasible: 503,
  revoked: 403,
  internal: 500,
};

/** `hasEndpoints` tells whether the pool has any now; only the `llm-d` contract asks, for an expired TTL. */
export function mapDrop(
  drop: Drop,
  { cause, status }: DropExplanation,
  contract: ErrorContract,
  hasEndpoints: (() => boolean) | undefined,
): HttpErrorMapping {
  if (typeof contract === 'function') return checkedMapping(contract(drop));
  if (contract === 'dynamo') return dynamo(drop);
  const droppedReason = droppedReasons[cause];
  // The table files shutting down under internal errors, and has no reason for it.
  if (contract === 'gateway-api')
    return { status, droppedReason: cause === 'shutting-down' ? undefined : droppedReason };
  if (cause === 'ttl-expired' && hasEndpoints?.() === false)
    return { status: 503, droppedReason: droppedReasons['no-endpoints'] };
  return { status: llmD[cause], droppedReason };
}
