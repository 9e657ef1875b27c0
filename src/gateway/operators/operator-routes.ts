/** What operators and their machines ask for: health, readiness, metrics, busy thresholds, the inspector. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { BusyThresholdHandler, DemandSource } from '../../adapters/http/index.js';
import { busyThresholdHandler, demandHandler } from '../../adapters/http/index.js';
import type { FlowController, SaturationDetector } from '../../index.js';
import {
  basicLogin,
  type InspectedShares,
  type Inspector,
  type InspectorView,
  inspector,
} from '../../observability/inspector/index.js';
import type { StoreProblem } from '../../redis/index.js';
import type { BusyThresholdDetector } from '../../types/index.js';
import type { BodyReader } from '../bodies/body-reader.js';
import type { MetricsSource } from '../metrics/gateway-metrics.js';
import { isSameSecret, keyOf } from '../requests/senders.js';
import type { InspectorConfig } from '../settings/gateway-config.js';
import { ApiError, sendJson, uploadEnds } from '../shared/api-error.js';
import type { GatewayWorkers, OperatorQuestion } from '../shared/gateway-workers.js';

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

/** Each of `workers` answers for all. @throws (rejects) ApiError */
export function operatorRoutes(
  state: () => OperatorState,
  bodies: BodyReader,
  workers?: GatewayWorkers,
  page?: OperatorPage,
): OperatorRoutes {
  const alone: Readonly<Record<OperatorQuestion, (given: string) => unknown>> = {
    metrics: () => state().register?.json(),
    demand: async () => JSON.parse((await demandHandler(state().flow)({ method: 'GET', headers: {} })).body),
    readyz: () => readinessOf(state()),
    // Each worker numbers what it hides by itself.
    frame: () =>
      JSON.parse(page?.inspector.alone('frame', '') ?? 'null', (_key, value) =>
        /^flow \d+$/.test(value) ? `${value}.${workers?.place.worker}` : value,
      ),
    find: (id) => page && JSON.parse(page.inspector.alone('find', id)),
    thresholds(body) {
      const headers = { authorization: `Bearer ${state().adminToken}` };
      return thresholdHandler(state())?.({ method: 'POST', headers, body });
    },
  };
  if (workers !== undefined) workers.answer = (what, given) => alone[what](String(given));
  const ofAll = async (what: OperatorQuestion): Promise<unknown> => workers?.ofAll(what) ?? alone[what]('');

  function checkToken({ headers }: IncomingMessage, whose: string, names: string, other?: string): void {
    const { guardsMetrics, adminToken } = state();
    if (!guardsMetrics || hasToken(headers, adminToken) || hasToken(headers, other)) return;
    const message = `${whose} ${names} as bearer token here, or a port of its own, admin.port.`;
    throw new ApiError(401, 'invalid_api_key', message, { 'www-authenticate': 'Bearer' });
  }

  return async function answerOperator(path, req, res) {
    const { demand, register } = state();
    if ((readOnly.has(path) || path === demand.path) && req.method !== 'GET' && req.method !== 'HEAD') {
      const message = `${req.method} is not possible at ${path}, which takes GET, HEAD.`;
      throw new ApiError(405, 'method_not_allowed', message, { ...uploadEnds, allow: 'GET, HEAD' });
    }
    if (path === '/healthz') {
      sendJson(res, 200, { status: 'ok' });
    } else if (path === '/readyz') {
      const { isDraining, hasShare, ...told }: ReturnType<typeof readinessOf> = Object(await ofAll('readyz'));
      const whole = hasShare ? 'ready' : 'no-share';
      const status = isDraining ? 'draining' : told.available === 0 ? 'no-endpoints' : whole;
      sendJson(res, status === 'ready' ? 200 : 503, { status, ...told });
    } else if (path === '/metrics') {
      checkToken(req, 'Metrics need', 'admin.token');
      if (register === undefined)
        throw new ApiError(404, 'no_metrics', 'Metrics need the package prom-client: npm install prom-client');
      for await (const part of workers === undefined ? register.parts() : [String(await ofAll('metrics'))]) {
        // Only now, so that a metric that cannot be read is an error with its status.
        if (!res.headersSent) res.writeHead(200, { 'content-type': register.contentType });
        res.write(part);
      }
      res.end();
    } else if (path === demand.path) {
      checkToken(req, 'Demand needs', 'demand.token or admin.token', demand.token);
      sendJson(res, 200, await ofAll('demand'));
    } else if (path === thresholds) {
      await moveThresholds(req, res, state(), bodies, workers);
    }
  };
}

/** What a process tells of whether requests can go. */
function readinessOf({ isDraining, endpoints, available, share, guardsMetrics }: OperatorState) {
  const { code, message } = share.problem ?? {};
  // The words of a store may hold addresses, which are not for strangers.
  const problem = code && { code, message: guardsMetrics ? undefined : message };
  return { isDraining, hasShare: !share.isMissing, endpoints, available, problem };
}

async function moveThresholds(
  req: IncomingMessage,
  res: ServerResponse,
  state: OperatorState,
  bodies: BodyReader,
  workers: GatewayWorkers | undefined,
): Promise<void> {
  const handle = thresholdHandler(state);
  if (handle === undefined) throw new ApiError(404, 'no_thresholds', 'No busy-threshold-detector is configured.');
  const isAuthorized = hasToken(req.headers, state.adminToken);
  // Others get 403, and nothing is received from them.
  const body = isAuthorized ? (await bodies.read(req, 'operators', longestUpdate)).toString('utf8') : undefined;
  const answer = await handle({ method: req.method ?? 'GET', headers: req.headers, body });
  if (req.method === 'POST' && answer.status === 200) await workers?.place.together('thresholds', body);
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
  workers?: GatewayWorkers,
): OperatorPage {
  const authorize = basicLogin({ password });
  const together = workers && ((view: InspectorView, id: string) => workers.ofAll(view, id));
  return { path, inspector: inspector(flow, { authorize, hosts, fairnessIds, shared, together }) };
}

/**
 * Whether operators may ask by a host: addresses, `localhost`, and `names`. A stranger's page can point a name of its
 * own here (DNS rebinding), and read the answers. `host` is in small letters and has no port.
 */
export function ownHosts(names: readonly string[]): (host: string) => boolean {
  const known = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  return (host) => known.has(host) || isIP(host.replace(/^\[(.*)\]$/, '$1')) > 0;
}

/** The host that a request names, as `ownHosts` takes it. */
export function hostOf({ host = '' }: IncomingHttpHeaders): string {
  return host.replace(/:\d+$/, '').toLowerCase();
}
