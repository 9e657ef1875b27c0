/** A line for all drops of ten seconds: in an overload one for each would be the loudest thing in the log. */
import { type FlowController, logDrops } from '../index.js';
import type { GatewayConfig } from './gateway-config.js';
import type { GatewayRequest } from './gateway-flow.js';
import type { GatewayLog } from './gateway-log.js';

/** A warning, unless all of them are clients that left. `stop` tells what has not been told. */
export function logDropsOf(
  flow: FlowController<GatewayRequest>,
  { log }: GatewayConfig,
  write: GatewayLog,
): { stop(): void } {
  return logDrops(flow, {
    fairnessIds: log.tenants,
    onLine: (_line, { drops, periodMs, reasons, priorities, fairnessIds, isShadow }) => {
      const level = isShadow === true || reasons.cancelled === drops ? 'info' : 'warn';
      const tenants = fairnessIds && counts(fairnessIds);
      write(level, isShadow === true ? 'would-be-drops' : 'drops', {
        drops,
        periodMs,
        reasons: counts(reasons),
        priorities: counts(priorities),
        tenants,
      });
    },
  });
}

/** `ttl-expired:12 cancelled:3`. */
function counts(byName: Readonly<Record<string, number>>): string {
  return Object.entries(byName)
    .map(([name, count]) => `${name}:${count}`)
    .join(' ');
}
