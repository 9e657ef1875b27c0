import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Agent } from 'undici';
import { afterAll, describe, expect, it } from 'vitest';
import { EndpointPool, type ScrapeError, scrape, undiciFetch } from '../../../src/upstream/index.js';
import { vllm } from './expositions.js';
import { answering, modelServer } from './model-server.js';

const agent = new Agent();
afterAll(() => agent.destroy());

const options = { fetch: undiciFetch(agent), intervalMs: 5 };

/** The first failure of the only endpoint. */
function firstFailure(address: string, timeoutMs = 60_000): Promise<ScrapeError> {
  const pool = new EndpointPool();
  const scraper = scrape(pool, { ...options, timeoutMs });
  return new Promise((resolve) => {
    scraper.on('failed', ({ error }) => {
      scraper.stop();
      resolve(error);
    });
    pool.add('server', { labels: { address } });
  });
}

describe('scraping by an agent of undici', () => {
  it('reads the load, over one connection that stays open, with the query and the headers that were asked for', async () => {
    const server = await modelServer(vllm());
    const pool = new EndpointPool();
    const reported = new Promise<number>((resolve) => {
      let count = 0;
      pool.on('reported', () => ++count === 3 && resolve(count));
    });
    const scraper = scrape(pool, { ...options, headers: { authorization: 'Bearer secret' } });
    pool.add('server', { labels: { metricsUrl: `http://${server.address}/load?engine=0` } });
    await reported;
    scraper.stop();
    expect(pool.endpoints[0]?.metrics).toBeDefined();
    expect(server.connections).toBe(1);
    expect(server.requests[0]).toMatchObject({ url: '/load?engine=0', headers: { authorization: 'Bearer secret' } });
  });

  it('takes an error status for no answer, and a redirect too, which it does not follow', async () => {
    const elsewhere = await modelServer(vllm());
    const failing = await modelServer((_, res) => res.writeHead(500).end('no'));
    const moved = await modelServer((_, res) =>
      res.writeHead(302, { location: `http://${elsewhere.address}/metrics` }).end(),
    );
    expect(await firstFailure(failing.address)).toMatchObject({ code: 'http-status', message: 'answered 500' });
    expect(await firstFailure(moved.address)).toMatchObject({ code: 'http-status', message: 'answered 302' });
    expect(elsewhere.requests).toEqual([]);
  });

  it('lets go of the connection when an answer does not come, or does not end, in time', async () => {
    let answers: ServerResponse | undefined;
    const silent = await modelServer((_, res) => {
      answers = res;
    });
    expect(await firstFailure(silent.address, 20)).toMatchObject({ code: 'timeout' });
    if (answers?.destroyed === false) await once(answers, 'close');
    const half = await modelServer((_, res) => {
      answers = res;
      res.write(vllm().slice(0, 40));
    });
    expect(await firstFailure(half.address, 20)).toMatchObject({ code: 'timeout' });
    if (answers?.destroyed === false) await once(answers, 'close');
  });

  it('tells that nobody is there, and recovers', async () => {
    const server = await modelServer(answering(vllm()));
    await server.stop();
    expect(await firstFailure(server.address)).toMatchObject({ code: 'network' });
  });
});
