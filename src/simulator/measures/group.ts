/** Measures of the requests of one tenant, of one class, or of all. */
import type { Ending, SimRequest } from '../requests/sim-request.js';
import { TimeAverage } from '../servers/sim-server.js';
import type { SloSpec } from '../traffic/traffic-spec.js';
import { type Latency, Samples } from './samples.js';

/** Measures of requests that arrived after the warm-up. Ratios and rates of nothing are NaN, `null` in JSON. */
export interface GroupFigures {
  readonly arrived: number;
  readonly completed: number;
  /** Dropped for good, by reason. */
  readonly dropped: Readonly<Record<string, number>>;
  /** Requests whose client left. */
  readonly cancelled: number;
  /** Evicted while they ran, and not served afterwards. */
  readonly evicted: number;
  /** Requests whose server died while the answer came. */
  readonly failed: number;
  /** Attempts after the first. */
  readonly retries: number;
  /** Completed within every target, of its traffic and its own `sloTtft`; with no targets, all that completed. */
  readonly good: number;
  /** `completed` over `arrived`, 0…1. */
  readonly served: number;
  /** `good` over `arrived`, 0…1. */
  readonly goodput: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Of completed requests, prompt and output, each second of the measured time. */
  readonly tokensPerSecond: number;
  readonly completedPerSecond: number;
  /** Tokens served, prompts once and outputs twice, unfinished requests included: the cost of the VTC paper. */
  readonly service: number;
  readonly servicePerSecond: number;
  /** Seats in use on average, from the end of the warm-up to the end of the traffic. */
  readonly meanRunning: number;
  /** Time from the first attempt to the first token. */
  readonly ttft: Latency;
  /** Mean time between tokens, of answers with two tokens or more. */
  readonly perToken: Latency;
  /** Time from the first attempt to the last token. */
  readonly total: Latency;
  /** Time that the last attempt waited at the gateway. */
  readonly queued: Latency;
}

export class Group {
  private readonly ttft = new Samples();
  private readonly perToken = new Samples();
  private readonly total = new Samples();
  private readonly queued = new Samples();
  private readonly dropped = new Map<string, number>();
  private readonly counts = {
    arrived: 0,
    completed: 0,
    cancelled: 0,
    evicted: 0,
    failed: 0,
    retries: 0,
    good: 0,
    promptTokens: 0,
    outputTokens: 0,
  };
  service = 0;
  /** Seats in use, between the end of the warm-up and the end of the traffic. */
  private readonly seats = new TimeAverage();

  sent(isRetry: boolean): void {
    this.counts[isRetry ? 'retries' : 'arrived']++;
  }

  /** `seats` more are in use, or fewer, from that time of the measured ones on. */
  seatsTaken(seats: number, measuredMs: number): void {
    this.seats.add(seats, measuredMs);
  }

  ended(request: SimRequest, ending: Ending, isGood: boolean, nowMs: number): void {
    const { counts, dropped } = this;
    if (ending === 'dropped') dropped.set(request.dropReason, (dropped.get(request.dropReason) ?? 0) + 1);
    else counts[ending]++;
    if (ending !== 'completed') return;
    if (isGood) counts.good++;
    counts.promptTokens += request.promptTokens;
    counts.outputTokens += request.outputTokens;
    this.ttft.add(request.firstTokenAtMs - request.arrivedAtMs);
    this.total.add(nowMs - request.arrivedAtMs);
    this.queued.add(request.dispatchedAtMs - request.enqueuedAtMs);
    if (request.tokensOut > 1) this.perToken.add((nowMs - request.firstTokenAtMs) / (request.tokensOut - 1));
  }

  /** `measuredMs` for rates, `trafficMs` for seats. */
  figures(measuredMs: number, trafficMs: number): GroupFigures {
    const { arrived, completed, good, promptTokens, outputTokens } = this.counts;
    const perSecond = (figure: number): number => (measuredMs > 0 ? (figure * 1000) / measuredMs : NaN);
    return {
      ...this.counts,
      dropped: Object.fromEntries([...this.dropped].sort(([a], [b]) => (a < b ? -1 : 1))),
      served: completed / arrived,
      goodput: good / arrived,
      tokensPerSecond: perSecond(promptTokens + outputTokens),
      completedPerSecond: perSecond(completed),
      service: this.service,
      servicePerSecond: perSecond(this.service),
      meanRunning: this.seats.mean(trafficMs),
      ttft: this.ttft.figures(),
      perToken: this.perToken.figures(),
      total: this.total.figures(),
      queued: this.queued.figures(),
    };
  }
}

/** Whether a completed request kept its targets. */
export function isWithin(slo: SloSpec | undefined, request: SimRequest, nowMs: number): boolean {
  const ttftMs = request.firstTokenAtMs - request.arrivedAtMs;
  if (request.sloTtftMs !== undefined && ttftMs > request.sloTtftMs) return false;
  if (slo === undefined) return true;
  const { ttft = Infinity, perToken = Infinity, total = Infinity } = slo;
  if (ttftMs > ttft || nowMs - request.arrivedAtMs > total) return false;
  return request.tokensOut < 2 || (nowMs - request.firstTokenAtMs) / (request.tokensOut - 1) <= perToken;
}
