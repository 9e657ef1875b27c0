/** The error contracts while a gateway shuts down: it comes back after a restart, and tells clients so. */
import { droppedReasonHeader, type HttpErrorMapping, toHttpResponse } from '../../adapters/http/index.js';
import type { Drop } from '../../index.js';
import type { GatewayConfig } from '../settings/gateway-config.js';

/** The contract of the file, but a request dropped by a shutdown gets 503, because another gateway can take it. */
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
