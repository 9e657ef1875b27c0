/** The error contracts at a gateway's own end: it comes back after a restart, and says so. */
import { droppedReasonHeader, type HttpErrorMapping, toHttpResponse } from '../adapters/http/index.js';
import type { Drop } from '../index.js';
import type { GatewayConfig } from './gateway-config.js';

/** The contract of the file, but that a request dropped by a shutdown is told 503: another gateway can take it. */
export function gatewayContract(
  contract: GatewayConfig['contract'],
  hasEndpoints: () => boolean,
): (drop: Drop) => HttpErrorMapping {
  return (drop) => {
    if (drop.reason === 'shutting-down') return { status: 503, droppedReason: 'rejected-shutting-down' };
    const { status, headers } = toHttpResponse(drop, { contract, hasEndpoints });
    return { status, droppedReason: headers[droppedReasonHeader] };
  };
}
