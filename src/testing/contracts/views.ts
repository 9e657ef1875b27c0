/** What plugins see: requests, endpoints and pools, of figures or at random, and frozen, as none may be changed. */
import { seededRandom } from '../../base/seeded-random.js';
import type { EndpointView, ItemView, PoolView } from '../../index.js';

/** Randomness that repeats. */
export class Random {
  /** 0 ≤ … < 1 */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seededRandom(seed);
  }

  /** An integer, 0 ≤ … < `below`. */
  int(below: number): number {
    return Math.floor(this.next() * below);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.int(from.length)] as T;
  }
}

/** Acts so many times, each time with further numbers of the same seed. */
export function repeatedly(times: number, seed: number, act: (random: Random, i: number) => void): void {
  const random = new Random(seed);
  for (let i = 0; i < times; i++) act(random, i);
}

export function itemView(figures: Partial<ItemView> = {}): ItemView {
  return {
    request: { byteSize: 1 },
    fairnessId: 'a',
    priority: 0,
    byteSize: 1,
    tokens: 0,
    sequence: 0,
    receivedAtMs: 0,
    enqueuedAtMs: 0,
    ttlMs: Infinity,
    ttftDeadlineAtMs: Infinity,
    ...figures,
  };
}

export function endpointView(id: string, figures: Partial<EndpointView> = {}): EndpointView {
  return {
    id,
    labels: {},
    weight: 1,
    overloadedUntilMs: 0,
    metrics: undefined,
    inFlightRequests: 0,
    inFlightTokens: 0,
    unsampledRequests: 0,
    dispatchedRequests: 0,
    ...figures,
  };
}

export function poolView(...endpoints: EndpointView[]): PoolView {
  const sum = (figure: 'inFlightRequests' | 'inFlightTokens'): number =>
    endpoints.reduce((total, endpoint) => total + endpoint[figure], 0);
  return { endpoints, inFlightRequests: sum('inFlightRequests'), inFlightTokens: sum('inFlightTokens') };
}

/** Busy or idle, with fresh figures, old ones or none. */
export function randomEndpoints(
  random: Random,
  least: number,
  nowMs: number,
  more: () => Partial<EndpointView> = () => ({}),
): readonly EndpointView[] {
  const metrics = (): EndpointView['metrics'] =>
    Object.freeze({
      waitingQueueSize: random.int(12),
      runningRequests: random.int(12),
      kvCacheUsage: random.next(),
      sampledAtMs: nowMs - random.pick([0, 100, 5000]),
    });
  const one = (_: unknown, index: number): EndpointView =>
    Object.freeze(
      endpointView(`e${index}`, {
        metrics: random.chance(0.85) ? metrics() : undefined,
        inFlightRequests: random.int(random.pick([4, 30])),
        inFlightTokens: random.int(5000),
        unsampledRequests: random.int(6),
        dispatchedRequests: random.int(100),
        ...more(),
      }),
    );
  return Object.freeze(Array.from({ length: least + random.int(7) }, one));
}

/** Highest first. */
export function randomPriorities(random: Random, least: number): readonly number[] {
  const all = new Set(Array.from({ length: least + random.int(7) }, () => random.int(2000) - 1000));
  return Object.freeze([...all].sort((a, b) => b - a));
}
