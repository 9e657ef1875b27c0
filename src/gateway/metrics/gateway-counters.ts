/** The counters of the gateway itself: answers, servers, tokens. Plain numbers, a few increments for each request. */
import type { HealthResult } from '../../upstream/index.js';
import type { Cut, RequestState } from '../request-state.js';

/** Longer values are not kept apart: a thousand long names fill memory too. */
const longestValue = 256;

type Row = { readonly labels: Readonly<Record<string, string>>; value: number };

/** Numbers by one or two labels, kept apart (bench: gateway). Invariant: `most` rows at most; the rest says `other`. */
export class LabelledCounter {
  readonly labelNames: readonly string[];
  private readonly most: number;
  private readonly counted = new Map<string, Map<string, Row>>();
  private size = 0;

  constructor(most: number, ...labelNames: string[]) {
    this.most = most;
    this.labelNames = labelNames;
  }

  /** True when the row is new. */
  add(by: number, first: string, second = ''): boolean {
    const row = this.counted.get(first)?.get(second);
    if (row === undefined) return this.make(by, first, second);
    row.value += by;
    return false;
  }

  *rows(): Iterable<Row> {
    for (const rows of this.counted.values()) yield* rows.values();
  }

  private make(by: number, first: string, second: string): boolean {
    const isOneTooMany = this.size >= this.most || first.length > longestValue;
    if (isOneTooMany && first !== 'other') return this.add(by, 'other', second);
    const [name = '', otherName] = this.labelNames;
    const labels = { [name]: first, ...(otherName === undefined ? {} : { [otherName]: second }) };
    const rows = this.counted.get(first) ?? new Map<string, Row>();
    this.counted.set(first, rows.set(second, { labels, value: by }));
    this.size++;
    return true;
  }
}

const mostTenants = 1000;
const mostServers = 200;
const mostStatuses = 100;
/** Prompt, completion, and the part of the prompt that was cached. */
const kinds = 3;
const healthResults: readonly HealthResult[] = ['well', 'ill', 'silent', 'disregarded'];
/** How an exchange with a server can fail. */
const failureCodes = ['first_token_timeout', 'upstream_failed', 'upstream_timeout', 'upstream_unreachable'];

/** Told of a figure of each request that has one. */
type OnFigure = (figure: number, state: RequestState) => void;

export class GatewayCounters {
  readonly answers: LabelledCounter = new LabelledCounter(mostStatuses, 'status', 'source');
  readonly cuts: LabelledCounter = new LabelledCounter(mostStatuses, 'by');
  readonly tokens: LabelledCounter = new LabelledCounter(kinds * mostTenants, 'fairness_id', 'kind');
  readonly sent: LabelledCounter = new LabelledCounter(mostServers, 'endpoint');
  readonly failures: LabelledCounter = new LabelledCounter(mostServers * failureCodes.length, 'endpoint', 'code');
  readonly refusals: LabelledCounter = new LabelledCounter(mostServers, 'endpoint');
  readonly retries: LabelledCounter = new LabelledCounter(mostServers, 'endpoint');
  readonly checks: LabelledCounter = new LabelledCounter(mostServers * healthResults.length, 'endpoint', 'result');
  readonly signs: LabelledCounter = new LabelledCounter(3, 'what');
  /** Time to the first token, seconds. The owners of histograms set these. */
  onFirstToken: OnFigure | undefined = undefined;
  /** Prompt tokens that a server reported, for each that was estimated. */
  onReport: OnFigure | undefined = undefined;

  constructor() {
    for (const by of ['client', 'upstream', 'timeout', 'eviction', 'gateway', 'shutdown']) this.cuts.add(0, by);
    for (const what of ['begun', 'sign', 'failed']) this.signs.add(0, what);
  }

  sentTo(endpoint: string): void {
    if (!this.sent.add(1, endpoint)) return;
    // From 0 on, so that the first of them is seen as an increase.
    for (const code of failureCodes) this.failures.add(0, endpoint, code);
    this.refusals.add(0, endpoint);
    this.retries.add(0, endpoint);
  }

  checked(endpoint: string, result: HealthResult): void {
    if (!this.checks.add(1, endpoint, result)) return;
    for (const each of healthResults) this.checks.add(0, endpoint, each);
  }

  /** The request has ended; `cutBy`: who cut its answer short, if somebody did. */
  ended(state: RequestState, cutBy: Cut): void {
    const { lease, res, ttftMs, size } = state;
    this.answers.add(1, res.headersSent ? String(res.statusCode) : 'none', sourceOf(state));
    if (cutBy !== undefined) this.cuts.add(1, cutBy);
    if (ttftMs !== undefined) this.onFirstToken?.(ttftMs / 1000, state);
    if (lease === undefined) return;
    const { fairnessId: id, usage } = lease;
    // Of the tenant, also where its families are flows.
    const [fairnessId = id] = id.split('/@', 1);
    const { promptTokens, completionTokens, cachedPromptTokens = 0 } = usage;
    if (promptTokens > 0) this.tokens.add(promptTokens, fairnessId, 'prompt');
    if (completionTokens > 0) this.tokens.add(completionTokens, fairnessId, 'completion');
    if (cachedPromptTokens > 0) this.tokens.add(cachedPromptTokens, fairnessId, 'cached_prompt');
    if (size !== undefined && promptTokens > 0) this.onReport?.(promptTokens / Math.max(size.inputTokens, 1), state);
  }
}

/** The source of the answer. */
function sourceOf({ drop, failureCode, lease, isPassedOn }: RequestState): 'upstream' | 'flow_control' | 'gateway' {
  if (isPassedOn) return 'upstream';
  const isEvicted = failureCode === undefined && lease?.isEvicted === true;
  return drop !== undefined || isEvicted ? 'flow_control' : 'gateway';
}
