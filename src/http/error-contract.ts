/** Which status and which dropped reason a drop is answered with: one table per contract. */
import type { Drop, DropCause, DropExplanation } from '../index.js';
import type { DroppedReason } from './header-names.js';

/** How one drop is answered. */
export interface HttpErrorMapping {
  readonly status: number;
  /** Value of the dropped-reason header; without it the header is not sent. */
  readonly droppedReason?: string | undefined;
}

/**
 * - `gateway-api`: the table of the Gateway API inference extension: an expired TTL is 503, shutting down is 500.
 * - `llm-d`: what llm-d-router answers today: an expired TTL is 429 (503 without endpoints), shutting down is 503.
 * - a function: your own.
 */
export type ErrorContract = 'gateway-api' | 'llm-d' | ((drop: Drop) => HttpErrorMapping);

const gatewayApiReasons: Record<DropCause, DroppedReason | undefined> = {
  saturated: 'rejected-saturated',
  'no-endpoints': 'rejected-no-endpoints',
  'ttl-expired': 'rejected-ttl-expired',
  cancelled: 'rejected-context-cancelled',
  // The table has no reason for it: it files shutting down under internal errors.
  'shutting-down': undefined,
  internal: undefined,
};

const llmD: Record<DropCause, HttpErrorMapping> = {
  saturated: { status: 429, droppedReason: 'rejected-saturated' },
  'no-endpoints': { status: 503, droppedReason: 'rejected-no-endpoints' },
  'ttl-expired': { status: 429, droppedReason: 'rejected-ttl-expired' },
  cancelled: { status: 503, droppedReason: 'rejected-context-cancelled' },
  'shutting-down': { status: 503, droppedReason: 'rejected-shutting-down' },
  internal: { status: 500 },
};

/** `hasEndpoints` tells whether the pool has any now; only the `llm-d` contract asks, for an expired TTL. */
export function mapDrop(
  drop: Drop,
  { cause, status }: DropExplanation,
  contract: ErrorContract,
  hasEndpoints: (() => boolean) | undefined,
): HttpErrorMapping {
  if (typeof contract === 'function') return contract(drop);
  if (contract === 'gateway-api') return { status, droppedReason: gatewayApiReasons[cause] };
  return cause === 'ttl-expired' && hasEndpoints?.() === false ? llmD['no-endpoints'] : llmD[cause];
}
