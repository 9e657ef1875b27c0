/**
 * The steps of one request: who sends it, what it asks for, the gate, a server, another attempt if a server refused.
 * Invariant: a request is answered, or its connection broken off, exactly once; and its configuration is the one that
 * was in force when it came to each of these points.
 * Longer than most files, because these steps are one way, and each leads to the next.
 */
import type { Agent } from 'undici';
import { HttpFlowControl, type Verdict } from '../../adapters/http/http-flow-control.js';
import {
  agentSession,
  droppedReasonHeader,
  families,
  flowKeyFromHeaders,
  headerValue,
  modelNameRewriteHeader,
  priorityHeaders,
  toHttpResponse,
} from '../../adapters/http/index.js';
import type { Classification, NodeRequest } from '../../adapters/node/index.js';
import { firstTokenMsOf } from '../../base/stream/first-token.js';
import type { Lease, SaturationDetector } from '../../index.js';
import { type EndpointView, explainWait, type FlowController } from '../../index.js';
import type { AdaptiveDetector } from '../../types/index.js';
import type { BodyReader } from '../bodies/body-reader.js';
import { type GenerationBody, GenerationBodyReader, lookedThrough } from '../bodies/generation-body.js';
import { checkMediaType, encodingOf } from '../bodies/media-types.js';
import { Attempt, type AttemptOptions, type AttemptResult } from '../forwarding/attempt.js';
import { type RefusalTracker, refusalTracker, type Upstreams } from '../forwarding/upstreams.js';
import { type GatewayRequest, gateOf } from '../gateway-flow.js';
import type { GatewayCounters } from '../metrics/gateway-counters.js';
import type { KnownModels } from '../metrics/known-models.js';
import { cutterOf, knownStateOf, type RequestState } from '../request-state.js';
import type { GatewayConfig, SenderConfig } from '../settings/gateway-config.js';
import { ApiError, sendError, sendJson, uploadEnds } from '../shared/api-error.js';
import { allowOrigin, answerOptions } from '../shared/cors.js';
import type { GatewayLog } from '../shared/gateway-log.js';
import { mayHave } from '../shared/model-label.js';
import { isSafePath } from '../shared/safe-path.js';
import { budgetList } from '../shared/tenant-budgets.js';
import { PromptSizes } from '../sizes/prompt-sizes.js';
import { ModelsRoute } from './models-route.js';
import { requestLogLine } from './request-log-line.js';
import { Senders } from './senders.js';
import { TurnState } from './turn-state.js';

/** A request with more headers is rejected. */
export const mostHeaders = 200;

/** The parts that a reload replaces. */
interface Setup {
  readonly config: GatewayConfig;
  readonly agent: Agent;
  readonly senders: Senders;
  readonly control: HttpFlowControl<RequestState, NodeRequest>;
  readonly rankFields: readonly string[];
  /** Detectors that learn from the answers of servers. */
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
  readonly parts: HandlerParts;
  private readonly gate: ReturnType<typeof gateOf>;
  private readonly agents = families({ onCycle: ({ tenant: _, ...told }) => this.parts.log('warn', 'cycle', told) });
  private readonly models = new ModelsRoute();
  private readonly sizes = new PromptSizes();
  readonly refused: RefusalTracker;
  setup: Readonly<Setup>;

  constructor(parts: HandlerParts, config: GatewayConfig, agent: Agent) {
    const { flow, upstreams } = parts;
    this.parts = parts;
    this.refused = refusalTracker(upstreams.pool);
    this.gate = gateOf(flow);
    flow.on('dropped', ({ request, outcome }) => {
      const state = knownStateOf(request.req);
      if (state === undefined) return;
      if (flow.isShadow && upstreams.pool.endpoints.length > 0) state.wouldDrop = outcome;
      else {
        state.drop = outcome;
        state.queuedMs += outcome.queuedMs;
      }
    });
    this.setup = this.setUp(config, agent);
  }

  configure(config: GatewayConfig, agent: Agent): void {
    this.setup = this.setUp(config, agent);
  }

  /** Why a request that waited may not go on: its key was taken out of the file meanwhile. Undefined when it may. */
  revocationOf(req: NodeRequest): string | undefined {
    const sender = knownStateOf(req)?.sender;
    const { senders } = this.setup;
    // A sender that needed no key when the request came has no key that could have been removed.
    if (sender === undefined || !('key' in sender) || senders.has(sender)) return undefined;
    const isSame = senders.identify(req.headers)?.tenant === sender.tenant;
    return isSame ? undefined : 'its API key was revoked while it waited';
  }

  /** The server's name of a model. @throws ApiError 404 for one that none has */
  targetOf(model: string): string {
    const { aliases } = this.setup.config.models;
    const target = (Object.hasOwn(aliases, model) ? aliases[model] : undefined) ?? model;
    if (!this.parts.upstreams.serves(target)) throw noModel(model);
    return target;
  }

  /** A turn of a socket: as the body of a request, if `isBody`, and to the server that it is connected to. */
  enterTurn(state: TurnState, isBody: boolean, pinned: EndpointView | undefined): void {
    this.tellEnd(state);
    try {
      this.identify(state);
      state.pinnedTo = pinned?.id;
      if (isBody) {
        const { bytes = Buffer.from('{}') } = state;
        const reader = new GenerationBodyReader(this.setup.rankFields);
        reader.push(bytes);
        this.route(state, reader.end(bytes));
      }
      if (pinned !== undefined && !mayHave(pinned, state.targetModel)) throw otherServer;
      this.askFlowControl(state);
    } catch (error) {
      this.fail(state, error);
    }
  }

  /** Has its end counted and logged. */
  tellEnd(state: RequestState): void {
    state.onEnd((isSent) => {
      // A client that leaves ends its response before flow control hears of it.
      if (isSent) this.ended(state, true);
      else setImmediate(() => this.ended(state, false));
    });
  }

  /** Never throws. */
  handle(state: RequestState): void {
    const { req, res, path } = state;
    try {
      if (req.rawHeaders.length > 2 * mostHeaders) throw tooManyHeaders;
      if (!path.startsWith('/v1/')) throw nothingAt(state);
      state.watch();
      this.tellEnd(state);
      const { cors } = this.setup.config;
      state.ownsCors = cors !== undefined;
      allowOrigin(cors, req, res);
      const methods = methodsOf(path);
      if (req.method !== 'POST') state.setOwnHeaders();
      // Browsers ask without credentials.
      if (req.method === 'OPTIONS') return void answerOptions(cors, req, res, methods.join(', '));
      this.identify(state);
      if (!methods.includes(req.method ?? '')) {
        const allow = methods.join(', ');
        if (req.headers.upgrade === 'websocket') throw noSockets;
        const message = `${req.method} is not possible at ${path.slice(0, 200)}, which takes ${allow}.`;
        throw new ApiError(405, 'method_not_allowed', message, { allow });
      }
      if (req.method === 'POST') this.enter(state);
      else if (path === '/v1/budget')
        sendJson(res, 200, budgetList(state.sender?.tenant ?? 'default-flow', this.setup.config.constraints));
      else this.answerModels(state).catch((error: unknown) => this.fail(state, error));
    } catch (error) {
      this.fail(state, error);
    }
  }

  fail(state: RequestState, error: unknown): void {
    const { req, res } = state;
    state.setOwnHeaders();
    if (error instanceof ApiError) {
      state.failureCode ??= error.code;
      return void sendError(res, error);
    }
    if (req.destroyed && !req.complete) return; // the client left while it was sending
    state.failureCode = 'internal';
    const told = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.parts.log('error', 'internal', { id: state.id, error: told });
    if (res.headersSent) {
      state.cutBy = 'gateway';
      res.destroy();
    } else sendError(res, new ApiError(500, 'internal', 'The gateway failed.'));
  }

  private makeControl(config: GatewayConfig) {
    const { contract, bandHeadroom, waiting } = config;
    const { enabled, position, ...signs } = waiting;
    const hasEndpoints = (): boolean => this.parts.upstreams.pool.endpoints.length > 0;
    const { flow, counters } = this.parts;
    return new HttpFlowControl<RequestState, NodeRequest>(config.families ? this.agents.gate(this.gate) : this.gate, {
      waiting: enabled
        ? {
            ...signs,
            isStream: (state) => state.isStream,
            place: position ? ({ req }) => explainWait(flow, (asked) => asked.req === req) : undefined,
            onSign: (what) => void counters.signs.add(1, what),
          }
        : undefined,
      contract: (drop) => {
        // Another gateway can take it, and this one comes back after a restart.
        if (drop.reason === 'shutting-down') return { status: 503, droppedReason: 'rejected-shutting-down' };
        const { status, headers } = toHttpResponse(drop, { contract, hasEndpoints });
        return { status, droppedReason: headers[droppedReasonHeader] };
      },
      body: 'openai',
      bandHeadroom,
      classify: (state) => (state.classification ??= this.classify(state)),
      byteSize: ({ bytes }) => bytes?.length ?? 0,
    });
  }

  /** @throws ApiError 401 */
  identify(state: RequestState): void {
    state.sender = this.setup.senders.identify(state.req.headers);
    if (state.sender !== undefined) {
      const isAnonymous = state.sender === this.setup.config.auth.anonymous;
      state.share = isAnonymous ? `address ${state.req.socket.remoteAddress}` : `tenant ${state.sender.tenant}`;
      return;
    }
    const headers = { 'www-authenticate': 'Bearer', connection: 'close' };
    throw new ApiError(401, 'invalid_api_key', 'A valid API key is required.', headers);
  }

  /** Every body is received before the gate, so that no upload holds a seat. */
  private enter(state: RequestState): void {
    if (!isSafePath(state.path)) throw new ApiError(400, 'invalid_path', 'The path is not one that can be passed on.');
    const { bodies } = this.parts;
    bodies.checkDeclared(state.req);
    checkMediaType(state);
    const encoding = state.isJson ? encodingOf(state) : undefined;
    if (state.req.headers.expect?.toLowerCase() === '100-continue') state.res.writeContinue();
    const reader = state.isJson ? new GenerationBodyReader(this.setup.rankFields) : undefined;
    const look = (bytes: Buffer): void => reader?.push(bytes);
    const fail = (error: unknown): void => this.fail(state, error);
    const done = (bytes: Buffer): void => {
      try {
        state.bytes = bytes;
        if (reader !== undefined) this.route(state, reader.end(bytes));
        this.askFlowControl(state);
      } catch (error) {
        fail(error);
      }
    };
    const { share: sender } = state;
    if (encoding === undefined) return void bodies.receive(state.req, { sender, look: reader && look, done, fail });
    const unpack = (packed: Buffer): unknown => bodies.unpack(packed, encoding, sender, look).then(done, fail);
    bodies.receive(state.req, { sender, look: undefined, done: unpack, fail });
  }

  /** Servers may know the model by another name. @throws ApiError 404 for one that none has */
  private route(state: RequestState, body: GenerationBody): void {
    state.body = body;
    state.model = body.model;
    const { pictures } = this.setup.config.models;
    // A trusted sender may name another in place of the one in the body.
    const rewrite = state.sender?.trusted ? headerValue(state.req.headers, modelNameRewriteHeader) : undefined;
    const named = rewrite ?? state.model;
    const target = named === undefined ? undefined : this.targetOf(named);
    state.targetModel = target;
    const model = target ?? '';
    const formula = Object.hasOwn(pictures, model) ? pictures[model] : pictures['*'];
    state.size = this.sizes.estimate(model, body.prompt, formula, outputOf(state, body));
  }

  /** It is called again when a server has refused. */
  private askFlowControl(state: RequestState): void {
    state.granted = undefined;
    const verdict = this.setup.control.judge(state, state);
    if ('then' in verdict) void verdict.then((late) => this.follow(state, late));
    else this.follow(state, verdict);
  }

  private follow(state: RequestState, verdict: Verdict): void {
    if (verdict.type === 'pass') {
      state.granted = verdict.flow;
      this.dispatched(state);
    } else if (verdict.type === 'reject') state.reject(verdict.response);
    else if (verdict.type === 'fail') this.fail(state, verdict.error);
    // For the log, which otherwise would say 200.
    else if (!state.res.headersSent) state.res.statusCode = 503;
  }

  private classify(state: RequestState): Classification & Partial<GatewayRequest> {
    const { sender, req, body, size } = state;
    const { tenant = 'default-flow', trusted = false } = sender ?? {};
    const { objectives } = this.setup.config;
    const named = flowKeyFromHeaders(req.headers, { trust: trusted, defaultFairnessId: tenant, objectives });
    const tokens = size && size.inputTokens + size.outputTokens;
    const { sessionId, parentSessionId } = named.sessionId === undefined ? agentSession(req.headers) : named;
    const affinityKey = sessionId ?? body?.prefixKey;
    const hasObjective = trusted && headerValue(req.headers, priorityHeaders) !== undefined;
    const priority = hasObjective ? named.priority : this.askedPriority(sender, body);
    return Object.assign(named, {
      priority,
      tokens,
      affinityKey,
      sessionId,
      parentSessionId,
      id: state.id,
      model: state.targetModel,
      askedModel: state.model,
      refusedBy: state.attempts,
      inputTokens: size?.inputTokens,
      maxOutputTokens: body?.maxOutputTokens,
      takenFor: size?.told,
    });
  }

  /** As `service_tier` or an agent's hint asks: any client for less, up to its `maxPriority` for more. */
  private askedPriority(sender: SenderConfig | undefined, body: GenerationBody | undefined): number {
    const { priority = 0, maxPriority = priority, trusted = false } = sender ?? {};
    const { serviceTiers } = this.setup.config;
    const { tier = '', hints } = body ?? {};
    const hinted = trusted ? hints?.priority : undefined;
    const asked = Object.hasOwn(serviceTiers, tier) ? serviceTiers[tier] : hinted;
    if (asked === undefined) return priority;
    return trusted ? asked : Math.min(asked, Math.max(priority, maxPriority));
  }

  private dispatched(state: RequestState): void {
    const { config, detectors, rankFields } = this.setup;
    const { lease, body, bytes } = state;
    const { endpoint } = lease ?? {};
    try {
      if (lease === undefined || endpoint === undefined) throw new Error('dispatched without an endpoint');
      // A reload may have named a field meanwhile.
      if (body !== undefined && bytes !== undefined) state.body = lookedThrough(body, bytes, rankFields);
      state.attempts.push(endpoint.id);
      this.parts.counters.sentTo(endpoint.id);
      state.seatedAtMs = performance.now();
      state.queuedMs += state.granted?.queuedMs ?? 0;
      const { enabled, max, maxBodyBytes, avoidFor } = config.retry;
      const mayRetry = enabled && state.attempts.length <= max && (state.bytes?.length ?? 0) <= maxBodyBytes;
      const options: AttemptOptions = {
        agent: this.setup.agent,
        config,
        detectors,
        upstream: this.parts.upstreams.configOf(endpoint),
        ownsKeys: this.setup.senders.ownsKeys,
        avoid: (isCertain, forMs = avoidFor) => this.refused(endpoint, forMs, isCertain),
        mayRetry,
        // Only streams have a first token: other answers come whole.
        firstTokenMs:
          mayRetry && state.isStream && this.parts.upstreams.hasOther(state)
            ? firstTokenMsOf(state.targetModel, config.timeouts.firstToken, config.timeouts.firstTokenByModel)
            : Infinity,
        counters: this.parts.counters,
        closesConnection: this.parts.isDraining(),
      };
      const tell = (result: AttemptResult): void => this.forwarded(state, lease, endpoint, result);
      if (state instanceof TurnState) state.take(state, options, tell);
      else new Attempt(state, lease, options, tell).start();
    } catch (error) {
      this.fail(state, error);
    }
  }

  private forwarded(state: RequestState, lease: Lease, endpoint: EndpointView, result: AttemptResult): void {
    if (result.type === 'answered') return;
    if (result.type === 'failed') return void this.fail(state, result.error);
    this.parts.log('warn', 'retry', { id: state.id, endpoint: endpoint.id, code: result.error.code });
    this.parts.counters.retries.add(1, endpoint.id);
    state.failureCode = undefined;
    if (lease.isPutOff) state.putOff = lease;
    else lease.release();
    this.askFlowControl(state);
  }

  private async answerModels({ path, res }: RequestState): Promise<void> {
    const { config, agent } = this.setup;
    const { upstreams } = this.parts;
    const servers = upstreams.pool.endpoints.map((endpoint) => upstreams.configOf(endpoint));
    const wanted = decoded(path.slice('/v1/models/'.length));
    const serves = (model: string): boolean => upstreams.serves(model);
    const { models, json } = await this.models.offer(config.models, servers, serves, agent);
    const one = models.get(wanted);
    if (wanted === '') sendJson(res, 200, json);
    else if (one !== undefined) sendJson(res, 200, one);
    else throw noModel(wanted);
  }

  private ended(state: RequestState, isSent: boolean): void {
    if (state.isServed && state.model !== undefined) this.parts.knownModels.served(state.model, state.targetModel);
    this.sizes.learn(state.targetModel, state.size, state.lease?.usage.promptTokens);
    const cutBy = cutterOf(state, isSent, this.parts.isDraining());
    this.parts.counters.ended(state, cutBy);
    const { requests, tenants } = this.setup.config.log;
    if (!requests) return;
    const { level, fields } = requestLogLine(state, isSent, cutBy, tenants);
    this.parts.log(level, 'request', fields);
  }

  private setUp(config: GatewayConfig, agent: Agent): Setup {
    const detectors = config.detectors.filter(isAdaptive);
    const rankFields = config.upstreams.flatMap(({ priority }) => (typeof priority === 'object' ? priority.field : []));
    const senders = new Senders(config.auth);
    return { config, agent, senders, control: this.makeControl(config), rankFields, detectors };
  }
}

/** The most that a request may generate, or what an agent expects of it. */
function outputOf({ sender }: RequestState, { maxOutputTokens, hints }: GenerationBody): number | undefined {
  return sender?.trusted === true ? (hints.osl ?? maxOutputTokens) : maxOutputTokens;
}

const isAdaptive = (detector: SaturationDetector): detector is AdaptiveDetector =>
  'observe' in detector && typeof detector.observe === 'function';

function noModel(name: string | undefined): ApiError {
  return new ApiError(404, 'model_not_found', `The model ${JSON.stringify(name?.slice(0, 100))} does not exist.`);
}

const otherServer = new ApiError(400, 'model_of_another_server', 'This model needs another socket.');
const noSockets = new ApiError(501, 'websockets_not_installed', 'WebSockets need `npm install ws` beside headgate.');

/** Node silently leaves out headers beyond the limit; the request would be served without its last headers. */
const headersTaken = `A request may have at most ${mostHeaders} headers.`;
const tooManyHeaders = new ApiError(431, 'too_many_headers', headersTaken, uploadEnds);

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ApiError(400, 'invalid_path', 'The path is not valid percent-encoding.');
  }
}

export const nothingAt = ({ req, path }: RequestState): ApiError =>
  new ApiError(404, 'not_found', `There is nothing at ${req.method} ${path.slice(0, 200)}.`);

const reading = ['GET', 'HEAD', 'OPTIONS'];
const asking = ['POST', 'OPTIONS'];

/** The methods of a path of clients. */
function methodsOf(path: string): readonly string[] {
  return path === '/v1/budget' || path === '/v1/models' || path.startsWith('/v1/models/') ? reading : asking;
}
