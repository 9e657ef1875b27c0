/** How seldom a pool is asked while nobody wants anything of it, and what its readings are worth meanwhile. */
import { Agent } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { concurrencyDetector, FlowController, scrapedConcurrency, utilizationDetector } from '../../../src/index.js';
import { EndpointPool, type ScrapeOptions, scrape, undiciFetch } from '../../../src/upstream/index.js';
import { dial, key, leaseOf, request, runNow } from '../../support/flow.js';
import { vllm } from './expositions.js';
import { modelServer } from './model-server.js';
import { makeRig, type Question, settled } from './scraper-rig.js';

/** Lets everything that is asked be answered for as long. */
async function answering(
  clock: { advance(ms: number): void },
  questions: readonly Question[],
  forMs: number,
): Promise<void> {
  let answered = 0;
  for (let i = 0; i <= forMs; i += 10) {
    for (; answered < questions.length; answered++) void questions[answered]?.answer();
    await settled();
    if (i < forMs) clock.advance(10);
  }
}

describe('while no request runs and none waits', () => {
  it('servers are asked once a second by default', async () => {
    const { clock, questions, instants } = makeRig(1);
    await answering(clock, questions, 3500);
    expect(instants()).toEqual([0, 1000, 2000, 3000]);
  });

  it('all of them are asked together, by one timer', async () => {
    const { clock, pool, questions, instants } = makeRig(3, { jitter: 0.1 });
    for (const question of questions) {
      clock.advance(5);
      await question.answer();
    }
    clock.advance(485);
    pool.add('late');
    await questions.at(-1)?.answer();
    expect(clock.pendingTimers).toBe(1);
    clock.advance(600);
    const round = instants().slice(4);
    expect(round).toHaveLength(4);
    expect(new Set(round).size).toBe(1);
    expect(round[0]).toBeGreaterThanOrEqual(900);
    expect(round[0]).toBeLessThanOrEqual(1100);
  });

  it('one that leaves is asked no more, and the last one takes the timer with it', async () => {
    const { clock, pool, questions } = makeRig(2);
    for (const question of questions) await question.answer();
    pool.remove('e0');
    expect(clock.pendingTimers).toBe(1);
    pool.remove('e1');
    expect(clock.pendingTimers).toBe(0);
  });

  it('the slow rhythm is off where its interval is not longer than the quick one', async () => {
    const { clock, questions, instants } = makeRig(1, { idleIntervalMs: 50 });
    await answering(clock, questions, 200);
    expect(instants()).toEqual([0, 50, 100, 150, 200]);
  });

  it('a pool without a controller is asked at the quick rhythm: nobody knows what its figures are for', async () => {
    const { clock, flow, questions, instants } = makeRig(1);
    await flow.close();
    await answering(clock, questions, 100);
    expect(instants()).toEqual([0, 50, 100]);
  });

  it('the host may say what idle means', async () => {
    const { clock, flow, questions, instants } = makeRig(1, { isIdle: () => true, idleIntervalMs: 150 });
    runNow(flow);
    await answering(clock, questions, 300);
    expect(instants()).toEqual([0, 150, 300]);
  });

  it('a function of the host that fails does not make metrics old', async () => {
    const isIdle: ScrapeOptions['isIdle'] = () => {
      throw new Error('no idea');
    };
    const { clock, questions, instants } = makeRig(1, { isIdle });
    await answering(clock, questions, 100);
    expect(instants()).toEqual([0, 50, 100]);
  });
});

describe('the first request after a rest', () => {
  it('that runs has the servers asked at once, and at the quick rhythm until it has ended', async () => {
    const { clock, flow, questions, instants } = makeRig(1);
    await answering(clock, questions, 400);
    const lease = runNow(flow);
    await answering(clock, questions, 130);
    expect(instants()).toEqual([0, 400, 450, 500]);
    lease.release();
    await answering(clock, questions, 1100);
    expect(instants().slice(4)).toEqual([550, 1550]);
  });

  it('that waits has the servers asked at once, and at the quick rhythm while it waits', async () => {
    const closed = dial(0);
    const { clock, flow, questions, instants } = makeRig(1, {}, closed);
    await answering(clock, questions, 400);
    closed.value = 1;
    const outcome = flow.enqueue(request, key());
    await answering(clock, questions, 130);
    expect(instants()).toEqual([0, 400, 450, 500]);
    closed.value = 0;
    await answering(clock, questions, 20);
    leaseOf(await outcome).release();
  });

  it('of any controller of the pool counts', async () => {
    const { clock, pool, questions, instants } = makeRig(1);
    const other = new FlowController({ pool, clock, saturationDetector: concurrencyDetector({ maxConcurrency: 9 }) });
    await answering(clock, questions, 400);
    const lease = runNow(other);
    clock.advance(0);
    expect(instants()).toEqual([0, 400]);
    lease.release();
    await other.close();
  });

  it('does not bring a question sooner than the quick rhythm would', async () => {
    const { clock, scraper, last, instants } = makeRig(1, { isIdle: () => false });
    await last().answer();
    clock.advance(30);
    scraper.wake();
    clock.advance(19);
    expect(instants()).toEqual([0]);
    clock.advance(1);
    expect(instants()).toEqual([0, 50]);
  });

  it('by the host’s word is one that wakes the scraper', async () => {
    let isIdle = true;
    const { clock, scraper, last, instants } = makeRig(1, { isIdle: () => isIdle });
    await last().answer();
    clock.advance(30);
    isIdle = false;
    scraper.wake();
    scraper.wake();
    clock.advance(20);
    expect(instants()).toEqual([0, 50]);
    await last().answer();
    clock.advance(50);
    expect(instants()).toEqual([0, 50, 100]);
  });

  it('changes nothing for a server that fails: it is asked when its back-off is over', async () => {
    const { clock, scraper, last, instants } = makeRig(1);
    await last().fail();
    scraper.wake();
    clock.advance(99);
    expect(instants()).toEqual([0]);
    clock.advance(1);
    expect(instants()).toEqual([0, 100]);
  });

  it('wakes no scraper that was stopped', async () => {
    const { clock, flow, scraper, last, questions } = makeRig(1);
    await last().answer();
    scraper.stop();
    runNow(flow);
    clock.advance(2000);
    expect(questions).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe.each([
  ['utilization-detector', (stalenessMs: number) => utilizationDetector({ metricsStalenessThreshold: stalenessMs })],
  [
    'scraped-concurrency-detector',
    (stalenessMs: number) => scrapedConcurrency({ metricsStalenessThreshold: stalenessMs }),
  ],
])('a reading of an idle server, to the %s,', (_, detector) => {
  it('is fresh until the next one is due: the first request waits for nothing', async () => {
    const { clock, flow, scraper, last } = makeRig(1, {}, detector(200));
    await last().answer();
    clock.advance(999);
    expect(scraper.stats).toMatchObject({ stale: 0, failing: 0 });
    expect(flow.tryEnqueue(request, key())?.type).toBe('Dispatched');
  });

  it('is stale when the next one is late by more than the threshold, and a request then waits for one that is not', async () => {
    const { clock, flow, scraper, last, instants } = makeRig(1, { timeoutMs: 1e6 }, detector(200));
    await last().answer();
    clock.advance(1200);
    expect(instants()).toEqual([0, 1000]);
    expect(scraper.stats.stale).toBe(0);
    clock.advance(1);
    expect(scraper.stats.stale).toBe(1);
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    const outcome = flow.enqueue(request, key());
    await last().answer(); // to a question that is 201 ms old
    clock.advance(0);
    expect(instants()).toEqual([0, 1000, 1201]);
    await last().answer();
    expect(flow.stats().waiting).toBe(0);
    leaseOf(await outcome).release();
  });

  it('is trusted no longer than the threshold after the first request, when the server died meanwhile', async () => {
    const { clock, flow, scraper, questions } = makeRig(1, { timeoutMs: 1e6 }, detector(200));
    await questions[0]?.answer();
    clock.advance(300);
    runNow(flow);
    clock.advance(200);
    expect(questions).toHaveLength(2);
    expect(scraper.stats.stale).toBe(0);
    clock.advance(1);
    expect(scraper.stats.stale).toBe(1);
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
  });

  it('that was stale when the first request came is not made fresh by it', async () => {
    const { clock, flow, scraper, last } = makeRig(1, { timeoutMs: 1e6 }, detector(200));
    await last().answer();
    clock.advance(1300);
    void flow.enqueue(request, key());
    clock.advance(0);
    expect(scraper.stats.stale).toBe(1);
  });
});

it('what headgate sent since a reading of an idle server counts as waiting there', async () => {
  const { clock, flow, last } = makeRig(1, {}, utilizationDetector({ queueDepthThreshold: 2 }));
  await last().answer(vllm({ waiting: 0 }));
  clock.advance(900);
  runNow(flow);
  runNow(flow);
  expect(flow.tryEnqueue(request, key())).toBeUndefined();
});

// No load can fail it: the reading is fresh for an hour, and the rest waits for events.
it('over real connections, an old reading of an idle server lets a request pass, which brings a new one', async () => {
  const server = await modelServer(vllm());
  const agent = new Agent();
  const pool = new EndpointPool();
  const flow = new FlowController({ pool, saturationDetector: utilizationDetector({ metricsStalenessThreshold: 1 }) });
  const reported = (): Promise<void> =>
    new Promise((resolve) => {
      const stop = pool.on('reported', () => {
        stop();
        resolve();
      });
    });
  const first = reported();
  pool.add('server', { labels: { address: server.address } });
  const scraper = scrape(pool, { idleIntervalMs: 3_600_000, fetch: undiciFetch(agent) });
  onTestFinished(async () => {
    scraper.stop();
    await flow.close();
    await agent.destroy();
  });
  await first;
  const endpoint = pool.get('server');
  while (endpoint?.reportDueAtMs === undefined || pool.now() - (endpoint.metrics?.sampledAtMs ?? 0) < 5)
    await settled();
  const second = reported();
  const lease = leaseOf(flow.tryEnqueue(request, key()));
  await second;
  lease.release();
  expect(server.requests.length).toBeGreaterThan(1);
  expect(server.connections).toBe(1);
});
