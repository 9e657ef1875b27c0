/**
 * A reverse proxy with flow control in front of servers that speak OpenAI's interface.
 *
 *     request ─► who is it ─► (its model) ─► the gate ─► forward ─► answer
 *                 401           400 413       429 503     502 504
 *                                              ▲  │ refused: once more, elsewhere
 *                                              └──┘
 *
 * Longer than most files, because what starts here in one order ends here in the other.
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Agent } from 'undici';
import type { UploadLimits } from '../base/stream/upload-watch.js';
import type { EndpointPool, FlowController, FlowStats, SaturationDetector } from '../index.js';
import type { LeaseStatus } from '../redis/index.js';
import { BodyReader } from './bodies/body-reader.js';
import { makeAgent } from './forwarding/connections.js';
import { Upstreams } from './forwarding/upstreams.js';
import { MetricsFallback, watchUpstreams } from './forwarding/watch-upstreams.js';
import { createFlow, flowOptions, type GatewayRequest, sharing } from './gateway-flow.js';
import { GatewayCounters } from './metrics/gateway-counters.js';
import { gatewayMetrics, type MetricsSource, type PromClient } from './metrics/gateway-metrics.js';
import { KnownModels } from './metrics/known-models.js';
import { logDropsOf } from './operators/drop-log.js';
import {
  hasFigures,
  hostOf,
  isOperatorPath,
  type OperatorPage,
  type OperatorRoutes,
  type OperatorState,
  operatorPage,
  operatorRoutes,
  ownHosts,
} from './operators/operator-routes.js';
import { type GatewayHttpRequest, RequestState } from './request-state.js';
import { mostHeaders, nothingAt, RequestHandler } from './requests/request-handler.js';
import { type TurnSockets, turnSockets } from './requests/turn-sockets.js';
import type { GatewayConfig, ListenAddress } from './settings/gateway-config.js';
import { ApiError } from './shared/api-error.js';
import { type BudgetState, budgetState } from './shared/budget-state.js';
import { contained, type GatewayLog } from './shared/gateway-log.js';
import type { GatewayWorkers } from './shared/gateway-workers.js';
import { modelsOf } from './shared/model-label.js';
import { loadOpenTelemetry, loadPromClient, loadUndici, loadWs } from './shared/optional-peers.js';
import { SharedState } from './shared/shared-state.js';
import { budgetsIn } from './shared/tenant-budgets.js';

export interface GatewayOptions {
  /** @default nothing is logged */
  readonly log?: GatewayLog | undefined;
}

/** A gateway that runs. */
export interface Gateway {
  readonly url: string;
  /** Where operators ask; the same as `url` without an address of its own. */
  readonly adminUrl: string;
  readonly flow: FlowController<GatewayRequest>;
  readonly pool: EndpointPool;
  /** The part of shared limits that this replica or worker holds now; empty where nothing is shared. */
  readonly shares: readonly LeaseStatus[];
  /**
   * Puts another configuration into force; nothing is dropped. @throws FlowConfigError, and then nothing has changed
   * @returns what takes effect only after a restart
   */
  reconfigure(config: GatewayConfig): readonly string[];
  /**
   * Accepts nothing more, dispatches on, then drops what waits with 503; lets answers end, then breaks them off; the
   * configuration says for how long. Idempotent. With `delayMs` it first serves on for that long, while `/readyz` says
   * 503, for load balancers; a second call without it ends that.
   */
  close(options?: { readonly delayMs?: number }): Promise<FlowStats>;
}

/**
 * Starts a gateway. Resolves when it listens.
 * @throws (rejects) FlowConfigError when undici is not installed; what `listen` throws when the address is taken
 * @example
 * const gateway = await createGateway(loadGatewayConfig(await readFile('gateway.yaml', 'utf8')));
 * process.once('SIGTERM', () => gateway.close());
 */
export function createGateway(config: GatewayConfig, options?: GatewayOptions): Promise<Gateway>;
export async function createGateway(
  config: GatewayConfig,
  { log: given = () => {}, workers }: GatewayOptions & { readonly workers?: GatewayWorkers | undefined } = {},
): Promise<Gateway> {
  const log = contained(given);
  const [undici, promClient, ws] = await Promise.all([loadUndici(), loadPromClient(), loadWs()]);
  const telemetry = config.openTelemetry && (await loadOpenTelemetry());
  const shared = await SharedState.connect(config.sharedState, log, workers);
  // Each worker has a part of the requests, and a file of its own.
  const file = config.budgets?.file?.concat(workers === undefined ? '' : `.${workers.place.worker}`);
  const state = file === undefined ? undefined : await budgetState(file, log);
  const running = new RunningGateway(config, log, undici, promClient, shared, ws, state);
  try {
    if (telemetry !== undefined) running.tell(telemetry);
    await running.listen();
  } catch (error) {
    await running.close();
    throw error;
  }
  return running;
}

class RunningGateway implements Gateway {
  url = '';
  adminUrl = '';
  readonly flow: FlowController<GatewayRequest>;
  private readonly upstreams: Upstreams;
  private readonly bodies: BodyReader;
  private readonly log: GatewayLog;
  private readonly undici: typeof import('undici');
  private readonly counters = new GatewayCounters();
  private readonly knownModels: KnownModels;
  private readonly metrics: MetricsSource | undefined;
  private readonly shared: SharedState | undefined;
  private readonly page: OperatorPage | undefined;
  /** They end with the gateway. */
  private observations: readonly { stop(): unknown }[] = [];
  private readonly handler: RequestHandler;
  private readonly operators: OperatorRoutes;
  private readonly server: Server;
  private readonly sockets: TurnSockets | undefined;
  private readonly adminServer: Server | undefined;
  private config: GatewayConfig;
  private agent: Agent;
  private readonly metricsFallback: MetricsFallback;
  private stopWatching: () => void;
  private drops: { stop(): void };
  private closed: Promise<FlowStats> | undefined = undefined;
  private endDelay: () => void = () => {};

  constructor(
    config: GatewayConfig,
    log: GatewayLog,
    undici: RunningGateway['undici'],
    promClient: PromClient | undefined,
    shared: SharedState | undefined,
    ws: typeof import('ws') | undefined,
    state: BudgetState | undefined,
  ) {
    this.config = config;
    this.shared = shared;
    this.log = log;
    this.undici = undici;
    this.agent = makeAgent(undici, config.timeouts.connect);
    this.bodies = new BodyReader(config.limits, uploadLimits(config));
    const removed = 'only the file names servers: it was removed';
    this.upstreams = new Upstreams((id) => log('warn', 'foreign-server', { endpoint: id, message: removed }));
    this.flow = createFlow(config, this.upstreams, shared, (req) => this.handler.revocationOf(req));
    this.knownModels = new KnownModels(config);
    state?.follow(() => budgetsIn(this.config.constraints));
    if (state !== undefined) this.observations = [state];
    const { flow, upstreams, bodies, counters, knownModels } = this;
    const isDraining = (): boolean => this.closed !== undefined;
    this.handler = new RequestHandler(
      { flow, upstreams, bodies, log, counters, knownModels, isDraining },
      config,
      this.agent,
    );
    this.upstreams.apply(config.upstreams);
    const { workers } = shared ?? {};
    const knowsHost = (host: string): boolean => isOwnHost(this.config, host);
    const held = shared && (() => shared.held);
    this.page = config.inspector && operatorPage(flow, config.inspector, knowsHost, held, workers);
    this.operators = operatorRoutes(() => this.operatorState(), this.bodies, workers, this.page);
    const use = (detector: SaturationDetector): void =>
      flow.reconfigure({ saturationDetector: shared?.beside(detector) ?? detector });
    this.metricsFallback = new MetricsFallback(config, log, use, workers?.place.count);
    this.stopWatching = this.watch(config);
    flow.on('regime', ({ isPoolEmpty }) => {
      if (isPoolEmpty)
        log('warn', 'no-endpoints', { message: 'no server can be had: requests wait, and are then dropped' });
      else log('info', 'endpoints-back', { available: flow.figures().pool?.available });
    });
    this.drops = logDropsOf(flow, config, log);
    this.flow.on('pluginError', ({ kind, type, error }) =>
      log('error', 'plugin-error', { kind, type, error: String(error) }),
    );
    flow.on('leaseOverdue', ({ lease: { fairnessId, priority, endpoint }, heldMs, isTakenBack }) => {
      const tenant = this.config.log.tenants ? fairnessId : undefined;
      log('warn', 'lease-overdue', {
        tenant,
        priority,
        endpoint: endpoint?.id,
        heldMs: Math.round(heldMs),
        isTakenBack,
      });
    });
    const detectors = (): GatewayConfig['detectors'] => this.config.detectors;
    this.metrics = promClient && gatewayMetrics(promClient, { flow, counters, knownModels, detectors, shared });
    const serve = (req: GatewayHttpRequest, res: ServerResponse): void => this.serve(new RequestState(req, res));
    this.server = createServer({ maxHeaderSize: config.limits.maxHeaderBytes }, serve);
    this.server.on('checkContinue', serve);
    const onSocket = (): void => this.reconfigureFlow(this.config, this.config);
    this.sockets = ws && turnSockets(this.server, this.handler, ws, onSocket);
    forPublic(this.server, config.limits.maxConnections);
    if (config.admin.listen === undefined) return;
    this.adminServer = createServer((req, res) => {
      const state = new RequestState(req, res);
      if (this.isOfOperators(state)) void this.answerOperator(state);
      else this.handler.fail(state, nothingAt(state));
    });
    forPublic(this.adminServer, config.limits.maxConnections);
  }

  /** Records metrics and spans from now on, by the providers of the process. */
  tell({ openTelemetryMetrics, traceFlowControl, trace }: Awaited<ReturnType<typeof loadOpenTelemetry>>): void {
    const { metrics, traces, pool, fairnessIds } = this.config.openTelemetry ?? {};
    const tracer = trace.getTracer('headgate');
    this.observations = [
      ...this.observations,
      ...(metrics ? [openTelemetryMetrics(this.flow, { pool, fairnessIdAttribute: fairnessIds })] : []),
      ...(traces
        ? [traceFlowControl(this.flow, { tracer, requestSpans: true, fairnessIdAttribute: fairnessIds })]
        : []),
    ];
  }

  get shares(): readonly LeaseStatus[] {
    return this.shared?.held.leases ?? [];
  }

  get pool(): EndpointPool {
    return this.upstreams.pool;
  }

  async listen(): Promise<void> {
    this.url = await listenOn(this.server, this.config.listen);
    const { guardsMetrics, adminToken } = this.operatorState();
    if (guardsMetrics && adminToken === undefined) {
      this.log('warn', 'metrics-closed', {
        message: '/metrics needs admin.token, or a port of its own: strangers can reach this one',
      });
    }
    const { listen } = this.config.admin;
    this.adminUrl = listen && this.adminServer ? await listenOn(this.adminServer, listen) : this.url;
  }

  reconfigure(config: GatewayConfig): readonly string[] {
    const before = this.config;
    const next = { ...config };
    const hadModels = before.upstreams.some(({ labels }) => labels.model !== undefined);
    const hasModels = config.upstreams.some(({ labels }) => labels.model !== undefined);
    const isNewFlow = config.flowFingerprint !== before.flowFingerprint || hadModels !== hasModels;
    if (isNewFlow) {
      this.reconfigureFlow(config, before);
    } else {
      // The same plugins, with what they have learnt.
      Object.assign(next, { flow: before.flow, detectors: before.detectors, constraints: before.constraints });
    }
    this.config = next;
    if (config.timeouts.connect !== before.timeouts.connect) {
      this.agent.close().catch(() => {}); // when its last answer has ended
      this.agent = makeAgent(this.undici, config.timeouts.connect);
    }
    this.bodies.configure(config.limits, uploadLimits(config));
    this.knownModels.configure(config);
    this.handler.configure(next, this.agent);
    if (config.log.tenants !== before.log.tenants) {
      this.drops.stop();
      this.drops = logDropsOf(this.flow, config, this.log);
    }
    this.upstreams.apply(config.upstreams);
    this.stopWatching();
    this.metricsFallback.configure(next, isNewFlow);
    this.stopWatching = this.watch(config);
    const isShared =
      this.shared === undefined ? config.sharedState === undefined : this.shared.reconfigure(config.sharedState);
    return [...needingRestart(before, config), ...(isShared ? [] : ['sharedState'])];
  }

  private watch(config: GatewayConfig): () => void {
    const { upstreams, log, metricsFallback: reports, agent, counters } = this;
    return watchUpstreams(upstreams, config, log, { reports, agent, counters });
  }

  /** @throws FlowConfigError, and then the quotas of `before` are in force as they were */
  private reconfigureFlow(config: GatewayConfig, before: GatewayConfig): void {
    // This comes before they are in force. With quotas of its own, this replica could once more dispatch as much as all
    // replicas together.
    this.shared?.shareQuotas(config.constraints, before.constraints);
    const nowMs = performance.now();
    if (config !== before)
      budgetsIn(config.constraints)?.restore(budgetsIn(before.constraints)?.saved(nowMs) ?? [], nowMs);
    try {
      this.flow.reconfigure({
        endpointFilters: undefined,
        holBlocking: undefined,
        ...sharing(flowOptions(config, this.sockets?.isUsed), this.shared),
      });
    } catch (error) {
      this.shared?.shareQuotas(before.constraints, config.constraints);
      throw error;
    }
    if (config !== before) this.shared?.workers?.start(this.flow, this.pool, config.constraints);
  }

  close({ delayMs = 0 }: { readonly delayMs?: number } = {}): Promise<FlowStats> {
    if (delayMs === 0) this.endDelay();
    this.closed ??= this.shutDown(delayMs);
    return this.closed;
  }

  private async shutDown(delayMs: number): Promise<FlowStats> {
    if (delayMs > 0) await this.announce(delayMs);
    const { waiting, streams } = this.config.drain;
    this.sockets?.drain();
    this.page?.inspector.close(); // its streams would keep their connections
    const isGone = new Promise<void>((resolve) => this.server.close(() => resolve()));
    // Connections that become idle now are not needed any more.
    const sweep = setInterval(() => this.server.closeIdleConnections(), 20);
    await this.flow.close({ drainMs: waiting });
    const deadline = setTimeout(() => {
      this.log('warn', 'streams-broken-off', { inFlight: this.flow.stats().inFlight });
      this.server.closeAllConnections();
      this.sockets?.terminate();
    }, streams);
    await isGone;
    clearTimeout(deadline);
    clearInterval(sweep);
    this.stopWatching();
    this.adminServer?.close();
    this.adminServer?.closeAllConnections();
    await this.agent.destroy();
    await leasesEnd(this.flow, streams);
    this.drops.stop();
    await this.shared?.close();
    for (const observation of this.observations) await observation.stop();
    return this.flow.stats();
  }

  /** Goes on serving; `isDraining` is true already. */
  private announce(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, delayMs);
      this.endDelay = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private operatorState(): OperatorState {
    const { config, pool } = this;
    const models = new Set(pool.endpoints.flatMap(modelsOf));
    return {
      flow: this.flow,
      isDraining: this.closed !== undefined,
      endpoints: pool.endpoints.length,
      available: this.flow.figures().pool?.available ?? 0,
      share: this.shared?.share ?? { isMissing: false, problem: undefined },
      register: this.metrics,
      detectors: config.detectors,
      models: [...models],
      adminToken: config.admin.token,
      demand: config.demand,
      guardsMetrics: this.adminServer === undefined && (config.auth.keys.length > 0 || !isLoopback(config.listen.host)),
    };
  }

  private serve(state: RequestState): void {
    if (this.adminServer === undefined && this.isOfOperators(state)) void this.answerOperator(state);
    else this.handler.handle(state);
  }

  private isOfOperators({ path }: RequestState): boolean {
    return path === this.page?.path || isOperatorPath(path, this.config.demand.path);
  }

  /** Never rejects. */
  private async answerOperator(state: RequestState): Promise<void> {
    const { path, req, res } = state;
    try {
      if (hasFigures(path, this.config.demand.path)) checkHost(this.config, req);
      if (path === this.page?.path) await this.page.inspector.node(req, res);
      else await this.operators(path, req, res);
    } catch (error) {
      this.handler.fail(state, error);
    }
  }
}

const namesOfOperators = 'Operators ask by an address, by localhost, or by a name of admin.hosts.';
const unknownHost = new ApiError(421, 'unknown_host', namesOfOperators);

function isOwnHost({ admin, listen }: GatewayConfig, host: string): boolean {
  return ownHosts([(admin.listen ?? listen).host, ...admin.hosts])(host);
}

/** Browsers reach a loopback address, and there figures need no token. @throws ApiError 421 */
function checkHost(config: GatewayConfig, { headers }: GatewayHttpRequest): void {
  const { host } = config.admin.listen ?? config.listen;
  if (isLoopback(host) && !isOwnHost(config, hostOf(headers))) throw unknownHost;
}

function uploadLimits({ timeouts, limits }: GatewayConfig): UploadLimits {
  return { idleMs: timeouts.upload, minBytesPerSecond: limits.minUploadRate };
}

/** Connections are gone before the last of their responses have said so. */
function leasesEnd(flow: FlowController<GatewayRequest>, mostMs: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(deadline);
      stop();
      resolve();
    };
    const look = (): void => {
      if (flow.stats().inFlight === 0) end();
    };
    const stop = flow.on('released', () => setImmediate(look));
    const deadline = setTimeout(end, mostMs);
    look();
  });
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(?:::ffff:)?127\./.test(host);
}

/** Sets limits that a server needs if strangers can reach it. Bodies have timeouts of their own, see `Upload`. */
function forPublic(server: Server, maxConnections: number): void {
  server.maxConnections = maxConnections;
  server.maxHeadersCount = mostHeaders;
  server.headersTimeout = 15_000;
  server.keepAliveTimeout = 75_000; // longer than most load balancers keep theirs
}

function listenOn(server: Server, { host, port }: ListenAddress): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address() as AddressInfo;
      resolve(`http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`);
    });
  });
}

/** The settings that a running server cannot change. */
function needingRestart(before: GatewayConfig, after: GatewayConfig): string[] {
  const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
  return [
    ...(isSame(before.listen, after.listen) ? [] : ['listen']),
    ...(isSame(before.admin.listen, after.admin.listen) ? [] : ['admin.port']),
    ...(before.budgets?.file === after.budgets?.file ? [] : ['budgets.file']),
    ...(isSame(before.inspector, after.inspector) ? [] : ['inspector']),
    ...(isSame(before.openTelemetry, after.openTelemetry) ? [] : ['openTelemetry']),
    ...(before.limits.maxHeaderBytes === after.limits.maxHeaderBytes ? [] : ['limits.maxHeaderBytes']),
    ...(before.limits.maxConnections === after.limits.maxConnections ? [] : ['limits.maxConnections']),
  ];
}
