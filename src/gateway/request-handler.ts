/**
 * One request's way: who sends it, what it asks for, the gate, a server, and once more where a server refused.
 *
 * Invariant: a request is answered, or its connection broken off, exactly once; and its configuration is the one that was in force when
 * it came to each of these points.
 */
import type { Agent } from 'undici';
import { agentIdentity, flowKeyFromHeaders, headerValue, modelNameRewriteHeader, objectiveHeader } from '../adapters/http/index.js';
import { type Classification, type FlowControlMiddleware, flowControl, type NodeRequest, onResponseEnd } from '../adapters/node/index.js';
import { type FlowController, tokenEstimator } from '../index.js';
import { ApiError, sendError, sendJson } from './api-error.js';
import type { BodyReader } from './body-reader.js';
import type { Call, GatewayHttpRequest } from './call.js';
import { forward } from './forward.js';
import type { GatewayConfig } from './gateway-config.js';
import { gatewayContract } from './gateway-contract.js';
import { type GatewayRequest, gateOf } from './gateway-flow.js';
import type { GatewayLog } from './gateway-log.js';
import { readGenerationBody } from './generation-body.js';
import { listModels } from './models-route.js';
import { Senders } from './senders.js';
import type { Upstreams } from './upstreams.js';

/** What a body of unknown length is booked as. */
const unknownBodyBytes = 65_536;

const estimateTokens = tokenEstimator({ addEstimatedOutputTokens: true });

/** What a reload replaces. */
interface Setup {
  readonly config: GatewayConfig;
  readonly agent: Agent;
  readonly senders: Senders;
  readonly limit: FlowControlMiddleware<GatewayHttpRequest>;
}

export interface HandlerParts {
  readonly flow: FlowController<GatewayRequest>;
  readonly upstreams: Upstreams;
  readonly bodies: BodyReader;
  readonly log: GatewayLog;
  readonly isDraining: () => boolean;
}

export class RequestHandler {
  private readonly upstreams: Upstreams;
  private readonly bodies: BodyReader;
  private readonly log: GatewayLog;
  private readonly isDraining: () => boolean;
  private readonly calls = new WeakMap<NodeRequest, Call>();
  private readonly gate: ReturnType<typeof gateOf>;
  private setup: Setup;

  constructor({ flow, upstreams, bodies, log, isDraining }: HandlerParts, config: GatewayConfig, agent: Agent) {
    this.upstreams = upstreams;
    this.bodies = bodies;
    this.log = log;
    this.isDraining = isDraining;
    this.gate = gateOf(flow, (req) => this.callOf(req));
    this.setup = this.setUp(config, agent);
  }

  configure(config: GatewayConfig, agent: Agent): void {
    this.setup = this.setUp(config, agent);
  }

  /** Never rejects. */
  async handle(call: Call): Promise<void> {
    const { req, res, path } = call;
    this.calls.set(req, call);
    res.setHeader('x-request-id', call.id);
    try {
      if (!path.startsWith('/v1/') || path.includes('/..')) throw nothingAt(call);
      onResponseEnd(req, res, (isSent) => this.logRequest(call, isSent));
      this.identify(call);
      if (req.method === 'GET' && (path === '/v1/models' || path.startsWith('/v1/models/'))) await this.answerModels(call);
      else if (req.method === 'POST') await this.enter(call);
      else throw nothingAt(call);
    } catch (error) {
      this.fail(call, error);
    }
  }

  fail(call: Call, error: unknown): void {
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

  private makeLimit(contract: GatewayConfig['contract']): FlowControlMiddleware<GatewayHttpRequest> {
    const hasEndpoints = (): boolean => this.upstreams.pool.endpoints.length > 0;
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

  private callOf(req: NodeRequest): Call {
    const call = this.calls.get(req);
    if (call === undefined) throw new Error('a request that this gateway has not seen');
    return call;
  }

  private identify(call: Call): void {
    call.sender = this.setup.senders.identify(call.req.headers);
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
    this.setup.limit(call.req, call.res, (error) => {
      if (error === undefined) void this.dispatched(call);
      else this.fail(call, error);
    });
  }

  private async readBody(call: Call): Promise<void> {
    const bytes = await this.bodies.read(call.req);
    call.body = readGenerationBody(bytes);
    call.model = call.body.model;
    const { aliases } = this.setup.config.models;
    const named = call.modelRewrite ?? call.model;
    call.targetModel = named !== undefined && Object.hasOwn(aliases, named) ? aliases[named] : named;
    call.bytes = call.targetModel === undefined || call.targetModel === call.model ? bytes : call.body.withModel(call.targetModel);
    if (call.targetModel === undefined || this.upstreams.serves(call.targetModel)) return;
    throw new ApiError(404, 'model_not_found', `The model ${JSON.stringify(named?.slice(0, 100))} does not exist.`);
  }

  private classify({ sender, req, body }: Call): Classification {
    const { tenant = 'default-flow', priority = 0, trusted = false } = sender ?? {};
    const named = flowKeyFromHeaders(req.headers, { trust: trusted, defaultFairnessId: tenant, objectives: this.setup.config.objectives });
    const { endpointSubset, sloTtftMs, fairnessId } = named;
    const tokens = body && estimateTokens(body);
    const affinityKey = agentIdentity(req.headers) ?? body?.prefixKey;
    const hasObjective = trusted && headerValue(req.headers, objectiveHeader) !== undefined;
    return { fairnessId, priority: hasObjective ? named.priority : priority, sloTtftMs, endpointSubset, tokens, affinityKey };
  }

  private async dispatched(call: Call): Promise<void> {
    const { config } = this.setup;
    const { lease } = call.req.flow ?? {};
    const { endpoint } = lease ?? {};
    try {
      if (lease === undefined || endpoint === undefined) throw new Error('dispatched without an endpoint');
      call.attempts.push(endpoint.id);
      if (call.isJson && call.bytes === undefined) await this.readBody(call);
      const { enabled, maxBodyBytes, avoidForMs } = config.retry;
      const result = await forward(call, lease, {
        agent: this.setup.agent,
        bodies: this.bodies,
        config,
        upstream: this.upstreams.configOf(endpoint),
        ownsKeys: this.setup.senders.ownsKeys,
        avoid: () => this.upstreams.pool.markOverloaded(endpoint, avoidForMs),
        mayRetry: enabled && call.attempts.length === 1 && (call.bytes?.length ?? Number.POSITIVE_INFINITY) <= maxBodyBytes,
        closesConnection: this.isDraining(),
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
    const upstreams = this.upstreams.pool.endpoints.map((endpoint) => this.upstreams.configOf(endpoint));
    const data = await listModels(this.setup.config.models, upstreams, this.setup.agent);
    const wanted = decodeURIComponent(path.slice('/v1/models/'.length));
    const one = data.find(({ id }) => id === wanted);
    if (wanted === '') sendJson(res, 200, { object: 'list', data });
    else if (one !== undefined) sendJson(res, 200, one);
    else throw new ApiError(404, 'model_not_found', `The model ${JSON.stringify(wanted.slice(0, 100))} does not exist.`);
  }

  private logRequest(call: Call, isSent: boolean): void {
    if (!this.setup.config.log.requests) return;
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

  private setUp(config: GatewayConfig, agent: Agent): Setup {
    return { config, agent, senders: new Senders(config.auth), limit: this.makeLimit(config.contract) };
  }
}

export function nothingAt({ req, path }: Call): ApiError {
  return new ApiError(404, 'not_found', `There is nothing at ${req.method} ${path.slice(0, 200)}.`);
}
