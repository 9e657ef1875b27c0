/** The inspector of a gateway, and the names by which pages and figures for operators may be asked for. */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import type { FlowController } from '../../index.js';
import { basicLogin, type InspectedShares, type Inspector, inspector } from '../../observability/inspector/index.js';
import type { InspectorConfig } from '../settings/gateway-config.js';

export interface OperatorPage {
  readonly path: string;
  readonly inspector: Inspector;
}

/** A page at a path for operators, behind a password that every browser asks for. */
export function operatorPage(
  flow: FlowController<never>,
  { path, password, fairnessIds }: InspectorConfig,
  hosts: (host: string) => boolean,
  shared: (() => InspectedShares) | undefined,
): OperatorPage {
  const authorize = basicLogin({ password });
  return { path, inspector: inspector(flow, { authorize, hosts, fairnessIds, shared }) };
}

/**
 * Whether operators may ask by a name: addresses, `localhost`, and `names`. The page of a stranger can point a name of
 * its own to this gateway (DNS rebinding), and a browser lets it read the answers. An address cannot be such a name.
 * `host` is in small letters and has no port.
 */
export function ownHosts(names: readonly string[]): (host: string) => boolean {
  const known = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  return (host) => known.has(host) || isIP(host.replace(/^\[(.*)\]$/, '$1')) > 0;
}

/** The host that a request names, as `ownHosts` takes it. */
export function hostOf({ host = '' }: IncomingHttpHeaders): string {
  return host.replace(/:\d+$/, '').toLowerCase();
}
