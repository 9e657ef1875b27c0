/** What is known of endpoints and requests: subset hints, token estimates, and how long a request counts as running. */
import { expect } from 'vitest';
import { endpointsInSubset } from '../../../src/endpoints/filters/subset-hint-filter.js';
import {
  estimatedOutputTokens,
  type PrefixMatch,
  uncachedInputTokens,
} from '../../../src/endpoints/token-estimator.js';
import {
  type EndpointFilter,
  EndpointPool,
  type EndpointView,
  subsetHint,
  tokenEstimator,
} from '../../../src/index.js';
import { Rig, Ticket } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';

interface Estimate {
  inputTokens: number;
  outputRatio: number;
  clientCap?: number | null;
  operatorCap?: number | null;
  addEstimatedOutputTokens?: boolean;
}

interface Prefix {
  inputTokens: number;
  blockSize?: number;
  totalBlocks?: number;
  matchBlocks?: number;
}

function prefixOf({ blockSize, totalBlocks, matchBlocks }: Prefix): PrefixMatch | undefined {
  if (blockSize === undefined || totalBlocks === undefined || matchBlocks === undefined) return undefined;
  return { blockSize, totalBlocks, matchedBlocks: matchBlocks };
}

interface Cache {
  /** The hints of requests that come one after the other; null is none. */
  subsets?: readonly (readonly string[] | null)[];
  /** How often each of them comes. */
  calls?: number;
  concurrent?: number;
  /** Between them. The reference's answers live for `ttlMs`; here they hold until the pool changes. */
  ttlMs?: number;
  advanceMs?: number;
}

interface Lifecycle {
  stalenessMs?: number;
  cleanupMs?: number;
  requestTokens?: number;
  maxConcurrency?: number;
  steps: readonly string[];
}

/** One endpoint that may be replaced by another of its name, and one request on it. */
class Replaced {
  readonly rig: Rig = new Rig({}, { endpoints: 0 });
  readonly reads: number[] = [];
  private readonly servers = new Map<string, EndpointView>();

  register(name: string): void {
    this.rig.pool.remove('server');
    this.servers.set(name, this.rig.pool.add('server'));
  }

  remove(name: string): void {
    const server = this.servers.get(name);
    if (server !== undefined) this.rig.pool.remove(server);
  }

  start(tokens: number): void {
    if (this.rig.pool.endpoints.length === 0) this.register('new');
    this.rig.gate.open(1);
    this.rig.enqueue({ tokens });
  }

  read(): void {
    this.reads.push(this.rig.pool.endpoints[0]?.inFlightRequests ?? 0);
  }

  end(): void {
    for (const { lease } of this.rig.dispatched) lease?.release();
  }
}

export const endpointRunners: Runners = {
  /** Requests with the same hint, whatever its order, are one class, of which the filter is asked once. */
  'endpoints.cache': runner<Cache, { delegateCalls: number }>(
    { input: ['subsets', 'calls', 'concurrent', 'ttlMs', 'advanceMs'], expect: ['delegateCalls'] },
    ({ input: { subsets = [null], calls = 1, concurrent = 1, advanceMs = 0 }, expect: { delegateCalls } }) => {
      const asked: unknown[] = [];
      const hints = new Map<unknown, readonly string[] | null>();
      const filter = subsetHint<object>({ of: (request) => hints.get(request) });
      const rig = new Rig({
        endpointFilters: [
          {
            ...filter,
            keep(endpoints: readonly EndpointView[], requestClass: string) {
              asked.push(requestClass);
              return filter.keep(endpoints, requestClass);
            },
          } as EndpointFilter,
        ],
      });
      const addresses = subsets.flatMap((subset) => subset ?? []);
      for (const address of new Set(addresses.length > 0 ? addresses : ['10.0.0.1:80'])) rig.pool.add(address);
      rig.gate.open();
      for (const subset of subsets) {
        for (let call = 0; call < calls * concurrent; call++) {
          const ticket = new Ticket(`call ${call}`, {});
          hints.set(ticket, subset);
          void rig.flow.enqueue(ticket, { fairnessId: 'flow' });
          rig.clock.advance(advanceMs);
        }
      }
      expect(asked).toHaveLength(delegateCalls);
    },
  ),

  'load.estimateTotal': runner<Estimate, { tokens: number }>(
    {
      input: ['inputTokens', 'outputRatio', 'clientCap', 'operatorCap', 'addEstimatedOutputTokens'],
      expect: ['tokens'],
    },
    ({ input: { inputTokens, outputRatio, clientCap, operatorCap, addEstimatedOutputTokens }, expect: expected }) => {
      const estimate = tokenEstimator({
        addEstimatedOutputTokens: addEstimatedOutputTokens ?? true,
        outputRatio,
        maxEstimatedOutputTokens: operatorCap ?? undefined,
      });
      expect(estimate({ inputTokens, maxOutputTokens: clientCap })).toBe(expected.tokens);
    },
  ),

  'load.estimateOutput': runner<Estimate, { tokens: number }>(
    { input: ['inputTokens', 'outputRatio', 'clientCap', 'operatorCap'], expect: ['tokens'] },
    ({ input: { inputTokens, outputRatio, clientCap, operatorCap }, expect: expected }) => {
      expect(estimatedOutputTokens(inputTokens, outputRatio, clientCap, operatorCap)).toBe(expected.tokens);
    },
  ),

  'load.uncachedInput': runner<Prefix, { tokens: number }>(
    { input: ['inputTokens', 'blockSize', 'totalBlocks', 'matchBlocks'], expect: ['tokens'] },
    ({ input, expect: expected }) => {
      expect(uncachedInputTokens(input.inputTokens, prefixOf(input))).toBe(expected.tokens);
    },
  ),

  /** A lease counts until it is released, however long that takes: the end of the stream releases it. */
  'load.lifecycle': runner<
    Lifecycle,
    { requestsAtReads?: readonly number[]; readsGreaterThanZero?: readonly boolean[] }
  >(
    {
      input: ['stalenessMs', 'cleanupMs', 'requestTokens', 'maxConcurrency', 'steps'],
      expect: ['requestsAtReads', 'readsGreaterThanZero'],
    },
    (vector) => {
      const { stalenessMs = 0, cleanupMs = 0, requestTokens = 0, steps } = vector.input;
      const played = new Replaced();
      const actions: Readonly<Record<string, () => void>> = {
        preRequest: () => played.start(requestTokens),
        waitPastStaleness: () => played.rig.clock.advance(stalenessMs * 2),
        waitForCleanup: () => played.rig.clock.advance(cleanupMs * 2),
        streamContextEnds: () => played.end(),
        endOfStream: () => played.end(),
        read: () => played.read(),
        'read(new)': () => played.read(),
        'register(old)': () => played.register('old'),
        'register(new, same id)': () => played.register('new'),
        'delete(old)': () => played.remove('old'),
      };
      for (const step of steps) {
        const act = actions[step];
        if (act === undefined) throw unknownWord(vector, step);
        act();
      }
      const { requestsAtReads, readsGreaterThanZero } = vector.expect;
      if (requestsAtReads !== undefined) expect(played.reads).toEqual(requestsAtReads);
      if (readsGreaterThanZero !== undefined)
        expect(played.reads.map((count) => count > 0)).toEqual(readsGreaterThanZero);
    },
  ),

  'endpoints.subset': runner<
    { endpoints: readonly string[]; subset: readonly unknown[] | null; disableSubsetFilter: boolean },
    { selected: readonly string[] }
  >({ input: ['endpoints', 'subset', 'disableSubsetFilter'], expect: ['selected'] }, ({ input, expect: expected }) => {
    const pool = new EndpointPool();
    for (const address of input.endpoints) pool.add(address);
    // A host that does not want the filter does not call it.
    const selected = input.disableSubsetFilter ? pool.endpoints : endpointsInSubset(pool.endpoints, input.subset);
    expect(selected.map(({ id }) => id)).toEqual(expected.selected);
  }),
};
