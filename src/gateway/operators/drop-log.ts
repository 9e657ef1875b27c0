/** Writes one line for all drops of ten seconds, because in an overload one line for each would fill the log. */
import { type FlowController, logDrops } from '../../index.js';
import type { GatewayRequest } from '../gateway-flow.js';
import type { GatewayConfig } from '../settings/gateway-config.js';
import type { GatewayLog } from '../shared/gateway-log.js';

type Flow = FlowController<GatewayRequest>;

/** The line is a warning, unless all drops are of clients that left. `stop` writes the last line, if there is one. */
export function logDropsOf(flow: Flow, { log }: GatewayConfig, write: GatewayLog): { stop(): void } {
  return logDrops(flow, {
    fairnessIds: log.tenants,
    onLine: (_line, { drops, periodMs, reasons, priorities, fairnessIds, isShadow }) => {
      const level = isShadow === true || reasons.cancelled === drops ? 'info' : 'warn';
      const told = { drops, periodMs, reasons: counts(reasons), priorities: counts(priorities) };
      const tenants = fairnessIds && counts(fairnessIds);
      write(level, isShadow === true ? 'would-be-drops' : 'drops', { ...told, tenants });
    },
  });
}

/** `ttl-expired:12 cancelled:3`. */
function counts(byName: Readonly<Record<string, number>>): string {
  return Object.entries(byName)
    .map(([name, count]) => `${name}:${count}`)
    .join(' ');
}
