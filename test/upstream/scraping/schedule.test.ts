/** When the scraper asks whom, on a clock that moves only when told to. */
import { describe, expect, it } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { EndpointPool, type ScrapeOptions, type ScrapeWarning, scrape } from '../../../src/upstream/index.js';
import { runNow } from '../../support/flow.js';
import { vllm } from './expositions.js';
import { makeRig, type Rig, settled } from './scraper-rig.js';

/** Always wanted: the quick rhythm. */
const rig = (count: number, options: ScrapeOptions = {}): Rig => makeRig(count, { isIdle: () => false, ...options });

describe('an endpoint', () => {
  it('is asked at once, and then at every interval from question to question', async () => {
    const { clock, last, instants } = rig(1, { intervalMs: 100 });
    for (let i = 0; i < 3; i++) {
      clock.advance(30);
      await last().answer();
      clock.advance(70);
    }
    expect(instants()).toEqual([0, 100, 200, 300]);
  });

  it('is asked every 50 ms by default', async () => {
    const { clock, last, instants } = rig(1);
    await last().answer();
    clock.advance(49);
    expect(instants()).toEqual([0]);
    clock.advance(1);
    expect(instants()).toEqual([0, 50]);
  });

  it('that answers late is asked again when it has answered, and not before', async () => {
    const { clock, last, instants } = rig(1, { intervalMs: 100 });
    clock.advance(350);
    expect(instants()).toEqual([0]);
    await last().answer();
    clock.advance(0);
    expect(instants()).toEqual([0, 350]);
  });

  it('that fails is asked at doubling intervals up to the longest, until it answers', async () => {
    const { clock, last, instants } = rig(1, { intervalMs: 100, maxBackoffMs: 500 });
    for (let i = 0; i < 5; i++) {
      await last().fail();
      clock.advance(500);
    }
    expect(instants()).toEqual([0, 200, 600, 1100, 1600, 2100]);
    await last().answer();
    clock.advance(100);
    await last().fail();
    clock.advance(200);
    expect(instants().slice(6)).toEqual([2500, 2700]);
  });

  it('that fails is asked at every interval when that is longer than the longest back-off', async () => {
    const { clock, last, instants } = rig(1, { intervalMs: 100, maxBackoffMs: 1 });
    await last().fail();
    clock.advance(100);
    expect(instants()).toEqual([0, 100]);
  });

  it('that does not answer in time has failed, also when the fetch does not heed its signal', async () => {
    const { clock, last, scraper, questions } = rig(1, { timeoutMs: 300 });
    clock.advance(299);
    await settled();
    expect(scraper.stats).toMatchObject({ failing: 0, underWay: 1 });
    clock.advance(1);
    await settled();
    expect(last().signal.aborted).toBe(true);
    expect(scraper.stats).toMatchObject({ failing: 1, underWay: 0, failures: 1 });
    expect(scraper.stats.endpoints[0]?.lastError).toMatchObject({ code: 'timeout' });
    clock.advance(100);
    await questions[0]?.answer(vllm({ waiting: 99 }));
    expect(scraper.stats.scrapes).toBe(0);
  });

  it('whose answer stops in the middle has not answered', async () => {
    const { clock, pool, scraper } = rig(1, {
      timeoutMs: 300,
      fetch: () =>
        Promise.resolve(
          new Response(new ReadableStream({ start: (body) => body.enqueue(new TextEncoder().encode(vllm())) })),
        ),
    });
    await settled();
    clock.advance(300);
    await settled();
    expect(scraper.stats.endpoints[0]?.lastError?.code).toBe('timeout');
    expect(pool.get('e0')?.metrics).toBeUndefined();
  });
});

it('jitter moves each scrape within its share of the interval', async () => {
  const draws = [0, 1, 0.5];
  const { clock, last, instants } = rig(1, { intervalMs: 100, jitter: 0.2, random: () => draws.shift() ?? 0.5 });
  for (let i = 0; i < 3; i++) {
    await last().answer();
    clock.advance(i === 0 ? 80 : i === 1 ? 120 : 100);
  }
  expect(instants()).toEqual([0, 80, 200, 300]);
});

describe('concurrency', () => {
  it('bounds the questions under way, and the others wait in turn', async () => {
    const { questions, scraper } = rig(5, { concurrency: 2 });
    expect(questions.map(({ url }) => url)).toEqual(['http://e0/metrics', 'http://e1/metrics']);
    expect(scraper.stats.underWay).toBe(2);
    await questions[1]?.answer();
    await questions[0]?.fail();
    expect(questions.slice(2).map(({ url }) => url)).toEqual(['http://e2/metrics', 'http://e3/metrics']);
    await questions[2]?.answer();
    expect(questions[4]?.url).toBe('http://e4/metrics');
    expect(scraper.stats).toMatchObject({ underWay: 2, scrapes: 2, failures: 1 });
  });

  it('is not used up by endpoints that left while they waited', async () => {
    const { questions, pool, scraper } = rig(4, { concurrency: 1 });
    pool.remove('e1');
    pool.remove('e0');
    await settled();
    expect(questions.map(({ url }) => url)).toEqual(['http://e0/metrics', 'http://e2/metrics']);
    expect(scraper.stats.underWay).toBe(1);
    scraper.stop();
    await settled();
    expect(questions).toHaveLength(2);
  });
});

describe('a sample', () => {
  it('is as old as the question, so that seats taken meanwhile are still missing from it', async () => {
    const { clock, pool, flow, last } = rig(1, { intervalMs: 100 });
    clock.advance(10);
    await last().answer();
    const endpoint = pool.get('e0')!;
    expect(endpoint.metrics?.sampledAtMs).toBe(0);
    runNow(flow);
    clock.advance(90);
    clock.advance(10);
    runNow(flow);
    expect(endpoint.unsampledRequests).toBe(2);
    await last().answer();
    expect(endpoint.metrics?.sampledAtMs).toBe(100);
    expect(endpoint.unsampledRequests).toBe(1);
  });

  it('lacks what was sent within a round trip before the question: it may arrive after it', async () => {
    const { clock, pool, flow, last } = rig(1, { intervalMs: 100 });
    clock.advance(8);
    await last().answer(); // a round trip of 8 ms
    const endpoint = pool.get('e0')!;
    clock.advance(80);
    runNow(flow);
    clock.advance(6);
    runNow(flow);
    clock.advance(6); // asked again at 100 ms: 12 and 6 ms after the two were sent
    clock.advance(30);
    await last().answer();
    expect(endpoint.metrics?.sampledAtMs).toBe(100);
    expect(endpoint.unsampledRequests).toBe(1);
  });

  it('that is overtaken by a later report does not count', async () => {
    const { clock, pool, last } = rig(1);
    clock.advance(10);
    pool.report('e0', { waitingQueueSize: 1, runningRequests: 0, kvCacheUsage: 0 });
    await last().answer(vllm({ waiting: 7 }));
    expect(pool.get('e0')?.metrics).toMatchObject({ waitingQueueSize: 1, sampledAtMs: 10 });
  });

  it('is stale when it is older than the detector’s threshold', async () => {
    const { clock, last, scraper } = rig(1, { timeoutMs: 1e6 });
    await last().answer();
    clock.advance(200);
    expect(scraper.stats).toMatchObject({ stale: 0, failing: 0 });
    clock.advance(1);
    expect(scraper.stats).toMatchObject({ stale: 1, failing: 0 });
  });
});

describe('events', () => {
  it('tell an outage once, and its end', async () => {
    const { clock, last, scraper } = rig(1, { intervalMs: 100 });
    const log: string[] = [];
    scraper.on('failed', ({ endpoint, error }) => log.push(`failed ${endpoint.id}: ${error.code}, ${error.message}`));
    scraper.on('recovered', ({ endpoint, failures, failedForMs }) =>
      log.push(`recovered ${endpoint.id}: ${failures}, ${failedForMs} ms`),
    );
    await last().fail();
    clock.advance(200);
    await last().fail();
    clock.advance(400);
    await last().answer('nothing of use');
    clock.advance(800);
    await last().answer();
    clock.advance(100);
    await last().answer();
    expect(log).toEqual(['failed e0: network, refused', 'recovered e0: 3, 1400 ms']);
  });

  it('survive listeners that throw', async () => {
    const { clock, last, scraper, instants } = rig(1, { intervalMs: 100 });
    const faults: string[] = [];
    scraper.on('listenerError', ({ event }) => faults.push(event));
    for (const event of ['failed', 'recovered'] as const) {
      scraper.on(event, () => {
        throw new Error(event);
      });
    }
    await last().fail();
    clock.advance(200);
    await last().answer();
    clock.advance(100);
    expect(faults).toEqual(['failed', 'recovered']);
    expect(instants()).toEqual([0, 200, 300]);
  });
});

it('stop leaves no timer and no question behind', async () => {
  const { clock, scraper, questions, last } = rig(3, { concurrency: 2 });
  await questions[0]?.answer();
  await last().answer();
  scraper[Symbol.dispose]();
  await settled();
  expect(clock.pendingTimers).toBe(0);
  expect(questions.map(({ signal }) => signal.aborted)).toEqual([false, true, false]);
  expect(scraper.stats).toMatchObject({ targets: 0, underWay: 0 });
});

describe('what the host gives', () => {
  it.each<[string, ScrapeOptions, object]>([
    [
      'a urlOf that throws',
      {
        urlOf: () => {
          throw new Error('no idea');
        },
      },
      { code: 'url', message: 'no idea' },
    ],
    [
      'a urlOf that makes no URL',
      { urlOf: () => 'ftp://x' },
      { code: 'url', message: 'no URL of http or https: ftp://x' },
    ],
    [
      'a profile that throws',
      {
        profile: () => {
          throw new Error('no idea');
        },
      },
      { code: 'profile', message: 'no idea' },
    ],
    ['a profile that is none', { profile: () => 'vlm' as never }, { code: 'profile' }],
    [
      'a fetch that throws',
      {
        fetch: () => {
          throw new Error('no net');
        },
      },
      { code: 'network', message: 'no net' },
    ],
    ['a fetch without a body', { fetch: () => Promise.resolve(new Response(null)) }, { code: 'no-metrics' }],
  ])('may fail: %s', async (_, options, error) => {
    const { scraper } = rig(1, options);
    await settled();
    expect(scraper.stats).toMatchObject({ failing: 1 });
    expect(scraper.stats.endpoints[0]?.lastError).toMatchObject(error);
  });

  it.each<[string, object, string[]]>([
    [
      'numbers',
      { intervalMs: 0, timeoutMs: '1s', concurrency: 1.5, jitter: 2, maxResponseBytes: -1 },
      ['intervalMs', 'timeoutMs', 'concurrency', 'jitter', 'maxResponseBytes'],
    ],
    ['functions', { urlOf: 1, fetch: {}, onWarning: 'x', random: 4 }, ['urlOf', 'fetch', 'onWarning', 'random']],
    ['headers', { headers: { a: 1 } }, ['headers']],
    ['a clock', { clock: {} }, ['clock']],
    ['a misspelt option', { interval: 50 }, ['interval']],
    ['a profile', { profile: { waitingQueueSize: '{' } }, ['waitingQueueSize']],
  ])('is refused: %s', (_, options, paths) => {
    let issues: readonly { path: string }[] = [];
    try {
      scrape(new EndpointPool(), options);
    } catch (error) {
      if (!(error instanceof FlowConfigError)) throw error;
      issues = error.issues;
    }
    expect(issues.map(({ path }) => path).sort()).toEqual([...paths].sort());
  });
});

describe('a warning', () => {
  function warningsOf(options: ScrapeOptions): ScrapeWarning[] {
    const warnings: ScrapeWarning[] = [];
    scrape(new EndpointPool(), { ...options, onWarning: (warning) => warnings.push(warning) }).stop();
    return warnings;
  }

  it('comes when the endpoints are stale between two scrapes', () => {
    expect(warningsOf({ intervalMs: 15_000 })).toMatchObject([
      { code: 'interval-exceeds-staleness', message: expect.stringContaining('up to 16500 ms pass') },
    ]);
    expect(warningsOf({ intervalMs: 190, jitter: 0.1 })).toHaveLength(1);
  });

  it('stays away when they are not', () => {
    expect(warningsOf({})).toEqual([]);
    expect(warningsOf({ intervalMs: 200, jitter: 0 })).toEqual([]);
    expect(warningsOf({ intervalMs: 15_000, stalenessThresholdMs: 60_000 })).toEqual([]);
  });

  it('that nobody can take does not keep it from starting', () => {
    const { scraper } = rig(1, {
      intervalMs: 1000,
      onWarning: () => {
        throw new Error('no');
      },
    });
    expect(scraper.stats.targets).toBe(1);
  });
});
