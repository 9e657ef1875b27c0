/** Which server is best for a request: the weighted scorers of a scheduling profile, as llm-d's router has them. */
import { putLatest } from '../../base/put.js';
import type { EndpointView } from '../../index.js';

/** What scorers know of a request. */
export interface ScoredRequest {
  /** The model that the server is asked for. */
  readonly model?: string | undefined;
  /** The same for requests whose prompts begin alike. */
  readonly prefixKey?: string | undefined;
}

/** Scores from 0 to 1, in the order of the endpoints; a higher one is better. `served`: by beginnings of prompts. */
type Scorer = (
  endpoints: readonly EndpointView[],
  request: ScoredRequest,
  served: ReadonlyMap<string, string>,
) => readonly number[];

/** 1 for the least, 0 for the most, and what is between in proportion; 1 for all that are alike. */
function fewest(of: (endpoint: EndpointView) => number): Scorer {
  return (endpoints) => {
    const counts = endpoints.map(of);
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    return counts.map((count) => (most === least ? 1 : (most - count) / (most - least)));
  };
}

/** Requests in a server's queue at which `load-aware-scorer` gives 0. */
const queueThreshold = 128;

/** Beginnings of prompts that are remembered, each with the server that has it. */
const mostPrefixes = 65_536;

/** By their types in the file. */
const scorers: Readonly<Record<string, Scorer>> = {
  'queue-scorer': fewest(({ metrics }) => metrics?.waitingQueueSize ?? 0),
  'running-requests-size-scorer': fewest(({ metrics }) => metrics?.runningRequests ?? 0),
  'active-request-scorer': fewest(({ inFlightRequests }) => inFlightRequests),
  'token-load-scorer': fewest(({ inFlightTokens }) => inFlightTokens),
  'kv-cache-utilization-scorer': (endpoints) => endpoints.map(({ metrics }) => 1 - (metrics?.kvCacheUsage ?? 0)),
  'load-aware-scorer': (endpoints) =>
    endpoints.map(({ metrics }) => 0.5 * (1 - Math.min((metrics?.waitingQueueSize ?? 0) / queueThreshold, 1))),
  // The adapter runs there; it has room for one more; it is waited for.
  'lora-affinity-scorer': (endpoints, { model = '' }) =>
    endpoints.map(({ metrics }) => {
      const { running = [], waiting = [], max = 0 } = metrics?.loraAdapters ?? {};
      if (running.includes(model)) return 1;
      if (running.length + waiting.length < max) return 0.8;
      return waiting.includes(model) ? 0.6 : 0;
    }),
  'prefix-cache-scorer': (endpoints, { prefixKey = '' }, served) =>
    endpoints.map(({ id }) => (served.get(prefixKey) === id ? 1 : 0)),
};

export const scorerTypes: readonly string[] = Object.keys(scorers);

/** A scorer of the file, and how much it counts. */
export interface WeightedScorer {
  readonly type: string;
  readonly weight: number;
}

export class SchedulingProfile {
  private readonly scorers: readonly WeightedScorer[];
  private readonly served = new Map<string, string>();

  constructor(weighted: readonly WeightedScorer[]) {
    this.scorers = weighted;
  }

  /** By their scores for the request. O(endpoints · scorers). */
  scoresOf(endpoints: readonly EndpointView[], request: ScoredRequest): ReadonlyMap<EndpointView, number> {
    const sums = new Array<number>(endpoints.length).fill(0);
    for (const { type, weight } of this.scorers) {
      const scores = scorers[type]?.(endpoints, request, this.served) ?? [];
      for (const [index, each] of scores.entries()) sums[index]! += weight * each;
    }
    return new Map(endpoints.map((endpoint, index) => [endpoint, sums[index] ?? 0]));
  }

  /** The best first; of equals the one with fewer requests in flight. */
  rank(endpoints: readonly EndpointView[], request: ScoredRequest): readonly EndpointView[] {
    const scores = this.scoresOf(endpoints, request);
    const scoreOf = (endpoint: EndpointView): number => scores.get(endpoint) ?? 0;
    return [...endpoints].sort(
      (a, b) =>
        scoreOf(b) - scoreOf(a) ||
        a.inFlightRequests - b.inFlightRequests ||
        a.dispatchedRequests - b.dispatchedRequests,
    );
  }

  /** The request went there: what begins as it does is in that server's cache now. */
  went({ prefixKey }: ScoredRequest, { id }: EndpointView): void {
    if (prefixKey !== undefined) putLatest(this.served, prefixKey, id, mostPrefixes);
  }
}
