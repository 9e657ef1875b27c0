/** The traffic of one tenant: makes its requests, sends them when they are due, and is told of their ends. */
import type { VirtualClock } from '../clock/virtual-clock.js';
import { type Distribution, type Sampler, samplerOf } from '../random/distributions.js';
import { exponential, gamma, type Random, type RandomStreams } from '../random/random-streams.js';
import { RateWalk } from '../random/rate-profile.js';
import type { Ending, RequestDraft, RequestOwner, SimRequest } from '../requests/sim-request.js';
import type { Arrivals, TrafficSpec } from './traffic-spec.js';

export interface TrafficHost {
  readonly clock: VirtualClock;
  /** No source sends after this, ms. */
  readonly trafficEndsAtMs: number;
  send(source: TrafficSource, draft: RequestDraft, tenant?: string, priority?: number): SimRequest;
  /** A source has something left to do, or no longer. */
  sourceOpened(): void;
  sourceClosed(): void;
}

class Drafts {
  private readonly prompt: Sampler;
  private readonly output: Sampler;
  private readonly service: Sampler | undefined;
  private readonly seats: Sampler;
  private readonly ttl: Sampler | undefined;
  private readonly sloTtft: Sampler | undefined;
  private readonly ttlMargin: number | undefined;
  private readonly bytes: number | undefined;

  constructor(spec: TrafficSpec, random: (name: string) => Random) {
    const of = (what: string, given: Distribution): Sampler => samplerOf(given, random(what));
    this.prompt = of('prompt', spec.promptTokens ?? 0);
    this.output = of('output', spec.outputTokens ?? 1);
    this.service = spec.serviceTime === undefined ? undefined : of('service', spec.serviceTime);
    this.seats = of('seats', spec.seats ?? 1);
    this.ttl = spec.ttl === undefined ? undefined : of('ttl', spec.ttl);
    this.sloTtft = spec.sloTtft === undefined ? undefined : of('slo', spec.sloTtft);
    this.ttlMargin = spec.ttlMargin;
    this.bytes = spec.bytes;
  }

  next(promptBefore = 0): RequestDraft {
    const promptTokens = promptBefore + Math.round(this.prompt());
    const sloTtftMs = this.sloTtft?.();
    return {
      promptTokens,
      outputTokens: Math.max(1, Math.round(this.output())),
      serviceMs: this.service?.(),
      seats: Math.max(1, Math.round(this.seats())),
      // A TTL of 0 would mean for ever.
      ttlMs: this.ttlMargin === undefined ? this.ttl?.() : Math.max(0.001, (sloTtftMs ?? 0) - this.ttlMargin),
      sloTtftMs,
      byteSize: this.bytes ?? promptTokens * 4,
    };
  }
}

type Of<T extends Arrivals['type']> = Extract<Arrivals, { type: T }>;

/** When requests of an open loop come, ms from the start of the traffic: gaps of mean 1, laid out along the rate. */
function arrivalTimes(arrivals: Of<'poisson' | 'gamma' | 'fixed' | 'sessions'>, random: Random): () => number {
  const walk = new RateWalk(arrivals.rate);
  switch (arrivals.type) {
    case 'poisson':
    case 'sessions':
      return () => walk.advance(exponential(random));
    case 'gamma': {
      const shape = 1 / (arrivals.cv * arrivals.cv);
      return () => walk.advance(gamma(random, shape) / shape);
    }
    case 'fixed': {
      let gap = arrivals.offset ?? random();
      return () => {
        const atMs = walk.advance(gap);
        gap = 1;
        return atMs;
      };
    }
  }
}

/** What every source is made of. `name` names the random numbers: that of no other source. */
type Place = [
  spec: TrafficSpec,
  index: number,
  tenant: string,
  name: string,
  host: TrafficHost,
  streams: RandomStreams,
];

export abstract class TrafficSource<A extends Arrivals = Arrivals> implements RequestOwner {
  readonly spec: TrafficSpec;
  readonly index: number;
  readonly tenant: string;
  protected readonly arrivals: A;
  protected readonly host: TrafficHost;
  protected readonly drafts: Drafts;
  /** Random numbers of that name, which no other source draws. */
  protected readonly random: (name: string) => Random;
  protected readonly startsAtMs: number;
  protected readonly endsAtMs: number;

  constructor(arrivals: A, ...[spec, index, tenant, name, host, streams]: Place) {
    this.arrivals = arrivals;
    this.spec = spec;
    this.index = index;
    this.tenant = tenant;
    this.host = host;
    this.random = (part) => streams.of(`${name}/${part}`);
    this.drafts = new Drafts(spec, this.random);
    this.startsAtMs = spec.startAt ?? 0;
    this.endsAtMs = Math.min(spec.endAt ?? Number.POSITIVE_INFINITY, host.trafficEndsAtMs);
  }

  abstract start(): void;
  abstract ended(request: SimRequest, ending: Ending): void;

  protected at(atMs: number, action: () => void): void {
    if (!(atMs < this.endsAtMs)) return;
    this.host.sourceOpened();
    this.host.clock.at(atMs, () => {
      action();
      this.host.sourceClosed();
    });
  }
}

class OpenLoop extends TrafficSource<Of<'poisson' | 'gamma' | 'fixed'>> {
  private readonly next = arrivalTimes(this.arrivals, this.random('arrivals'));

  start(): void {
    this.at(this.startsAtMs + this.next(), this.arrive);
  }

  ended(): void {}

  private readonly arrive = (): void => {
    this.host.send(this, this.drafts.next());
    this.start();
  };
}

/** A rejected thread waits at least this long, because no client is faster and time has to go on. */
const soonestMs = 1;

class ClosedLoop extends TrafficSource<Of<'closed-loop'>> {
  private readonly think = samplerOf(this.arrivals.think ?? 0, this.random('think'));
  private left = this.arrivals.threads * (this.arrivals.requestsPerThread ?? Number.POSITIVE_INFINITY);

  start(): void {
    const { threads, stagger = 0 } = this.arrivals;
    for (let thread = 0; thread < threads; thread++) this.at(this.startsAtMs + thread * stagger, () => this.issue());
  }

  ended({ arrivedAtMs }: SimRequest): void {
    const nowMs = this.host.clock.now();
    const thinkMs = this.think();
    this.at(nowMs + (nowMs > arrivedAtMs ? thinkMs : Math.max(soonestMs, thinkMs)), () => this.issue());
  }

  private issue(): void {
    if (this.left <= 0) return;
    this.left--;
    this.host.send(this, this.drafts.next());
  }
}

class Sessions extends TrafficSource<Of<'sessions'>> {
  private readonly next = arrivalTimes(this.arrivals, this.random('arrivals'));
  private readonly turns = samplerOf(this.arrivals.turns, this.random('turns'));
  private readonly toolTime = samplerOf(this.arrivals.toolTime ?? 0, this.random('tools'));
  private readonly turnsLeft = new Map<SimRequest, number>();

  start(): void {
    this.at(this.startsAtMs + this.next(), () => {
      this.turn(Math.max(1, Math.round(this.turns())), 0);
      this.start();
    });
  }

  /** The session goes on after an answer, and ends with a request that got none. */
  ended(request: SimRequest, ending: Ending): void {
    const left = this.turnsLeft.get(request) ?? 0;
    this.turnsLeft.delete(request);
    if (left <= 0 || ending !== 'completed') return;
    const saidTokens = request.promptTokens + request.outputTokens;
    this.at(this.host.clock.now() + this.toolTime(), () => this.turn(left, saidTokens));
  }

  private turn(left: number, saidTokens: number): void {
    const request = this.host.send(this, this.drafts.next(saidTokens));
    if (!request.hasEnded) this.turnsLeft.set(request, left - 1);
  }
}

class Trace extends TrafficSource<Of<'trace'>> {
  private nextRow = 0;

  start(): void {
    const { rows, speed = 1 } = this.arrivals;
    const row = rows[this.nextRow++];
    if (row === undefined) return;
    this.at(this.startsAtMs + row.arrivalMs / speed, () => {
      const drawn = this.drafts.next();
      const { promptTokens = drawn.promptTokens, outputTokens = drawn.outputTokens, serviceMs = drawn.serviceMs } = row;
      const byteSize = this.spec.bytes ?? Math.round(promptTokens * 4);
      const draft = { ...drawn, promptTokens, outputTokens: Math.max(1, outputTokens), serviceMs, byteSize };
      this.host.send(
        this,
        draft,
        this.spec.tenant === undefined ? row.tenant : undefined,
        this.spec.priority ?? row.priority,
      );
      this.start();
    });
  }

  ended(): void {}
}

export function trafficSource(arrivals: Arrivals, ...args: Place): TrafficSource {
  switch (arrivals.type) {
    case 'closed-loop':
      return new ClosedLoop(arrivals, ...args);
    case 'sessions':
      return new Sessions(arrivals, ...args);
    case 'trace':
      return new Trace(arrivals, ...args);
    default:
      return new OpenLoop(arrivals, ...args);
  }
}

/** Each tenant of the traffic, by name. */
export function tenantsOf({ tenant = 'tenant', tenants = 1 }: TrafficSpec): string[] {
  return tenants === 1 ? [tenant] : Array.from({ length: tenants }, (_, index) => `${tenant}-${index}`);
}
