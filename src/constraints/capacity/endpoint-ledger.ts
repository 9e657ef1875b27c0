/**
 * What running requests hold at one endpoint, and what they will hold: a slot, the prompt in prefill until the first
 * token, prompt and answer in the KV cache until the end.
 *
 *     dispatched ── slot, prefill, KV ──► first token ── slot, KV that grows ──► released
 *
 * The peak of the cache is projected: the requests of a batch get a token a step each, so that those with the least
 * left end first. When the k-th longest ends, k requests hold what they hold now, and k times what it had left.
 * Source: the Past-Future scheduler of LightLLM (Gong et al., ASPLOS 2025).
 * Invariant: each request gives back just what it took.
 */
import type { EndpointMetrics, EndpointView } from '../../endpoints/endpoint.js';
import type { SeatView } from '../../gate/server-answer.js';

/** What a request needs. */
export interface Need {
  readonly model: string;
  /** Prompt tokens to compute, and to keep. */
  readonly prompt: number;
  /** The length of its answer, ≥ 1: the likely one, or the longest that it may be. */
  readonly output: number;
  readonly isWorst: boolean;
}

/** One running request. */
interface Claim extends Need {
  output: number;
  /** Tokens of the answer so far, as far as reported. */
  reported: number;
  /** The age, in tokens, at which `output` was looked up. */
  lookedUpAt: number;
  readonly takenAtMs: number;
  /** NaN before the first token. */
  firstAtMs: number;
}

/** Tokens that a request holds in the cache, and steps until it ends. */
interface Standing {
  readonly held: number;
  readonly left: number;
}

/** The weight of the last request in learnt times. */
const newest = 0.1;
/** Requests that ended since the last report, at most. */
const mostEnded = 256;
/** The size of the cache is learnt while at least this part of it is in use. */
const learnsFrom = 0.1;
/** Parts of what is missing, for each report: too small a cache is believed soon, a larger one slowly. */
const rises = 0.2;
const falls = 0.05;
/** What is reported counts so much more, so that 3 % of the cache remain for what lengths do not tell. */
const spare = 1.03;
/** A cache is at most so much smaller or larger than was said. */
const mostScale = 4;
/** So long what requests hold counts as unchanged while none comes and none goes, ms. */
const fresh = 20;

export class EndpointLedger {
  /** Prompt tokens of requests without a first token, and their number. */
  prefill = 0;
  unstarted = 0;
  /** Tokens in the cache, and requests, that the server reports beyond ours; ≥ 0. */
  foreignTokens = 0;
  foreignRequests = 0;
  /** Tokens that the server reports for each of ours: 2 where its cache has half of `kvTokens`. */
  scale = 1;
  /** Ms of a step, and to a first token, as far as learnt; Infinity before. */
  stepMs: number = Infinity;
  firstTokenMs: number = Infinity;
  private readonly claims = new Map<SeatView, Claim>();
  private readonly expected: (model: string, age: number) => number | undefined;
  private sampledAtMs = -Infinity;
  /** The last report may still count them. */
  private ended: { readonly atMs: number; readonly held: number }[] = [];
  private standings: readonly Standing[] = [];
  private standsAtMs: number = NaN;

  /** `expected`: the likely length of an answer that has so many tokens already. */
  constructor(expected: (model: string, age: number) => number | undefined) {
    this.expected = expected;
  }

  get isEmpty(): boolean {
    return this.claims.size === 0;
  }

  take(seat: SeatView, need: Need, nowMs: number): void {
    this.claims.set(seat, { reported: 0, lookedUpAt: 0, takenAtMs: nowMs, firstAtMs: NaN, ...need });
    this.prefill += need.prompt;
    this.unstarted++;
    this.standsAtMs = NaN;
  }

  /** Notes the usage of a request. True when it had its first token. */
  grew(seat: SeatView, nowMs: number): boolean {
    const claim = this.claims.get(seat);
    if (claim === undefined) return false;
    claim.reported = Math.max(claim.reported, seat.usage.completionTokens);
    if (!Number.isNaN(claim.firstAtMs) || !(claim.reported > 0)) return false;
    claim.firstAtMs = nowMs;
    this.firstTokenMs = learnt(this.firstTokenMs, nowMs - claim.takenAtMs);
    this.started(claim);
    return true;
  }

  /** Returns what the request took; undefined for one that is not known. */
  give(seat: SeatView, nowMs: number): Need | undefined {
    const claim = this.claims.get(seat);
    if (claim === undefined) return undefined;
    const steps = claim.reported - 1;
    if (Number.isNaN(claim.firstAtMs)) this.started(claim);
    else if (steps > 0 && nowMs > claim.firstAtMs) this.stepMs = learnt(this.stepMs, (nowMs - claim.firstAtMs) / steps);
    this.claims.delete(seat);
    this.ended.push({ atMs: nowMs, held: claim.prompt + this.ageOf(claim, nowMs) });
    if (this.ended.length > mostEnded) this.ended.shift();
    this.standsAtMs = NaN;
    return claim;
  }

  /** Tokens that the cache holds at most, now or later, with one more request. O(requests), as they are in order. */
  peak(nowMs: number, { prompt, output }: Need): number {
    let [peak, held, count] = [0, 0, 0];
    const add = (tokens: number, left: number): void => {
      held += tokens;
      peak = Math.max(peak, held + ++count * left);
    };
    let isIn = false;
    for (const standing of this.stand(nowMs)) {
      if (!isIn && output > standing.left) {
        isIn = true;
        add(prompt, output);
      }
      add(standing.held, standing.left);
    }
    if (!isIn) add(prompt, output);
    return this.foreignTokens + this.scale * peak;
  }

  /** Tokens in the cache now. */
  held(nowMs: number): number {
    return this.stand(nowMs).reduce((sum, { held }) => sum + this.scale * held, this.foreignTokens);
  }

  /** Ms until so many tokens of the cache are free again; Infinity where that is not known. */
  msUntilFree(tokens: number, nowMs: number): number {
    let freed = 0;
    for (const { held, left } of [...this.stand(nowMs)].reverse()) {
      freed += this.scale * (held + left);
      if (freed >= tokens) return left * this.stepMs;
    }
    return Infinity;
  }

  /** Learns from a new report what others hold there, and whether the cache has `kvTokens`. */
  reconcile(endpoint: EndpointView, kvTokens: number, nowMs: number): void {
    const { metrics } = endpoint;
    if (metrics === undefined || metrics.sampledAtMs === this.sampledAtMs) return;
    this.sampledAtMs = metrics.sampledAtMs;
    this.foreignRequests = requestsOfOthers(endpoint, metrics);
    this.foreignTokens = 0;
    if (kvTokens === Infinity) return;
    this.ended = this.ended.filter(({ atMs }) => atMs > metrics.sampledAtMs);
    const told = metrics.kvCacheUsage * kvTokens * spare;
    const most = this.ended.reduce((sum, { held }) => sum + held, this.held(nowMs) / this.scale);
    if (this.foreignRequests === 0 && metrics.kvCacheUsage > learnsFrom) this.learnScale(told, most, nowMs);
    this.foreignTokens = Math.max(0, told - this.scale * most);
  }

  /** What is in prefill holds nothing, or all of its prompt. A full cache tells only the least. */
  private learnScale(told: number, most: number, nowMs: number): void {
    const started = [...this.claims.values()].filter(({ firstAtMs }) => firstAtMs <= this.sampledAtMs);
    const least = started.reduce((sum, claim) => sum + claim.prompt + this.ageOf(claim, nowMs), 0);
    const likely = Math.min(Math.max(this.scale, told / most), told / least);
    const wanted = Math.min(Math.max(likely, 1 / mostScale), mostScale);
    this.scale += (wanted - this.scale) * (wanted > this.scale ? rises : falls);
  }

  private started({ prompt }: Claim): void {
    this.prefill -= prompt;
    this.unstarted--;
  }

  /** Tokens of its answer: those reported, or those that the time since the first one makes likely. */
  private ageOf({ reported, firstAtMs }: Claim, nowMs: number): number {
    return Number.isNaN(firstAtMs) ? 0 : Math.max(reported, 1 + (nowMs - firstAtMs) / this.stepMs);
  }

  /** The requests, those with the most left first. */
  private stand(nowMs: number): readonly Standing[] {
    if (nowMs - this.standsAtMs < fresh) return this.standings;
    this.standsAtMs = nowMs;
    const standings: Standing[] = [];
    for (const claim of this.claims.values()) {
      const age = this.ageOf(claim, nowMs);
      // An answer that is long already will be longer than others.
      if (age >= claim.output || (!claim.isWorst && age > 1.05 * claim.lookedUpAt + 1)) {
        claim.output = Math.max(this.expected(claim.model, age) ?? claim.output, age + 1);
        claim.lookedUpAt = age;
      }
      standings.push({ held: claim.prompt + age, left: Math.max(1, claim.output - age) });
    }
    this.standings = standings.sort((a, b) => b.left - a.left);
    return this.standings;
  }
}

/** Requests in the server that this controller did not send. */
function requestsOfOthers(endpoint: EndpointView, { runningRequests, waitingQueueSize }: EndpointMetrics): number {
  const { inFlightRequests, unsampledRequests, endedSinceReport = 0 } = endpoint;
  return Math.max(0, runningRequests + waitingQueueSize - (inFlightRequests - unsampledRequests + endedSinceReport));
}

function learnt(mean: number, value: number): number {
  return mean === Infinity ? value : mean + (value - mean) * newest;
}
