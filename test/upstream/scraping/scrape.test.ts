/** The scraper against real servers. */
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FlowController, utilizationDetector } from '../../../src/index.js';
import {
  EndpointPool,
  type PoolEvents,
  type ScrapeOptions,
  type Scraper,
  type ScraperEvents,
  scrape,
} from '../../../src/upstream/index.js';
import { mostCpuMsPerTurn } from '../../support/cpu-time.js';
import { dynamo, sglang, triton, trtllmServe, vllm } from './expositions.js';
import { answering, modelServer } from './model-server.js';

function scraping(pool: EndpointPool, options: ScrapeOptions = {}): Scraper {
  // No server of a busy machine is late, and no report old, unless a test means it to be.
  const scraper = scrape(pool, { intervalMs: 10, timeoutMs: 120_000, stalenessThresholdMs: 600_000, ...options });
  onTestFinished(() => scraper.stop());
  return scraper;
}

/** The next event that fits. */
function next<E extends keyof PoolEvents>(
  pool: EndpointPool,
  event: E,
  fits: (payload: PoolEvents[E]) => boolean = () => true,
): Promise<PoolEvents[E]> {
  return new Promise((resolve) => {
    const stop = pool.on(event, (payload) => {
      if (!fits(payload)) return;
      stop();
      resolve(payload);
    });
  });
}

function heard<E extends keyof ScraperEvents>(scraper: Scraper, event: E): Promise<ScraperEvents[E]> {
  return new Promise((resolve) => {
    const stop = scraper.on(event, (payload) => {
      stop();
      resolve(payload);
    });
  });
}

function statsOf(scraper: Scraper, id: string): Scraper['stats']['endpoints'][number] | undefined {
  return scraper.stats.endpoints.find((target) => target.id === id);
}

describe('a pool of real servers', () => {
  it('gets the load of each engine', async () => {
    const pool = new EndpointPool();
    const texts = { vllm, sglang, triton, 'trtllm-serve': trtllmServe, dynamo };
    for (const [id, text] of Object.entries(texts)) {
      const { address } = await modelServer(text({ waiting: id.length, running: 2, kv: 0.5 }));
      pool.add(id, { labels: { address } });
    }
    const scraper = scraping(pool);
    await Promise.all(Object.keys(texts).map((id) => next(pool, 'reported', (endpoint) => endpoint.id === id)));
    for (const { id, metrics } of pool.endpoints) {
      expect(metrics, id).toMatchObject({ waitingQueueSize: id.length, runningRequests: 2, kvCacheUsage: 0.5 });
      expect(statsOf(scraper, id)).toMatchObject({ profile: id, isFailing: false, isStale: false });
    }
    expect(scraper.stats).toMatchObject({ targets: 5, failing: 0, stale: 0 });
  });

  it('opens and closes the gate of a controller', async () => {
    const server = await modelServer(vllm({ waiting: 9 }));
    const pool = new EndpointPool();
    const flow = new FlowController({
      pool,
      saturationDetector: utilizationDetector({ metricsStalenessThreshold: '5s' }),
    });
    pool.add('a', { labels: { address: server.address } });
    scraping(pool);
    await next(pool, 'reported');
    const outcome = flow.enqueue({ byteSize: 1 }, { fairnessId: 'tenant' });
    expect(flow.stats().waiting).toBe(1);
    server.handler = answering(vllm({ waiting: 0 }));
    expect((await outcome).type).toBe('Dispatched');
    await flow.close();
  });

  it('is asked over connections that stay open, for plain text', async () => {
    const server = await modelServer(vllm());
    const pool = new EndpointPool();
    pool.add('a', { labels: { address: server.address } });
    scraping(pool, { intervalMs: 1, headers: { authorization: 'Bearer x' } });
    for (let i = 0; i < 20; i++) await next(pool, 'reported');
    expect(server.connections).toBe(1);
    expect(server.requests[0]).toMatchObject({
      method: 'GET',
      url: '/metrics',
      headers: { accept: 'text/plain;version=0.0.4', 'accept-encoding': 'identity', authorization: 'Bearer x' },
    });
  });
});

describe('the URL', () => {
  it.each<[string, (address: string) => { id?: string; labels?: Record<string, string> }, ScrapeOptions, string]>([
    [
      'the label metricsUrl',
      (address) => ({ labels: { metricsUrl: `http://${address}/m?x=1`, address: 'nowhere' } }),
      {},
      '/m?x=1',
    ],
    ['the label address', (address) => ({ labels: { address } }), { path: '/stats' }, '/stats'],
    [
      'an address with a scheme and a path',
      (address) => ({ labels: { address: `http://${address}/v1` } }),
      {},
      '/metrics',
    ],
    ['the id', (address) => ({ id: address }), {}, '/metrics'],
  ])('comes from %s', async (_, endpointAt, options, url) => {
    const server = await modelServer(vllm());
    const { id = 'a', labels = {} } = endpointAt(server.address);
    const pool = new EndpointPool();
    pool.add(id, { labels });
    const scraper = scraping(pool, options);
    await next(pool, 'reported');
    expect(server.requests[0]?.url).toBe(url);
    expect(statsOf(scraper, id)?.url).toBe(`http://${server.address}${url.replace(/\?.*/, '')}`);
  });

  it('comes from urlOf, and no answer means that the endpoint is left alone', async () => {
    const server = await modelServer(vllm());
    const pool = new EndpointPool();
    pool.add('a');
    pool.add('pushes');
    const scraper = scraping(pool, {
      urlOf: ({ id }) => (id === 'a' ? new URL(`http://${server.address}/x`) : undefined),
    });
    await next(pool, 'reported');
    expect(server.requests[0]?.url).toBe('/x');
    expect(scraper.stats.endpoints.map(({ id }) => id)).toEqual(['a']);
  });

  it('follows the labels', async () => {
    const [former, later] = [await modelServer(vllm({ waiting: 1 })), await modelServer(vllm({ waiting: 2 }))];
    const pool = new EndpointPool();
    pool.add('a', { labels: { address: former.address } });
    scraping(pool);
    await next(pool, 'reported', ({ metrics }) => metrics?.waitingQueueSize === 1);
    pool.update('a', { labels: { address: later.address } });
    await next(pool, 'reported', ({ metrics }) => metrics?.waitingQueueSize === 2);
    const asked = former.requests.length;
    for (let i = 0; i < 3; i++) await next(pool, 'reported');
    expect(former.requests).toHaveLength(asked);
  });
});

describe('membership', () => {
  it('decides who is asked', async () => {
    const [first, second] = [await modelServer(vllm({ waiting: 1 })), await modelServer(vllm({ waiting: 2 }))];
    const pool = new EndpointPool();
    const scraper = scraping(pool);
    expect(scraper.stats.targets).toBe(0);
    pool.add('a', { labels: { address: first.address } });
    await next(pool, 'reported');
    pool.remove('a');
    expect(scraper.stats.targets).toBe(0);
    const asked = first.requests.length;
    pool.add('b', { labels: { address: second.address } });
    for (let i = 0; i < 5; i++) await next(pool, 'reported');
    expect(first.requests).toHaveLength(asked);
    expect(pool.get('b')?.metrics).toMatchObject({ waitingQueueSize: 2 });
  });

  it('keeps the load of a server from its successor of the same name', async () => {
    let answer = (): void => {};
    const former = await modelServer((_, res) => {
      answer = () => void res.end(vllm({ waiting: 99 }));
    });
    const later = await modelServer(vllm({ waiting: 1 }));
    const pool = new EndpointPool();
    pool.add('a', { labels: { address: former.address } });
    scraping(pool);
    await expect.poll(() => former.requests.length).toBe(1);
    pool.remove('a');
    const successor = pool.add('a', { labels: { address: later.address } });
    answer();
    await next(pool, 'reported');
    await next(pool, 'reported');
    expect(successor.metrics).toMatchObject({ waitingQueueSize: 1 });
  });
});

describe('a server that misbehaves', () => {
  it.each<[string, Parameters<typeof modelServer>[0], string, RegExp]>([
    ['answers with an error', (_, res) => res.writeHead(503).end(vllm()), 'http-status', /^answered 503$/],
    [
      'sends elsewhere',
      (_, res) => res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      'network',
      /redirect/i,
    ],
    ['shows a web page', '<!doctype html>\n<title>m</title>', 'no-metrics', /^no metrics of vllm/],
    ['shows nothing', '', 'no-metrics', /^no metrics of vllm/],
    ['hangs up', (req) => req.socket.destroy(), 'network', /fetch failed/],
    ['hangs up in the middle', (req, res) => res.write(vllm(), () => req.socket.destroy()), 'network', /terminated/],
    ['never answers', () => {}, 'timeout', /^no answer within 2000 ms$/],
    ['never ends', (_, res) => res.write(vllm()), 'timeout', /^no answer within 2000 ms$/],
    ['sends too much', (_, res) => res.end(`#${'x'.repeat(100_001)}`), 'too-large', /^more than 100000 bytes$/],
  ])('that %s fails, and harms no other', async (_, handler, code, message) => {
    const [bad, good] = [await modelServer(handler), await modelServer(vllm({ waiting: 1 }))];
    const pool = new EndpointPool();
    pool.add('bad', { labels: { address: bad.address } });
    pool.add('good', { labels: { address: good.address } });
    const scraper = scraping(pool, { timeoutMs: code === 'timeout' ? 2000 : 120_000, maxResponseBytes: 100_000 });
    const { endpoint, error } = await heard(scraper, 'failed');
    expect([endpoint.id, error.code]).toEqual(['bad', code]);
    expect(error.message).toMatch(message);
    await next(pool, 'reported', ({ id }) => id === 'good');
    expect(pool.get('bad')?.metrics).toBeUndefined();
    expect(statsOf(scraper, 'bad')).toMatchObject({ isFailing: true, isStale: true, lastError: { code } });
    await expect.poll(() => statsOf(scraper, 'good')).toMatchObject({ isFailing: false, lastError: undefined });
  });

  it('sends for ever, and is cut off', async () => {
    let sent = 0;
    const line = 'vllm:num_requests_waiting{engine="0",a="b"} 1\n'.repeat(1000);
    const server = await modelServer((_, res) => {
      const send = (): void => {
        while (!res.destroyed && res.write(line)) sent += line.length;
      };
      res.on('drain', send);
      send();
    });
    const pool = new EndpointPool();
    pool.add('a', { labels: { address: server.address } });
    const mostMsPerTurn = mostCpuMsPerTurn();
    const scraper = scraping(pool, { maxResponseBytes: 4_000_000 });
    expect((await heard(scraper, 'failed')).error.code).toBe('too-large');
    scraper.stop();
    // The server of this test writes in the same process.
    expect(mostMsPerTurn()).toBeLessThan(1000);
    expect(sent).toBeLessThan(40_000_000);
    await expect.poll(() => server.requests.every(({ socket }) => socket.destroyed)).toBe(true);
  });

  it('is slow, and is asked one question at a time', async () => {
    const server = await modelServer((_, res) => setTimeout(() => res.end(vllm()), 60));
    const pool = new EndpointPool();
    pool.add('a', { labels: { address: server.address } });
    const scraper = scraping(pool, { intervalMs: 5 });
    for (let i = 0; i < 4; i++) await next(pool, 'reported');
    expect(server.mostUnderWay).toBe(1);
    expect(statsOf(scraper, 'a')?.lastDurationMs).toBeGreaterThan(40);
  });

  it('dies and returns: an outage is told from load', async () => {
    const server = await modelServer(vllm({ waiting: 4 }));
    const pool = new EndpointPool();
    pool.add('a', { labels: { address: server.address } });
    const scraper = scraping(pool, { stalenessThresholdMs: 50, maxBackoffMs: 40 });
    await next(pool, 'reported');
    await server.stop();
    const { error } = await heard(scraper, 'failed');
    expect(error.code).toBe('network');
    const sampledAtMs = pool.get('a')?.metrics?.sampledAtMs;
    await expect.poll(() => scraper.stats).toMatchObject({ failing: 1, stale: 1 });
    await expect.poll(() => scraper.stats.failures).toBeGreaterThan(1);
    expect(pool.get('a')?.metrics).toMatchObject({ waitingQueueSize: 4, sampledAtMs });
    await server.start();
    const { endpoint, failures, failedForMs } = await heard(scraper, 'recovered');
    expect(endpoint.id).toBe('a');
    expect(failures).toBeGreaterThan(1);
    expect(failedForMs).toBeGreaterThan(0);
    expect(scraper.stats).toMatchObject({ failing: 0, stale: 0 });
    expect(scraper.stats.failures).toBeGreaterThanOrEqual(failures);
  });
});

it('stop ends it at once, for good', async () => {
  const [quick, hanging] = [await modelServer(vllm()), await modelServer(() => {})];
  const pool = new EndpointPool();
  pool.add('quick', { labels: { address: quick.address } });
  pool.add('hanging', { labels: { address: hanging.address } });
  const scraper = scraping(pool);
  await next(pool, 'reported');
  await expect.poll(() => hanging.requests.length).toBe(1);
  const events: string[] = [];
  scraper.on('failed', () => events.push('failed'));
  pool.on('reported', () => events.push('reported'));
  scraper.stop();
  scraper.stop();
  await expect.poll(() => hanging.requests[0]?.socket.destroyed).toBe(true);
  const asked = quick.requests.length;
  pool.add('late', { labels: { address: quick.address } });
  // It would ask several times while another does.
  const other = new EndpointPool();
  other.add('elsewhere', { labels: { address: (await modelServer(vllm())).address } });
  scraping(other);
  for (let i = 0; i < 4; i++) await next(other, 'reported');
  expect(quick.requests).toHaveLength(asked);
  expect(events).toEqual([]);
  expect(scraper.stats).toMatchObject({ targets: 0, underWay: 0 });
});

it('a process that does nothing but scrape ends', async () => {
  const server = await modelServer(vllm({ waiting: 3 }));
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  const entry = `
    import { EndpointPool, scrape } from './src/upstream/index.js';
    const pool = new EndpointPool();
    pool.add('a', { labels: { address: '${server.address}' } });
    pool.on('reported', ({ metrics }) => console.log(metrics.waitingQueueSize));
    scrape(pool);`;
  const { outputFiles } = buildSync({
    stdin: { contents: entry, resolveDir: root },
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  });
  const file = `${root}test-results/scrape-and-end-${process.pid}.mjs`;
  writeFileSync(file, outputFiles[0]?.text ?? '');
  onTestFinished(() => rmSync(file));
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  child.stdout.on('data', (chunk) => {
    printed += chunk;
  });
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect(code).toBe(0);
  expect(printed).toMatch(/^3\n/);
});
