/**
 * One request's way: who sends it, what it asks for, the gate, a server, and once more where a server refused.
 *
 * Invariant: a request is answered, or its connection broken off, exactly once; and its configuration is the one that
 * was in force when it came to each of these points.
 */
import type { Agent } from 'undici';
import {
  agentIdentity,
  flowKeyFromHeaders,
  headerValue,
  modelNameRewriteHeader,
  objectiveHeader,
} from '../adapters/http/index.js';
import {
  type Classification,
  type FlowControlMiddleware,
  flowControl,
  type NodeRequest,
  onResponseEnd,
} from '../adapters/node/index.js';
import {
  type AdaptiveDetector,
  type EndpointView,
  type FlowController,
  type Lease,
  type SaturationDetector,
  tokenEstimator,
} from '../index.js';
import { ApiError, sendError, sendJson, uploadEnds } from './api-error.js';
import type { BodyReader } from './body-reader.js';
import { type Call, callOf, type GatewayHttpRequest, knownCallOf } from './call.js';
import { allowOrigin, answerOptions } from './cors.js';
import { type ForwardOptions, type ForwardResult, forward } from './forward.js';
import type { GatewayConfig } from './gateway-config.js';
import { gatewayContract } from './gateway-contract.js';
import { type GatewayRequest, gateOf } from './gateway-flow.js';
import type { GatewayLog } from './gateway-log.js';
import { type GenerationBody, GenerationBodyReader, withModel } from './generation-body.js';
import { checkMediaType, encodingOf } from './media-types.js';
import type { GatewayCounters } from './metrics/gateway-counters.js';
import type { KnownModels } from './metrics/known-models.js';
import { ModelsRoute } from './models-route.js';
import { RefusalEvidence } from './refusal-evidence.js';
import { requestLine } from './request-line.js';
import { isSafePath } from './safe-path.js';
import { Senders } from './senders.js';
import type { Upstreams } from './upstreams.js';

/**
 * How much of a body that passes unread arrives while the request waits, and is booked for it: what the client declares
 * costs it nothing.
 */
const readAheadBytes = 65_536;

const estimateTokens = tokenEstimator({ addEstimatedOutputTokens: true });

/** A request with more headers is rejected. */
export const mostHeaders = 200;

/** The parts that a reload replaces. */
interface Setup {
  readonly config: GatewayConfig;
  readonly agent: Agent;
  readonly senders: Senders;
  readonly limit: FlowControlMiddleware;
  /** Those that go by what servers answer. */
  readonly detectors: readonly AdaptiveDetector[];
}

export interface HandlerParts {
  readonly flow: FlowController<GatewayRequest>;
  readonly upstreams: Upstreams;
  readonly bodies: BodyReader;
  readonly log: GatewayLog;
  readonly counters: GatewayCounters;
  readonly knownModels: KnownModels;
  readonly isDraining: () => boolean;
}

export class RequestHandler {
  private readonly upstreams: Upstreams;
  private readonly bodies: BodyReader;
  private readonly log: GatewayLog;
  private readonly counters: GatewayCounters;
  private readonly knownModels: KnownModels;
  private readonly isDraining: () => boolean;
  private readonly gate: ReturnType<typeof gateOf>;
  private readonly models = new ModelsRoute();
  private readonly refusals: RefusalEvidence;
  private setup: Setup;

  constructor(
    { flow, upstreams, bodies, log, counters, knownModels, isDraining }: HandlerParts,
    config: GatewayConfig,
    agent: Agent,
  ) {
    this.upstreams = upstreams;
    this.bodies = bodies;
    this.log = log;
    this.counters = counters;
    this.knownModels = knownModels;
    this.isDraining = isDraining;
    this.refusals = new RefusalEvidence(upstreams.pool);
    this.gate = gateOf(flow);
    flow.on('dropped', ({ request, outcome }) => {
      const call = knownCallOf(request.req);
      if (call === undefined) return;
      if (flow.isShadow && this.upstreams.pool.endpoints.length > 0) {
        call.wouldDrop = outcome;
        return;
      }
      call.drop = outcome;
      call.queuedMs += outcome.queuedMs;
    });
    this.setup = this.setUp(config, agent);
  }

  configure(config: GatewayConfig, agent: Agent): void {
    this.setup = this.setUp(config, agent);
  }

  /** Why a request that waited may not go on: its key was taken out of the file meanwhile. Undefined when it may. */
  revocationOf(req: NodeRequest): string | undefined {
    const sender = knownCallOf(req)?.sender;
    const { senders } = this.setup;
    // A sender that needed no key when the request came has none that could have been taken out.
    if (sender === undefined || !('key' in sender) || senders.has(sender)) return undefined;
    return senders.identify(req.headers)?.tenant === sender.tenant
      ? undefined
      : 'its API key was revoked while it waited';
  }

  /** Never throws. */
  handle(call: Call): void {
    const { req, res, path } = call;
    res.setHeader('x-request-id', call.id);
    try {
      if (req.rawHeaders.length > 2 * mostHeaders) throw tooManyHeaders;
      if (!path.startsWith('/v1/')) throw nothingAt(call);
      onResponseEnd(req, res, (isSent) => {
        // A client that leaves ends its response before flow control hears of it.
        if (isSent) this.ended(call, true);
        else setImmediate(() => this.ended(call, false));
      });
      const { cors } = this.setup.config;
      call.ownsCors = cors !== undefined;
      allowOrigin(cors, req, res);
      const methods = methodsOf(path);
      if (req.method === 'OPTIONS') {
        // Browsers ask without credentials.
        answerOptions(cors, req, res, methods);
        return;
      }
      this.identify(call);
      if (!methods.split(', ').includes(req.method ?? '')) throw notAllowed(call, methods);
      if (req.method === 'POST') this.enter(call);
      else this.answerModels(call).catch((error: unknown) => this.fail(call, error));
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
    this.log('error', 'internal', {
      id: call.id,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    if (res.headersSent) res.destroy();
    else sendError(res, new ApiError(500, 'internal', 'The gateway failed.'));
  }

  private makeLimit({ contract, bandHeadroom }: GatewayConfig): FlowControlMiddleware {
    const hasEndpoints = (): boolean => this.upstreams.pool.endpoints.length > 0;
    return flowControl<GatewayHttpRequest>(this.gate, {
      contract: gatewayContract(contract, hasEndpoints),
      body: 'openai',
      bandHeadroom,
      classify: (req) => {
        const call = callOf(req);
        call.classification ??= this.classify(call);
        return call.classification;
      },
      byteSize: (req) =>
        callOf(req).bytes?.length ?? Math.min(Number(req.headers['content-length'] ?? readAheadBytes), readAheadBytes),
    });
  }

  private identify(call: Call): void {
    call.sender = this.setup.senders.identify(call.req.headers);
    if (call.sender !== undefined) {
      const isAnonymous = this.setup.senders.isAnonymous(call.sender);
      call.share = isAnonymous ? `address ${call.req.socket.remoteAddress}` : `tenant ${call.sender.tenant}`;
      if (call.sender.trusted) call.modelRewrite = headerValue(call.req.headers, modelNameRewriteHeader);
      return;
    }
    throw new ApiError(401, 'invalid_api_key', 'A valid API key is required.', {
      'www-authenticate': 'Bearer',
      connection: 'close',
    });
  }

  /**
   * JSON is received before the gate, so that no upload holds a seat; other bodies are let through when the seat is
   * there.
   */
  private enter(call: Call): void {
    if (!isSafePath(call.path)) throw new ApiError(400, 'invalid_path', 'The path is not one that can be passed on.');
    this.bodies.checkDeclared(call.req);
    checkMediaType(call);
    if (!call.isJson) {
      this.knock(call);
      return;
    }
    if (call.awaitsContinue) call.res.writeContinue();
    this.receive(call);
  }

  private receive(call: Call): void {
    const { share } = call;
    const encoding = encodingOf(call);
    const reader = new GenerationBodyReader();
    const look = (chunk: Buffer): void => reader.push(chunk);
    const fail = (error: unknown): void => this.fail(call, error);
    const done = (bytes: Buffer): void => {
      try {
        this.received(call, bytes, reader.end(bytes));
      } catch (error) {
        fail(error);
      }
    };
    const from = { sender: share, mostBytes: undefined, fail };
    if (encoding === undefined) this.bodies.receive(call.req, { ...from, look, done });
    else {
      const unpack = (packed: Buffer): unknown => this.bodies.unpack(packed, encoding, share, look).then(done, fail);
      this.bodies.receive(call.req, { ...from, look: undefined, done: unpack });
    }
  }

  /** @throws ApiError 404 for a model that no server has */
  private received(call: Call, bytes: Buffer, body: GenerationBody): void {
    call.body = body;
    call.model = body.model;
    const { aliases } = this.setup.config.models;
    const named = call.modelRewrite ?? call.model;
    call.targetModel = named !== undefined && Object.hasOwn(aliases, named) ? aliases[named] : named;
    call.bytes =
      call.targetModel === undefined || call.targetModel === call.model
        ? bytes
        : withModel(bytes, body, call.targetModel);
    if (call.targetModel !== undefined && !this.upstreams.serves(call.targetModel)) {
      throw new ApiError(404, 'model_not_found', `The model ${JSON.stringify(named?.slice(0, 100))} does not exist.`);
    }
    this.knock(call);
  }

  /** Also a second time, when a server has refused. */
  private knock(call: Call): void {
    if (call.req.flow !== undefined) delete call.req.flow;
    this.setup.limit(call.req, call.res, (error) => {
      if (error === undefined) this.dispatched(call);
      else this.fail(call, error);
    });
  }

  private classify({ sender, req, body }: Call): Classification {
    const { tenant = 'default-flow', priority = 0, trusted = false } = sender ?? {};
    const named = flowKeyFromHeaders(req.headers, {
      trust: trusted,
      defaultFairnessId: tenant,
      objectives: this.setup.config.objectives,
    });
    const { endpointSubset, sloTtftMs, maxWaitMs, fairnessId } = named;
    const tokens = body && estimateTokens(body);
    const sessionId = agentIdentity(req.headers);
    const affinityKey = sessionId ?? body?.prefixKey;
    const hasObjective = trusted && headerValue(req.headers, objectiveHeader) !== undefined;
    return {
      fairnessId,
      priority: hasObjective ? named.priority : priority,
      sloTtftMs,
      maxWaitMs,
      endpointSubset,
      tokens,
      affinityKey,
      sessionId,
    };
  }

  private dispatched(call: Call): void {
    const { config, detectors } = this.setup;
    const { lease } = call.req.flow ?? {};
    const { endpoint } = lease ?? {};
    try {
      if (lease === undefined || endpoint === undefined) throw new Error('dispatched without an endpoint');
      call.attempts.push(endpoint.id);
      this.counters.sentTo(endpoint.id);
      call.queuedMs += call.req.flow?.queuedMs ?? 0;
      const { enabled, max, maxBodyBytes, avoidForMs } = config.retry;
      const mayRetry =
        enabled && call.attempts.length <= max && (call.bytes?.length ?? Number.POSITIVE_INFINITY) <= maxBodyBytes;
      const attempt: ForwardOptions = {
        agent: this.setup.agent,
        bodies: this.bodies,
        config,
        detectors,
        upstream: this.upstreams.configOf(endpoint),
        ownsKeys: this.setup.senders.ownsKeys,
        avoid: (isCertain, forMs = avoidForMs) => this.refusals.refused(endpoint, forMs, isCertain),
        mayRetry,
        firstTokenMs: mayRetry && this.upstreams.hasOther(call) ? firstTokenMsOf(call, config.timeouts) : undefined,
        isRetry: call.attempts.length > 1,
        counters: this.counters,
        closesConnection: this.isDraining(),
      };
      forward(call, lease, attempt, (result) => this.forwarded(call, lease, endpoint, result));
    } catch (error) {
      this.fail(call, error);
    }
  }

  private forwarded(call: Call, lease: Lease, endpoint: EndpointView, result: ForwardResult): void {
    if (result.type === 'answered') return;
    if (result.type === 'failed') {
      this.fail(call, result.error);
      return;
    }
    this.log('warn', 'retry', { id: call.id, endpoint: endpoint.id, code: result.error.code });
    this.counters.retried(endpoint.id);
    call.failure = undefined;
    if (lease.isPutOff) call.putOff = lease;
    else lease.release();
    this.knock(call);
  }

  private async answerModels({ path, res }: Call): Promise<void> {
    const upstreams = this.upstreams.pool.endpoints.map((endpoint) => this.upstreams.configOf(endpoint));
    const wanted = decoded(path.slice('/v1/models/'.length));
    const data = await this.models.list(
      this.setup.config.models,
      upstreams,
      (model) => this.upstreams.serves(model),
      this.setup.agent,
    );
    const one = data.find(({ id }) => id === wanted);
    if (wanted === '') sendJson(res, 200, { object: 'list', data });
    else if (one !== undefined) sendJson(res, 200, one);
    else
      throw new ApiError(404, 'model_not_found', `The model ${JSON.stringify(wanted.slice(0, 100))} does not exist.`);
  }

  private ended(call: Call, isSent: boolean): void {
    if (call.isServed && call.model !== undefined) this.knownModels.served(call.model, call.targetModel);
    this.counters.ended(call, isSent, this.isDraining());
    const { requests, tenants } = this.setup.config.log;
    if (!requests) return;
    const { level, fields } = requestLine(call, isSent, tenants);
    this.log(level, 'request', fields);
  }

  private setUp(config: GatewayConfig, agent: Agent): Setup {
    const detectors = config.detectors.filter(isAdaptive);
    return { config, agent, senders: new Senders(config.auth), limit: this.makeLimit(config), detectors };
  }
}

function isAdaptive(detector: SaturationDetector): detector is AdaptiveDetector {
  return 'observe' in detector && typeof detector.observe === 'function';
}

/** Node leaves those beyond the limit out and says nothing: the request would be served without its last headers. */
const tooManyHeaders = new ApiError(
  431,
  'too_many_headers',
  `A request may have at most ${mostHeaders} headers.`,
  uploadEnds,
);

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ApiError(400, 'invalid_path', 'The path is not valid percent-encoding.');
  }
}

export function nothingAt({ req, path }: Call): ApiError {
  return new ApiError(404, 'not_found', `There is nothing at ${req.method} ${path.slice(0, 200)}.`);
}

/** The methods of a path of clients. */
function methodsOf(path: string): string {
  return path === '/v1/models' || path.startsWith('/v1/models/') ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS';
}

function notAllowed({ req, path }: Call, methods: string): ApiError {
  const message = `${req.method} is not possible at ${path.slice(0, 200)}, which takes ${methods}.`;
  return new ApiError(405, 'method_not_allowed', message, { allow: methods });
}

/** Only streams have a first token: other answers come whole. */
function firstTokenMsOf(
  { body, targetModel }: Call,
  { firstTokenMs, firstTokenMsByModel }: GatewayConfig['timeouts'],
): number | undefined {
  if (body?.isStream !== true) return undefined;
  const isNamed = targetModel !== undefined && Object.hasOwn(firstTokenMsByModel, targetModel);
  return isNamed ? firstTokenMsByModel[targetModel] : firstTokenMs;
}
