/**
 * A reverse proxy with flow control in front of servers that speak OpenAI's interface.
 *
 *     request ─► who is it ─► (its model) ─► the gate ─► forward ─► answer
 *                 401           400 413       429 503     502 504
 *                                              ▲  │ refused: once more, elsewhere
 *                                              └──┘
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Agent } from 'undici';
import { type Scraper, scrape } from '../endpoints/index.js';
import { agentIdentity, flowKeyFromHeaders, headerValue, modelNameRewriteHeader, objectiveHeader } from '../http/index.js';
import { type EndpointPool, type FlowController, type FlowStats, tokenEstimator } from '../index.js';
import { type Classification, type FlowControlMiddleware, flowControl, type NodeRequest, onResponseEnd } from '../node/index.js';
import { prometheusMetrics } from '../prometheus/index.js';
import { ApiError, sendError, sendJson } from './api-error.js';
import { BodyReader } from './body-reader.js';
import { Call, type GatewayHttpRequest } from './call.js';
import { forward } from './forward.js';
import type { GatewayConfig, ListenAddress } from './gateway-config.js';
import { gatewayContract } from './gateway-contract.js';
import { createFlow, flowOptions, type GatewayRequest, gateOf } from './gateway-flow.js';
import type { GatewayLog } from './gateway-log.js';
import { readGenerationBody } from './generation-body.js';
import { watchHealth } from './health.js';
import { listModels } from './models-route.js';
import { type MetricsSource, type OperatorRoutes, operatorRoutes } from './operator-routes.js';
import { loadPromClient, loadUndici } from './optional-peers.js';
import { Senders } from './senders.js';
import { listed, Upstreams } from './upstreams.js';

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
  /**
   * Puts another configuration into force: limits, policies, servers, keys. Nothing that waits or runs is dropped.
   * @throws FlowConfigError, and then nothing has changed
   * @returns what takes effect only after a restart
   */
  reconfigure(config: GatewayConfig): readonly string[];
  /**
   * Accepts nothing more, goes on dispatching what waits, drops the rest with 503, lets answers end, and breaks off those that do not:
   * each in the time that the configuration gives it. Resolves when all is over; idempotent.
   */
  close(): Promise<FlowStats>;
}

const estimateTokens = tokenEstimator({ addEstimatedOutputTokens: true });

/**
 * Starts a gateway. Resolves when it listens.
 * @throws (rejects) FlowConfigError when undici is not installed; what `listen` throws when the address is taken
 * @example
 * const gateway = await createGateway(loadGatewayConfig(await readFile('gateway.yaml', 'utf8')));
 * process.once('SIGTERM', () => gateway.close());
 */
export async function createGateway(config: GatewayConfig, { log = () => {} }: GatewayOptions = {}): Promise<Gateway> {
  const [undici, promClient] = await Promise.all([loadUndici(), loadPromClient()]);
  const makeAgent = (timeouts: GatewayConfig['timeouts']): Agent => new undici.Agent({ connect: { timeout: timeouts.connectMs } });
  const running = new RunningGateway(config, log, makeAgent, promClient && new promClient.Registry());
  await running.listen();
  return running;
}

/** What a body of unknown length is booked as. */
const unknownBodyBytes = 65_536;

type Registry = MetricsSource & Parameters<typeof prometheusMetrics>[1]['register'];

class RunningGateway implements Gateway {
  url = '';
  adminUrl = '';
  readonly flow: FlowController<GatewayRequest>;
  private readonly upstreams = new Upstreams();
  private readonly bodies: BodyReader;
  private readonly calls = new WeakMap<NodeRequest, Call>();
  private readonly log: GatewayLog;
  private readonly makeAgent: (timeouts: GatewayConfig['timeouts']) => Agent;
  private readonly register: Registry | undefined;
  private readonly gate: ReturnType<typeof gateOf>;
  private readonly operators: OperatorRoutes;
  private readonly server: Server;
  private readonly adminServer: Server | undefined;
  private config: GatewayConfig;
  private agent: Agent;
  private senders: Senders;
  private limit: FlowControlMiddleware<GatewayHttpRequest>;
  private watches: readonly (() => void)[];
  private closed: Promise<FlowStats> | undefined = undefined;

  constructor(config: GatewayConfig, log: GatewayLog, makeAgent: RunningGateway['makeAgent'], register: Registry | undefined) {
    this.config = config;
    this.log = log;
    this.makeAgent = makeAgent;
    this.register = register;
    this.agent = makeAgent(config.timeouts);
    this.senders = new Senders(config.auth);
    this.bodies = new BodyReader(config.limits);
    this.flow = createFlow(config, this.upstreams);
    this.gate = gateOf(this.flow, (req) => this.callOf(req));
    this.limit = this.makeLimit();
    this.upstreams.apply(config.upstreams);
    this.operators = operatorRoutes(() => this.operatorState(), this.bodies);
    this.watches = this.watch();
    this.flow.on('pluginError', ({ kind, type, error }) => log('error', 'plugin-error', { kind, type, error: String(error) }));
    if (register !== undefined) {
      const { detectors } = config;
      const modelName = ({ askedModel = '' }: GatewayRequest): string => askedModel;
      prometheusMetrics(this.flow, { register, detectors, modelName, targetModelName: ({ model = '' }) => model });
    }
    const serve = (req: GatewayHttpRequest, res: ServerResponse): void => void this.handle(new Call(req, res));
    this.server = createServer({ maxHeaderSize: config.limits.maxHeaderBytes }, serve);
    this.server.on('checkContinue', serve);
    this.server.keepAliveTimeout = 75_000; // longer than most load balancers keep theirs
    if (config.admin.listen === undefined) return;
    this.adminServer = createServer((req, res) => void this.handleOperator(new Call(req, res)));
  }

  get pool(): EndpointPool {
    return this.upstreams.pool;
  }

  async listen(): Promise<void> {
    this.url = await listenOn(this.server, this.config.listen);
    const { listen } = this.config.admin;
    this.adminUrl = listen && this.adminServer ? await listenOn(this.adminServer, listen) : this.url;
  }

  reconfigure(config: GatewayConfig): readonly string[] {
    const before = this.config;
    const next = { ...config };
    const hadModels = before.upstreams.some(({ labels }) => labels.model !== undefined);
    const hasModels = config.upstreams.some(({ labels }) => labels.model !== undefined);
    if (config.flowFingerprint !== before.flowFingerprint || hadModels !== hasModels) {
      this.flow.reconfigure({ endpointFilters: undefined, holBlocking: undefined, ...flowOptions(config) });
    } else {
      // The same plugins, with what they have learnt.
      Object.assign(next, { flow: before.flow, detectors: before.detectors });
    }
    this.config = next;
    this.senders = new Senders(config.auth);
    this.bodies.configure(config.limits);
    this.limit = this.makeLimit();
    this.upstreams.apply(config.upstreams);
    for (const stop of this.watches) stop();
    this.watches = this.watch();
    if (config.timeouts.connectMs !== before.timeouts.connectMs) {
      void this.agent.close();
      this.agent = this.makeAgent(config.timeouts);
    }
    return needingRestart(before, config);
  }

  close(): Promise<FlowStats> {
    this.closed ??= this.shutDown();
    return this.closed;
  }

  private async shutDown(): Promise<FlowStats> {
    const { waitingMs, streamsMs } = this.config.drain;
    const isGone = new Promise<void>((resolve) => this.server.close(() => resolve()));
    // Connections that fall idle now are of no more use.
    const sweep = setInterval(() => this.server.closeIdleConnections(), 20);
    await this.flow.close({ drainMs: waitingMs });
    const deadline = setTimeout(() => {
      this.log('warn', 'streams-broken-off', { inFlight: this.flow.stats().inFlight });
      this.server.closeAllConnections();
    }, streamsMs);
    await isGone;
    clearTimeout(deadline);
    clearInterval(sweep);
    for (const stop of this.watches) stop();
    this.adminServer?.close();
    this.adminServer?.closeAllConnections();
    await this.agent.destroy();
    return this.flow.stats();
  }

  private makeLimit(): FlowControlMiddleware<GatewayHttpRequest> {
    const { contract } = this.config;
    const hasEndpoints = (): boolean => this.pool.endpoints.length > 0;
    return flowControl<GatewayHttpRequest>(this.gate, {
      contract: gatewayContract(contract, hasEndpoints),
      body: 'openai',
      classify: (req) => {
        const call = this.callOf(req);
        call.classification ??= this.classify(call);
        return call.classification;
      },
      byteSize: (req) => this.callOf(req).bytes?.length ?? Number(req.headers['content-length'] ?? unknownBodyBytes),
    });
  }

  private watch(): readonly (() => void)[] {
    const { upstreams, log, config } = this;
    const stopHealth = watchHealth(upstreams, config.health, log);
    if (config.scrape === undefined) return [stopHealth];
    const { path, ...settings } = config.scrape;
    const scraper: Scraper = scrape(upstreams.pool, {
      ...settings,
      urlOf: (endpoint) => {
        const { profile, url, labels } = upstreams.configOf(endpoint);
        return profile === 'none' ? undefined : (labels.metricsUrl ?? url + path);
      },
      profile: (endpoint) => {
        const { profile } = upstreams.configOf(endpoint);
        return profile === 'none' ? undefined : profile;
      },
      onWarning: ({ message }) => log('warn', 'scrape-setting', { message }),
    });
    scraper.on('failed', ({ endpoint, error }) =>
      log('warn', 'scrape-failed', { upstream: endpoint.id, code: error.code, error: error.message }),
    );
    scraper.on('recovered', ({ endpoint, failedForMs }) => {
      log('info', 'scrape-recovered', { upstream: endpoint.id, failedForMs: Math.round(failedForMs) });
    });
    return [stopHealth, () => scraper.stop()];
  }

  private operatorState(): ReturnType<Parameters<typeof operatorRoutes>[0]> {
    const { config, pool } = this;
    const models = new Set(pool.endpoints.flatMap(({ labels }) => (labels.model === undefined ? [] : listed(labels.model))));
    return {
      isDraining: this.closed !== undefined,
      endpoints: pool.endpoints.length,
      register: this.register,
      detectors: config.detectors,
      models: [...models],
      adminToken: config.admin.token,
    };
  }

  private callOf(req: NodeRequest): Call {
    const call = this.calls.get(req);
    if (call === undefined) throw new Error('a request that this gateway has not seen');
    return call;
  }

  private async handleOperator(call: Call): Promise<void> {
    try {
      if (!(await this.operators(call.path, call.req, call.res))) throw nothingAt(call);
    } catch (error) {
      this.fail(call, error);
    }
  }

  private async handle(call: Call): Promise<void> {
    const { req, res, path } = call;
    this.calls.set(req, call);
    res.setHeader('x-request-id', call.id);
    try {
      if (this.adminServer === undefined && (await this.operators(path, req, res))) return;
      if (!path.startsWith('/v1/')) throw nothingAt(call);
      onResponseEnd(req, res, (isSent) => this.logRequest(call, isSent));
      this.identify(call);
      if (req.method === 'GET' && (path === '/v1/models' || path.startsWith('/v1/models/'))) await this.answerModels(call);
      else if (req.method === 'POST') await this.enter(call);
      else throw nothingAt(call);
    } catch (error) {
      this.fail(call, error);
    }
  }

  private identify(call: Call): void {
    call.sender = this.senders.identify(call.req.headers);
    if (call.sender !== undefined) {
      if (call.sender.trusted) call.modelRewrite = headerValue(call.req.headers, modelNameRewriteHeader);
      return;
    }
    throw new ApiError(401, 'invalid_api_key', 'A valid API key is required.', { 'www-authenticate': 'Bearer', connection: 'close' });
  }

  /** To the gate; a client that asks for permission to upload gets it with the seat, unless its model decides which seat. */
  private async enter(call: Call): Promise<void> {
    this.bodies.checkDeclared(call.req);
    if (call.isJson && (!call.awaitsContinue || this.upstreams.routesByModel)) {
      if (call.awaitsContinue) {
        delete call.req.headers.expect;
        call.res.writeContinue();
      }
      await this.readBody(call);
    }
    this.knock(call);
  }

  /** Also a second time, when a server has refused. */
  private knock(call: Call): void {
    delete call.req.flow;
    this.limit(call.req, call.res, (error) => {
      if (error === undefined) void this.dispatched(call);
      else this.fail(call, error);
    });
  }

  private async readBody(call: Call): Promise<void> {
    const bytes = await this.bodies.read(call.req);
    call.body = readGenerationBody(bytes);
    call.model = call.body.model;
    const { aliases } = this.config.models;
    const named = call.modelRewrite ?? call.model;
    call.targetModel = named !== undefined && Object.hasOwn(aliases, named) ? aliases[named] : named;
    call.bytes = call.targetModel === undefined || call.targetModel === call.model ? bytes : call.body.withModel(call.targetModel);
    if (call.targetModel === undefined || this.upstreams.serves(call.targetModel)) return;
    throw new ApiError(404, 'model_not_found', `The model ${JSON.stringify(named?.slice(0, 100))} does not exist.`);
  }

  private classify({ sender, req, body }: Call): Classification {
    const { tenant = 'default-flow', priority = 0, trusted = false } = sender ?? {};
    const named = flowKeyFromHeaders(req.headers, { trust: trusted, defaultFairnessId: tenant, objectives: this.config.objectives });
    const { endpointSubset, sloTtftMs, fairnessId } = named;
    const tokens = body && estimateTokens(body);
    const affinityKey = agentIdentity(req.headers) ?? body?.prefixKey;
    const hasObjective = trusted && headerValue(req.headers, objectiveHeader) !== undefined;
    return { fairnessId, priority: hasObjective ? named.priority : priority, sloTtftMs, endpointSubset, tokens, affinityKey };
  }

  private async dispatched(call: Call): Promise<void> {
    const { config } = this;
    const { lease } = call.req.flow ?? {};
    const { endpoint } = lease ?? {};
    try {
      if (lease === undefined || endpoint === undefined) throw new Error('dispatched without an endpoint');
      call.attempts.push(endpoint.id);
      if (call.isJson && call.bytes === undefined) await this.readBody(call);
      const { enabled, maxBodyBytes, avoidForMs } = config.retry;
      const result = await forward(call, lease, {
        agent: this.agent,
        bodies: this.bodies,
        config,
        upstream: this.upstreams.configOf(endpoint),
        ownsKeys: this.senders.ownsKeys,
        avoid: () => this.pool.markOverloaded(endpoint, avoidForMs),
        mayRetry: enabled && call.attempts.length === 1 && (call.bytes?.length ?? Number.POSITIVE_INFINITY) <= maxBodyBytes,
        closesConnection: this.closed !== undefined,
      });
      if (result.type === 'answered') return;
      this.log('warn', 'retry', { id: call.id, upstream: endpoint.id, code: result.error.code });
      lease.release();
      this.knock(call);
    } catch (error) {
      this.fail(call, error);
    }
  }

  private async answerModels({ path, res }: Call): Promise<void> {
    const upstreams = this.pool.endpoints.map((endpoint) => this.upstreams.configOf(endpoint));
    const data = await listModels(this.config.models, upstreams, this.agent);
    const wanted = decodeURIComponent(path.slice('/v1/models/'.length));
    const one = data.find(({ id }) => id === wanted);
    if (wanted === '') sendJson(res, 200, { object: 'list', data });
    else if (one !== undefined) sendJson(res, 200, one);
    else throw new ApiError(404, 'model_not_found', `The model ${JSON.stringify(wanted.slice(0, 100))} does not exist.`);
  }

  private fail(call: Call, error: unknown): void {
    const { req, res } = call;
    if (error instanceof ApiError) {
      call.failure ??= error.code;
      sendError(res, error);
      return;
    }
    if (req.destroyed && !req.complete) return; // the client left while it was sending
    call.failure = 'internal';
    this.log('error', 'internal', { id: call.id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    if (res.headersSent) res.destroy();
    else sendError(res, new ApiError(500, 'internal', 'The gateway failed.'));
  }

  private logRequest(call: Call, isSent: boolean): void {
    if (!this.config.log.requests) return;
    const { id, req, res, path, sender, model, attempts, failure } = call;
    this.log(failure === undefined ? 'info' : 'warn', 'request', {
      id,
      method: req.method,
      path,
      tenant: sender?.tenant,
      priority: req.flow?.lease.priority,
      model: model?.slice(0, 100),
      status: res.headersSent ? res.statusCode : undefined,
      upstream: attempts.join('>') || undefined,
      queuedMs: req.flow && Math.round(req.flow.queuedMs),
      promptTokens: req.flow?.lease.usage.promptTokens || undefined,
      completionTokens: req.flow?.lease.usage.completionTokens || undefined,
      durationMs: Math.round(performance.now() - call.startedAtMs),
      ended: isSent ? undefined : res.headersSent ? 'cut-short' : 'client-left',
      failure,
    });
  }
}

function nothingAt({ req, path }: Call): ApiError {
  return new ApiError(404, 'not_found', `There is nothing at ${req.method} ${path.slice(0, 200)}.`);
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

/** What a running server cannot change. */
function needingRestart(before: GatewayConfig, after: GatewayConfig): string[] {
  const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
  return [
    ...(isSame(before.listen, after.listen) ? [] : ['listen']),
    ...(isSame(before.admin.listen, after.admin.listen) ? [] : ['admin.port']),
    ...(before.limits.maxHeaderBytes === after.limits.maxHeaderBytes ? [] : ['limits.maxHeaderBytes']),
  ];
}
