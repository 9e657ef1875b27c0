/** What operators and their machines ask for: health, readiness, metrics, busy thresholds, the inspector. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { BusyThresholdHandler, DemandSource } from '../../adapters/http/index.js';
import { busyThresholdHandler, demandHandler } from '../../adapters/http/index.js';
import type { FlowController, SaturationDetector } from '../../index.js';
import { basicLogin, type InspectedShares, type Inspector, inspector } from '../../observability/inspector/index.js';
import type { StoreProblem } from '../../redis/index.js';
import type { BusyThresholdDetector } from '../../types/index.js';
import type { BodyReader } from '../bodies/body-reader.js';
import type { MetricsSource } from '../metrics/gateway-metrics.js';
import { isSameSecret, keyOf } from '../requests/senders.js';
import type { InspectorConfig } from '../settings/gateway-config.js';
import { ApiError, sendJson, uploadEnds } from '../shared/api-error.js';

export interface OperatorState {
  readonly flow: DemandSource;
  readonly isDraining: boolean;
  readonly endpoints: number;
  /** The available servers: well, not avoided, and with the metrics that the detector needs. */
  readonly available: number;
  /** Whether no part of the limit that replicas share is here, and what is wrong with the store, if anything. */
  readonly share: { readonly isMissing: boolean; readonly problem: StoreProblem | undefined };
  /** Undefined when prom-client is not installed. */
  readonly register: MetricsSource | undefined;
  readonly detectors: readonly SaturationDetector[];
  /** Names of the models that the servers have. */
  readonly models: readonly string[];
  readonly adminToken: string | undefined;
  readonly demand: { readonly path: string; readonly token?: string | undefined };
  /** Whether metrics, which name tenants, are for holders of the token alone: strangers can reach the port. */
  readonly guardsMetrics: boolean;
}

/** Answers the paths that `isOperatorPath` names. */
export type OperatorRoutes = (path: string, req: IncomingMessage, res: ServerResponse) => Promise<void>;

const readOnly: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);
const thresholds = '/busy_threshold';

/** Whether operators ask at the path. Requests of clients pay for this question, and for nothing else of operators. */
export function isOperatorPath(path: string, demandPath: string): boolean {
  return readOnly.has(path) || path === demandPath || path === thresholds;
}

/** Whether figures are there, which may need no token. */
export function hasFigures(path: string, demandPath: string): boolean {
  return path === '/metrics' || path === demandPath;
}

/** @throws (rejects) ApiError */
export function operatorRoutes(state: () => OperatorState, bodies: BodyReader): OperatorRoutes {
  return async function answerOperator(path, req, res) {
    const { demand } = state();
    if ((readOnly.has(path) || path === demand.path) && req.method !== 'GET' && req.method !== 'HEAD') {
      const message = `${req.method} is not possible at ${path}, which takes GET, HEAD.`;
      throw new ApiError(405, 'method_not_allowed', message, { ...uploadEnds, allow: 'GET, HEAD' });
    }
    if (path === '/healthz') {
      sendJson(res, 200, { status: 'ok' });
    } else if (path === '/readyz') {
      const { isDraining, endpoints, available, share, guardsMetrics } = state();
      const whole = share.isMissing ? 'no-share' : 'ready';
      const status = isDraining ? 'draining' : available === 0 ? 'no-endpoints' : whole;
      const { code, message } = share.problem ?? {};
      // The words of a store may hold addresses, which are not for strangers.
      const problem = code && { code, message: guardsMetrics ? undefined : message };
      sendJson(res, status === 'ready' ? 200 : 503, { status, endpoints, available, problem });
    } else if (path === '/metrics') {
      const { register, guardsMetrics, adminToken } = state();
      if (guardsMetrics && !hasToken(req.headers, adminToken)) {
        const message = 'Metrics need admin.token as bearer token here, or a port of their own, admin.port.';
        throw new ApiError(401, 'invalid_api_key', message, { 'www-authenticate': 'Bearer' });
      }
      if (register === undefined)
        throw new ApiError(404, 'no_metrics', 'Metrics need the package prom-client: npm install prom-client');
      for await (const part of register.parts()) {
        // Only now, so that a metric that cannot be read is an error with its status.
        if (!res.headersSent) res.writeHead(200, { 'content-type': register.contentType });
        res.write(part);
      }
      res.end();
    } else if (path === demand.path) {
      const { flow, guardsMetrics, adminToken } = state();
      if (guardsMetrics && !hasToken(req.headers, adminToken) && !hasToken(req.headers, demand.token)) {
        const message =
          'Demand needs demand.token or admin.token as bearer token here, or a port of its own, admin.port.';
        throw new ApiError(401, 'invalid_api_key', message, { 'www-authenticate': 'Bearer' });
      }
      const answer = await demandHandler(flow)({ method: 'GET', headers: req.headers });
      res.writeHead(answer.status, answer.headers).end(answer.body);
    } else if (path === thresholds) {
      await moveThresholds(req, res, state(), bodies);
    }
  };
}

async function moveThresholds(req: IncomingMessage, res: ServerResponse, state: OperatorState, bodies: BodyReader) {
  const handle = thresholdHandler(state);
  if (handle === undefined) throw new ApiError(404, 'no_thresholds', 'No busy-threshold-detector is configured.');
  const isAuthorized = hasToken(req.headers, state.adminToken);
  if (isAuthorized) bodies.checkDeclared(req, longestUpdate);
  // Others get 403, and nothing is received from them.
  const body = isAuthorized ? (await bodies.read(req, 'operators', longestUpdate)).toString('utf8') : undefined;
  const answer = await handle({ method: req.method ?? 'GET', headers: req.headers, body });
  res.writeHead(answer.status, isAuthorized ? answer.headers : { ...answer.headers, ...uploadEnds }).end(answer.body);
}

/** Bytes of an update of thresholds. */
const longestUpdate = 65_536;

function hasToken(headers: IncomingHttpHeaders, token: string | undefined): boolean {
  const given = keyOf(headers);
  return token !== undefined && given !== undefined && isSameSecret(given, token);
}

/** Undefined without such a detector. Without a token nobody may change thresholds. */
function thresholdHandler({ detectors, models, adminToken }: OperatorState): BusyThresholdHandler | undefined {
  const busy = detectors.filter(
    (detector): detector is BusyThresholdDetector => detector.type === 'busy-threshold-detector',
  );
  if (busy.length === 0) return undefined;
  const names = models.length === 0 ? ['default'] : models;
  return busyThresholdHandler({
    models: Object.fromEntries(names.map((name) => [name, busy])),
    authorize: ({ headers }) => hasToken(Object.fromEntries(Object.entries(headers)), adminToken),
  });
}

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
