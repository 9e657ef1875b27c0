/** The traffic of one tenant: makes its requests, sends them when they are due, and is told of their ends. */
import type { VirtualClock } from '../clock/virtual-clock.js';
import {
  type Distribution,
  exponential,
  gamma,
  type Random,
  type Sampler,
  samplerOf,
} from '../random/distributions.js';
import { RateWalk } from '../random/rate-profile.js';
import type { OnEnd, RequestDraft } from '../requests/sim-request.js';
import type { Arrivals, TrafficSpec } from './traffic-spec.js';

export interface TrafficHost {
  readonly clock: VirtualClock;
  /** No source sends after this, ms. */
  readonly trafficEndsAtMs: number;
  /** `index` is that of the source. */
  send(index: number, draft: RequestDraft, tenant: string, priority: number, onEnd: OnEnd): void;
  /** A source has something left to do, or no longer. */
  sourceOpened(): void;
  sourceClosed(): void;
}

/** The draft of the next request, whose prompt begins with tokens that were said before. */
type NextDraft = (promptBefore?: number) => RequestDraft;

function draftsOf(spec: TrafficSpec, random: (name: string) => Random): NextDraft {
  const of = (what: string, given: Distribution): Sampler => samplerOf(given, random(what));
  const perhaps = (what: string, given: Distribution | undefined): Sampler | undefined =>
    given === undefined ? undefined : of(what, given);
  const prompt = of('prompt', spec.promptTokens ?? 0);
  const output = of('output', spec.outputTokens ?? 1);
  const service = perhaps('service', spec.serviceTime);
  const seats = of('seats', spec.seats ?? 1);
  const ttl = perhaps('ttl', spec.ttl);
  const sloTtft = perhaps('slo', spec.sloTtft);
  const { ttlMargin, bytes } = spec;
  return (promptBefore = 0) => {
    const promptTokens = promptBefore + Math.round(prompt());
    const sloTtftMs = sloTtft?.();
    return {
      promptTokens,
      outputTokens: Math.max(1, Math.round(output())),
      serviceMs: service?.(),
      seats: Math.max(1, Math.round(seats())),
      // A TTL of 0 would mean for ever.
      ttlMs: ttlMargin === undefined ? ttl?.() : Math.max(0.001, (sloTtftMs ?? 0) - ttlMargin),
      sloTtftMs,
      byteSize: bytes ?? promptTokens * 4,
    };
  };
}

/** What every source is made of. */
interface Source {
  readonly spec: TrafficSpec;
  /** Random numbers of that name, which no other source draws. */
  random(name: string): Random;
  readonly next: NextDraft;
  readonly startsAtMs: number;
  /** Does this at that instant, unless the source has ended by then. */
  at(atMs: number, action: () => void): void;
  nowMs(): number;
  /** `tenant` and `priority` stand for those of the traffic where it has none. */
  send(draft: RequestDraft, onEnd?: OnEnd, tenant?: string, priority?: number): void;
}

type Of<T extends Arrivals['type']> = Extract<Arrivals, { type: T }>;
type OpenLoop = Of<'poisson' | 'gamma' | 'fixed' | 'sessions'>;

/** When requests of an open loop come, ms from the start of the traffic: gaps of mean 1, laid out along the rate. */
function arrivalTimes(arrivals: OpenLoop, random: Random): () => number {
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

/** Does something at each arrival. */
function eachArrival(arrivals: OpenLoop, { at, random, startsAtMs }: Source, arrive: () => void): void {
  const next = arrivalTimes(arrivals, random('arrivals'));
  const wait = (): void =>
    at(startsAtMs + next(), () => {
      arrive();
      wait();
    });
  wait();
}

/** A rejected thread waits at least this long, because no client is faster and time has to go on. */
const soonestMs = 1;

function closedLoop(arrivals: Of<'closed-loop'>, { at, nowMs, random, next, send, startsAtMs }: Source): void {
  const { threads, stagger = 0, requestsPerThread = Infinity } = arrivals;
  const think = samplerOf(arrivals.think ?? 0, random('think'));
  let left = threads * requestsPerThread;
  const issue = (): void => {
    if (left <= 0) return;
    left--;
    send(next(), ({ arrivedAtMs }) => {
      const thinkMs = think();
      at(nowMs() + (nowMs() > arrivedAtMs ? thinkMs : Math.max(soonestMs, thinkMs)), issue);
    });
  };
  for (let thread = 0; thread < threads; thread++) at(startsAtMs + thread * stagger, issue);
}

function sessions(arrivals: Of<'sessions'>, source: Source): void {
  const { at, nowMs, random, next, send } = source;
  const turns = samplerOf(arrivals.turns, random('turns'));
  const toolTime = samplerOf(arrivals.toolTime ?? 0, random('tools'));
  /** The session goes on after an answer, and ends with a request that got none. */
  const turn = (left: number, saidTokens: number): void =>
    send(next(saidTokens), ({ promptTokens, outputTokens }, ending) => {
      if (left > 1 && ending === 'completed')
        at(nowMs() + toolTime(), () => turn(left - 1, promptTokens + outputTokens));
    });
  eachArrival(arrivals, source, () => turn(Math.max(1, Math.round(turns())), 0));
}

function trace({ rows, speed = 1 }: Of<'trace'>, { spec, at, next, send, startsAtMs }: Source): void {
  let nextRow = 0;
  const wait = (): void => {
    const row = rows[nextRow++];
    if (row === undefined) return;
    at(startsAtMs + row.arrivalMs / speed, () => {
      const drawn = next();
      const { promptTokens = drawn.promptTokens, outputTokens = drawn.outputTokens, serviceMs = drawn.serviceMs } = row;
      const byteSize = spec.bytes ?? Math.round(promptTokens * 4);
      const draft = { ...drawn, promptTokens, outputTokens: Math.max(1, outputTokens), serviceMs, byteSize };
      send(draft, undefined, spec.tenant === undefined ? row.tenant : undefined, row.priority);
      wait();
    });
  };
  wait();
}

/** Starts a source. `name` names its random numbers: that of no other source. */
export function startTraffic(
  spec: TrafficSpec,
  index: number,
  ownTenant: string,
  host: TrafficHost,
  random: Source['random'],
): void {
  const endsAtMs = Math.min(spec.endAt ?? Infinity, host.trafficEndsAtMs);
  const source: Source = {
    spec,
    random,
    next: draftsOf(spec, random),
    startsAtMs: spec.startAt ?? 0,
    at(atMs, action) {
      if (!(atMs < endsAtMs)) return;
      host.sourceOpened();
      host.clock.at(atMs, () => {
        action();
        host.sourceClosed();
      });
    },
    nowMs: () => host.clock.now(),
    send: (draft, onEnd = () => {}, tenant = ownTenant, priority = 0) =>
      host.send(index, draft, tenant, spec.priority ?? priority, onEnd),
  };
  const { arrivals } = spec;
  if (arrivals.type === 'closed-loop') closedLoop(arrivals, source);
  else if (arrivals.type === 'sessions') sessions(arrivals, source);
  else if (arrivals.type === 'trace') trace(arrivals, source);
  else eachArrival(arrivals, source, () => source.send(source.next()));
}

/** Each tenant of the traffic, by name. */
export function tenantsOf({ tenant = 'tenant', tenants = 1 }: TrafficSpec): string[] {
  return tenants === 1 ? [tenant] : Array.from({ length: tenants }, (_, index) => `${tenant}-${index}`);
}
