/** What an endpoint picker does with a request: what stands in it, who sends it, which server is best, what it cost. */
import type { parse } from '@marcbachmann/cel-js';
import type { AnswerReader, ExtProcOptions, ExtProcRequest, Struct } from '../../adapters/ext-proc/index.js';
import type { Classification, HttpErrorResponse } from '../../adapters/http/index.js';
import { agentSession, flowKeyFromHeaders, headerValue, modelNameRewriteHeader } from '../../adapters/http/index.js';
import { openaiError } from '../../adapters/http/to-http-response.js';
import type { EndpointPool, EndpointView, Lease } from '../../index.js';
import { usageReader } from '../../upstream/index.js';
import type { GenerationBody } from '../bodies/generation-body.js';
import { withFields } from '../bodies/with-fields.js';
import { KnownModels } from '../metrics/known-models.js';
import { ApiError } from '../shared/api-error.js';
import type { GatewayLog } from '../shared/gateway-log.js';
import { PromptSizes, type SizeEstimate } from '../sizes/prompt-sizes.js';
import type { EppConfig, RewriteRule } from './epp-config.js';
import type { EppCounts } from './epp-metrics.js';
import { RenamedAnswer } from './renamed-answer.js';
import { type UsageReport, usageReport } from './reported-attributes.js';
import { RequestParsers } from './request-parsers.js';
import { SchedulingProfile, type ScoredRequest } from './scheduling-profile.js';

/** What is known of a request besides its bytes. */
interface Note extends ScoredRequest {
  readonly startedAtMs: number;
  /** The model that the client asked for. */
  readonly asked: string | undefined;
  readonly size: SizeEstimate | undefined;
  fairnessId: string;
  priority: number;
}

/** Undefined for a request whose body nobody reads, or that has none. */
export const noteOf = ({ note }: ExtProcRequest): Note | undefined => note as Note | undefined;

/** What a configuration comes to. */
interface InForce {
  readonly config: EppConfig;
  readonly profile: SchedulingProfile;
  readonly parsers: RequestParsers;
  readonly report: UsageReport;
}

export class EppRequests {
  /** Set once there are metrics. */
  counts: EppCounts | undefined = undefined;
  readonly knownModels: KnownModels = new KnownModels({ models: { aliases: {} }, upstreams: [] });
  private readonly parser: typeof parse | undefined;
  private readonly sizes = new PromptSizes();
  private readonly pool: EndpointPool;
  private readonly log: GatewayLog;
  private inForce: InForce;

  /** @throws FlowConfigError for expressions of the file that cannot be read */
  constructor(pool: EndpointPool, log: GatewayLog, config: EppConfig, parser: typeof parse | undefined) {
    this.parser = parser;
    this.pool = pool;
    this.log = log;
    this.inForce = this.settled(config);
  }

  /** @throws FlowConfigError for expressions of the file that cannot be read, and then nothing has changed */
  configure(config: EppConfig): void {
    this.inForce = this.settled(config);
  }

  private settled(config: EppConfig): InForce {
    const { attributes, scorers, parsers } = config;
    const report = usageReport(attributes, this.parser);
    return { config, report, profile: new SchedulingProfile(scorers), parsers: new RequestParsers(parsers) };
  }

  rank(endpoints: readonly EndpointView[], request: ExtProcRequest): readonly EndpointView[] {
    return this.inForce.profile.rank(endpoints, noteOf(request) ?? {});
  }

  /** The adapter's options by the configuration in force. */
  options(): ExtProcOptions {
    const { settings, maxEndpoints } = this.inForce.config;
    const { trust, contract, maxRequestBytes, emitScores } = settings;
    return {
      pool: this.pool,
      trust,
      contract,
      maxRequestBytes,
      maxEndpoints,
      body: 'openai',
      hasEndpoints: () => this.pool.endpoints.length > 0,
      classify: (request) => this.classify(request),
      rank: (endpoints, request) => this.rank(endpoints, request),
      received: (request) => this.received(request),
      responding: (request, lease) => this.responding(request, lease),
      ended: (request, lease) => this.ended(request, lease),
      failed: (error) => this.log('error', 'internal', { error: String((error as Error)?.stack ?? error) }),
      facts: emitScores ? (request) => this.scores(request) : undefined,
    };
  }

  private received(request: ExtProcRequest): HttpErrorResponse | undefined {
    if (request.hasNoBody) return undefined;
    try {
      this.note(request, this.inForce.parsers.parse(request));
      return undefined;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return openaiError(error.status, error.message, error.code);
    }
  }

  /** @throws ApiError 400 without a model */
  private note(request: ExtProcRequest, body: GenerationBody | undefined): void {
    const { settings, rewrites } = this.inForce.config;
    const asked = body?.model;
    const named = settings.trust ? headerValue(request.headers, modelNameRewriteHeader) : undefined;
    const model = rewritten(asked, rewrites) ?? named ?? asked;
    if (body !== undefined && model === undefined) throw new ApiError(400, 'missing_field', 'The body has no model.');
    if (body !== undefined && model !== undefined && model !== asked)
      request.body = withFields(request.body, body.spans, { model: JSON.stringify(model) });
    const size = body && this.sizes.estimate(model ?? '', body.prompt, undefined, body.maxOutputTokens);
    const startedAtMs = performance.now();
    const note: Note = { startedAtMs, asked, model, prefixKey: body?.prefixKey, size, fairnessId: '', priority: 0 };
    request.note = note;
  }

  private classify(request: ExtProcRequest): Classification {
    const { settings, objectives } = this.inForce.config;
    const { headers } = request;
    const named = flowKeyFromHeaders(headers, { trust: settings.trust, objectives });
    const { fairnessId, priority, sloTtftMs, maxWaitMs } = named;
    const note = noteOf(request);
    if (note !== undefined) Object.assign(note, { fairnessId, priority });
    const { size, prefixKey } = note ?? {};
    const { sessionId, parentSessionId } = named.sessionId === undefined ? agentSession(headers) : named;
    const tokens = size && size.inputTokens + size.outputTokens;
    const affinityKey = sessionId ?? prefixKey;
    return { fairnessId, priority, sloTtftMs, maxWaitMs, tokens, sessionId, parentSessionId, affinityKey };
  }

  private scores(request: ExtProcRequest): Struct {
    const scores = this.inForce.profile.scoresOf(this.pool.endpoints, noteOf(request) ?? {});
    const told = [...scores].map(([{ id, labels }, numberValue]) => [labels.address ?? id, { numberValue }] as const);
    const fields = Object.fromEntries(told);
    return { fields: { 'x-gateway-destination-endpoint-scores': { structValue: { fields } } } };
  }

  private responding(request: ExtProcRequest, lease: Lease): AnswerReader | undefined {
    const note = noteOf(request);
    if (note === undefined) return undefined;
    if (lease.endpoint !== undefined) this.inForce.profile.went(note, lease.endpoint);
    const { asked, model } = note;
    const usage =
      request.status < 400 && note.size !== undefined ? usageReader({ lease, cachedTokens: true }) : undefined;
    const isRenamed = asked !== undefined && model !== undefined && asked !== model;
    const renamed = isRenamed ? new RenamedAnswer(model, asked) : undefined;
    // Reads usage from an answer while it passes, and gives its model another name.
    return {
      keepsLength: renamed === undefined,
      pass(piece, isLast) {
        if (piece.length > 0) usage?.push(piece);
        if (isLast) usage?.end();
        return renamed === undefined ? piece : renamed.pass(piece, isLast);
      },
      facts: () => this.reportOf(lease),
    };
  }

  private reportOf({ usage }: Lease): Struct | undefined {
    try {
      return this.inForce.report(usage);
    } catch (error) {
      this.log('warn', 'attributes-failed', { error: String(error) });
      return undefined;
    }
  }

  private ended(request: ExtProcRequest, lease: Lease | undefined): void {
    const note = noteOf(request);
    const { status, isRefused } = request;
    if (note === undefined) return void (isRefused && this.counts?.refused(status));
    const { asked, model, size, fairnessId, priority } = note;
    const { promptTokens = 0, completionTokens } = lease?.usage ?? {};
    this.sizes.learn(model, size, promptTokens);
    if (asked !== undefined && status > 0 && status < 300) this.knownModels.served(asked, model);
    const labels = {
      fairness_id: fairnessId,
      model_name: this.knownModels.labelOf(asked),
      priority: String(priority),
      target_model_name: this.knownModels.labelOf(model),
    };
    this.counts?.ended(labels, status, isRefused, lease?.usage);
    if (!this.inForce.config.settings.logRequests) return;
    this.log(status === 0 || status >= 500 ? 'warn' : 'info', 'request', {
      id: request.id,
      tenant: fairnessId,
      priority,
      model: asked?.slice(0, 100),
      endpoint: lease?.endpoint?.id,
      status: status === 0 ? undefined : status,
      durationMs: Math.round(performance.now() - note.startedAtMs),
      promptTokens: promptTokens || undefined,
      completionTokens,
    });
  }
}

/** By the first rule for the model; of several targets one is drawn by weight. */
function rewritten(model: string | undefined, rules: readonly RewriteRule[]): string | undefined {
  const targets = rules.find((rule) => rule.model === undefined || rule.model === model)?.targets ?? [];
  let left = Math.random() * targets.reduce((sum, { weight }) => sum + weight, 0);
  for (const target of targets) {
    left -= target.weight;
    if (left < 0) return target.model;
  }
  return undefined;
}
