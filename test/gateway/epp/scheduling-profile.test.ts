import { describe, expect, it } from 'vitest';
import { SchedulingProfile, type ScoredRequest, scorerTypes } from '../../../src/gateway/epp/scheduling-profile.js';
import { EndpointPool, type EndpointView } from '../../../src/index.js';

type Loads = readonly (Partial<NonNullable<EndpointView['metrics']>> | undefined)[];

function serversOf(loads: Loads): readonly EndpointView[] {
  const pool = new EndpointPool();
  for (const [n, load] of loads.entries()) {
    pool.add(`s${n}`);
    if (load !== undefined) pool.report(`s${n}`, { waitingQueueSize: 0, kvCacheUsage: 0, runningRequests: 0, ...load });
  }
  return pool.endpoints;
}

function scoresOf(type: string, loads: Loads, request: ScoredRequest = {}, weight = 1): number[] {
  const profile = new SchedulingProfile([{ type, weight }]);
  return [...profile.scoresOf(serversOf(loads), request).values()].map((score) => Math.round(score * 1000) / 1000);
}

describe('a scorer', () => {
  it.each<[type: string, loads: Loads, scores: number[]]>([
    ['queue-scorer', [{ waitingQueueSize: 10 }, { waitingQueueSize: 0 }, { waitingQueueSize: 5 }], [0, 1, 0.5]],
    ['queue-scorer', [{ waitingQueueSize: 3 }, { waitingQueueSize: 3 }], [1, 1]],
    ['queue-scorer', [undefined, undefined], [1, 1]],
    ['running-requests-size-scorer', [{ runningRequests: 4 }, { runningRequests: 1 }, {}], [0, 0.75, 1]],
    ['kv-cache-utilization-scorer', [{ kvCacheUsage: 0.25 }, { kvCacheUsage: 1 }, undefined], [0.75, 0, 1]],
    [
      'load-aware-scorer',
      [{ waitingQueueSize: 0 }, { waitingQueueSize: 64 }, { waitingQueueSize: 999 }],
      [0.5, 0.25, 0],
    ],
  ])('%s of %j', (type, loads, scores) => {
    expect(scoresOf(type, loads)).toEqual(scores);
  });

  it('prefers servers that run the adapter, then those with room for one, then those where it waits', () => {
    const full = { running: ['a', 'b'], waiting: [], max: 2 };
    const loads: Loads = [
      { loraAdapters: full },
      { loraAdapters: { ...full, waiting: ['c'] } },
      { loraAdapters: { running: ['a'], waiting: [], max: 2 } },
      { loraAdapters: { running: ['c'], waiting: [], max: 2 } },
    ];
    expect(scoresOf('lora-affinity-scorer', loads, { model: 'c' })).toEqual([0, 0.6, 0.8, 1]);
  });

  it('counts by its weight', () => {
    expect(scoresOf('kv-cache-utilization-scorer', [{ kvCacheUsage: 0.5 }], {}, 3)).toEqual([1.5]);
  });

  it('of another type takes no part', () => {
    expect(scoresOf('no-such-scorer', [{}, {}])).toEqual([0, 0]);
    expect(scorerTypes).not.toContain('no-such-scorer');
  });
});

describe('a profile', () => {
  it('sums its scorers, and ranks the best first', () => {
    const profile = new SchedulingProfile([
      { type: 'queue-scorer', weight: 2 },
      { type: 'kv-cache-utilization-scorer', weight: 1 },
    ]);
    const servers = serversOf([
      { waitingQueueSize: 4, kvCacheUsage: 0 },
      { waitingQueueSize: 0, kvCacheUsage: 0.9 },
      { waitingQueueSize: 2, kvCacheUsage: 0 },
    ]);
    expect(profile.rank(servers, {}).map(({ id }) => id)).toEqual(['s1', 's2', 's0']);
  });

  it('gives equals in turn to the one with fewer requests', () => {
    const pool = new EndpointPool();
    pool.add('a');
    pool.add('b');
    const profile = new SchedulingProfile([]);
    const busy = { ...pool.endpoints[0], id: 'a', inFlightRequests: 1 } as unknown as EndpointView;
    expect(profile.rank([busy, pool.endpoints[1]!], {}).map(({ id }) => id)).toEqual(['b', 'a']);
  });

  it('sends prompts that begin alike to the server that has the last one, until others push it out', () => {
    const profile = new SchedulingProfile([{ type: 'prefix-cache-scorer', weight: 1 }]);
    const servers = serversOf([{}, {}]);
    const best = (prefixKey: string) => profile.scoresOf(servers, { prefixKey });
    expect([...best('p').values()]).toEqual([0, 0]);
    profile.went({ prefixKey: 'p' }, servers[1]!);
    expect([...best('p').values()]).toEqual([0, 1]);
    profile.went({ prefixKey: 'p' }, servers[0]!);
    expect([...best('p').values()]).toEqual([1, 0]);
    profile.went({}, servers[1]!);
    for (let n = 0; n < 65_536; n++) profile.went({ prefixKey: `other-${n}` }, servers[1]!);
    expect([...best('p').values()]).toEqual([0, 0]);
    expect([...best('other-65535').values()]).toEqual([0, 1]);
  });
});
