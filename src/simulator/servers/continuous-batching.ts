/**
 * A server with continuous batching and chunked prefill, as vLLM and its like run one: each step computes the next
 * token of every sequence in the batch, and pieces of prompts with what is left of the step's budget. Sequences grow in
 * a paged KV cache; when it is full the youngest loses its pages and begins again.
 *
 *     waiting ──► running: prefill (chunks) ──► decode, one token a step ──► end
 *        ▲            └── preempted: cache full ──┐
 *        └────────────────────────────────────────┘
 *
 * Sources: Kwon et al., "Efficient memory management for large language model serving with PagedAttention" (2023),
 * whose recomputation this preempts by; Agrawal et al., "Sarathi-Serve" (2024), chunked prefill. A step takes `stepMs +
 * decodeMs·decoding + kvTokenMs·resident tokens + prefillTokenMs·prompt
 * tokens`, a line fitted in `calibrate`.
 */
import type { Filled } from '../../base/schema/element.js';
import type { SimEvent } from '../clock/virtual-clock.js';
import type { SimRequest } from '../requests/sim-request.js';
import { ModelServer, type ServerFactory, type ServerHost, type ServerLoad, type SimServer } from './sim-server.js';

export interface ContinuousBatchingOptions {
  /** Tokens that the KV cache holds. @default 60,000 */
  readonly kvTokens?: number | undefined;
  /** Tokens in a page of it. @default 16 */
  readonly blockTokens?: number | undefined;
  /** Sequences in a batch at most. @default 64 */
  readonly maxSequences?: number | undefined;
  /** Tokens computed in one step at most, prompts in pieces. @default 2048 */
  readonly maxBatchedTokens?: number | undefined;
  /** A step's fixed time, ms. @default 8 */
  readonly stepMs?: number | undefined;
  /** For each sequence that decodes, ms. @default 0.2 */
  readonly decodeMs?: number | undefined;
  /** For each token in the cache that the step reads, ms. @default 0.0002 */
  readonly kvTokenMs?: number | undefined;
  /** For each prompt token computed, ms. @default 0.05 */
  readonly prefillTokenMs?: number | undefined;
  /** How long a request is on its way to the batch: network, tokens from text. ms. @default 0 */
  readonly overheadMs?: number | undefined;
}

type Settings = Filled<ContinuousBatchingOptions>;

export const continuousBatchingDefaults: Settings = {
  kvTokens: 60_000,
  blockTokens: 16,
  maxSequences: 64,
  maxBatchedTokens: 2048,
  stepMs: 8,
  decodeMs: 0.2,
  kvTokenMs: 0.0002,
  prefillTokenMs: 0.05,
  overheadMs: 0,
};

export function continuousBatching(options: ContinuousBatchingOptions = {}): ServerFactory {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settings: Settings = { ...continuousBatchingDefaults, ...given };
  return (id, host) => new BatchingServer(id, host, settings);
}

/** In a request: `held` is pages, `computed` tokens in the cache, `scheduled` tokens of this step. */
class BatchingServer extends ModelServer implements SimServer {
  private readonly settings: Settings;
  private readonly blocks: number;
  private usedBlocks = 0;
  /** In order of admission: the last is the first to be preempted. */
  private readonly running: SimRequest[] = [];
  /** Not there yet, for as long as `overheadMs`. */
  private readonly onTheWay = new Map<SimRequest, SimEvent>();
  /** In order of arrival, preempted ones in front. */
  private readonly waiting: SimRequest[] = [];
  private isStepping = false;
  private readonly startStep = (): void => this.beginStep();
  private readonly endStep = (): void => this.finishStep();

  constructor(id: string, host: ServerHost, settings: Settings) {
    super(id, host);
    this.settings = settings;
    this.blocks = Math.floor(settings.kvTokens / settings.blockTokens);
  }

  accept(request: SimRequest): void {
    request.held = 0;
    request.computed = 0;
    request.scheduled = 0;
    const { overheadMs } = this.settings;
    if (overheadMs === 0) this.arrive(request);
    else
      this.onTheWay.set(
        request,
        this.host.clock.after(overheadMs, () => this.arrive(request)),
      );
  }

  private arrive(request: SimRequest): void {
    this.onTheWay.delete(request);
    this.waiting.push(request);
    if (this.isStepping) return;
    // Requests of one instant share a step.
    this.isStepping = true;
    this.host.clock.after(0, this.startStep);
  }

  abort(request: SimRequest): void {
    const coming = this.onTheWay.get(request);
    if (coming !== undefined) {
      this.host.clock.clearTimeout(coming);
      this.onTheWay.delete(request);
      this.host.roomMade();
      return;
    }
    const from = this.running.includes(request) ? this.running : this.waiting;
    const at = from.indexOf(request);
    if (at < 0) return;
    from.splice(at, 1);
    this.drop(request);
    this.inBatch.set(this.running.length, this.host.clock.now());
    this.host.roomMade();
  }

  hasRoom(): boolean {
    return (
      this.waiting.length === 0 &&
      this.running.length + this.onTheWay.size < this.settings.maxSequences &&
      this.usedBlocks < this.blocks
    );
  }

  load(): ServerLoad {
    return {
      waitingQueueSize: this.waiting.length,
      runningRequests: this.running.length,
      kvCacheUsage: Math.min(1, this.usedBlocks / this.blocks),
    };
  }

  private beginStep(): void {
    const { running, waiting, settings } = this;
    let tokensLeft = settings.maxBatchedTokens;
    const preemptionsBefore = this.preemptions;
    for (let i = 0; i < running.length; i++) {
      const request = running[i] as SimRequest;
      const tokens = Math.min(pending(request), tokensLeft);
      let hasPlace = true;
      while (hasPlace && !this.grow(request, tokens)) hasPlace = this.preemptLast() !== request;
      if (!hasPlace) break;
      request.scheduled = tokens;
      tokensLeft -= tokens;
    }
    // A newcomer needs room for its first piece only, as in real engines; room for its growth is not reserved.
    while (this.preemptions === preemptionsBefore && tokensLeft > 0 && running.length < settings.maxSequences) {
      const request = waiting[0];
      if (request === undefined) break;
      const tokens = Math.min(pending(request), tokensLeft);
      if (!this.grow(request, tokens)) break;
      waiting.shift();
      running.push(request);
      request.scheduled = tokens;
      tokensLeft -= tokens;
      this.host.started(request);
    }
    const { clock } = this.host;
    this.inBatch.set(running.length, clock.now());
    this.isStepping = running.length > 0;
    this.working.set(this.isStepping ? 1 : 0, clock.now());
    this.kvUsage.set(this.usedBlocks / this.blocks, clock.now());
    if (this.isStepping) clock.after(this.durationMs(), this.endStep);
  }

  private finishStep(): void {
    const { running, host } = this;
    let kept = 0;
    const ended: SimRequest[] = [];
    for (let i = 0; i < running.length; i++) {
      const request = running[i] as SimRequest;
      running[kept++] = request;
      if (request.scheduled === 0) continue;
      request.computed += request.scheduled;
      request.scheduled = 0;
      if (pending(request) > 0) continue;
      request.tokensOut++;
      if (request.tokensOut >= request.outputTokens) {
        kept--;
        ended.push(request);
      }
      host.token(request);
    }
    running.length = kept;
    for (const request of ended) {
      this.drop(request);
      host.completed(request);
    }
    if (ended.length > 0) host.roomMade();
    this.beginStep();
  }

  private durationMs(): number {
    const { stepMs, decodeMs, kvTokenMs, prefillTokenMs } = this.settings;
    let durationMs = stepMs;
    for (let i = 0; i < this.running.length; i++) {
      const request = this.running[i] as SimRequest;
      if (request.scheduled === 0) continue;
      durationMs +=
        (pending(request) > 1 ? request.scheduled * prefillTokenMs : decodeMs) + request.computed * kvTokenMs;
    }
    return durationMs * this.slowness;
  }

  /** Takes the pages that `tokens` more need, or none and false; a cache that is too small holds one request. */
  private grow(request: SimRequest, tokens: number): boolean {
    const more = Math.ceil((request.computed + tokens) / this.settings.blockTokens) - request.held;
    const isAlone = this.usedBlocks === request.held;
    if (this.usedBlocks + more > this.blocks && !isAlone) return false;
    request.held += more;
    this.usedBlocks += more;
    return true;
  }

  private preemptLast(): SimRequest {
    const request = this.running.pop() as SimRequest;
    this.drop(request);
    this.waiting.unshift(request);
    this.preemptions++;
    this.host.preempted(request);
    return request;
  }

  private drop(request: SimRequest): void {
    this.usedBlocks -= request.held;
    request.held = 0;
    request.computed = 0;
    request.scheduled = 0;
  }
}

/** Tokens to compute before the next one is out: 1 while decoding. A prompt of none has its mark of beginning. */
function pending(request: SimRequest): number {
  return Math.max(1, request.promptTokens) + request.tokensOut - request.computed;
}
