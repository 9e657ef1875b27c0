/** The counters of the gateway itself: answers, servers, tokens. Plain numbers, a few increments for each request. */
import type { Call } from '../call.js';
import { Counts } from './counts.js';

const mostTenants = 1000;
const mostServers = 200;
const mostStatuses = 100;
/** Prompt, completion, and the part of the prompt that was cached. */
const kinds = 3;
/** How an exchange with a server can fail. */
const failureCodes = ['first_token_timeout', 'upstream_failed', 'upstream_timeout', 'upstream_unreachable'];

/** Told of each time to the first token, in seconds. */
export type OnFirstToken = (seconds: number, call: Call) => void;

export class GatewayCounters {
  readonly answers: Counts = new Counts(mostStatuses, 'status', 'source');
  readonly cuts: Counts = new Counts(mostStatuses, 'by');
  readonly tokens: Counts = new Counts(kinds * mostTenants, 'fairness_id', 'kind');
  readonly sent: Counts = new Counts(mostServers, 'endpoint');
  readonly failures: Counts = new Counts(mostServers * failureCodes.length, 'endpoint', 'code');
  readonly refusals: Counts = new Counts(mostServers, 'endpoint');
  readonly retries: Counts = new Counts(mostServers, 'endpoint');
  /** Set by whoever keeps a histogram of them. */
  onFirstToken: OnFirstToken | undefined = undefined;

  constructor() {
    for (const by of ['client', 'upstream', 'timeout', 'eviction', 'shutdown']) this.cuts.add(0, by);
  }

  sentTo(endpoint: string): void {
    if (!this.sent.add(1, endpoint)) return;
    // From 0 on, so that the first of them is seen as an increase.
    for (const code of failureCodes) this.failures.add(0, endpoint, code);
    this.refusals.add(0, endpoint);
    this.retries.add(0, endpoint);
  }

  failed(endpoint: string, code: string): void {
    this.failures.add(1, endpoint, code);
  }

  refused(endpoint: string): void {
    this.refusals.add(1, endpoint);
  }

  retried(endpoint: string): void {
    this.retries.add(1, endpoint);
  }

  /** The request has ended; `isSent`: the client got the whole answer. */
  ended(call: Call, isSent: boolean, isDraining: boolean): void {
    const { req, res, ttftMs } = call;
    this.answers.add(1, res.headersSent ? String(res.statusCode) : 'none', sourceOf(call));
    if (!isSent && res.headersSent)
      this.cuts.add(1, isDraining && call.cutBy === 'client' ? 'shutdown' : (call.cutBy ?? 'client'));
    if (ttftMs !== undefined) this.onFirstToken?.(ttftMs / 1000, call);
    if (req.flow !== undefined) this.consumed(req.flow.lease);
  }

  private consumed({ fairnessId, usage }: NonNullable<Call['req']['flow']>['lease']): void {
    const { promptTokens, completionTokens, cachedPromptTokens = 0 } = usage;
    if (promptTokens > 0) this.tokens.add(promptTokens, fairnessId, 'prompt');
    if (completionTokens > 0) this.tokens.add(completionTokens, fairnessId, 'completion');
    if (cachedPromptTokens > 0) this.tokens.add(cachedPromptTokens, fairnessId, 'cached_prompt');
  }
}

/** The source of the answer. */
function sourceOf({ drop, failure, req, isPassedOn }: Call): 'upstream' | 'flow_control' | 'gateway' {
  if (isPassedOn) return 'upstream';
  const isEvicted = failure === undefined && req.flow?.lease.isEvicted === true;
  return drop !== undefined || isEvicted ? 'flow_control' : 'gateway';
}
