/** Servers that fall ill, and servers that do not report their load, over real sockets. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { probe } from '../../../src/gateway/cli/probe-upstreams.js';
import { until } from '../../integration/support/until.js';
import { errorOf, fileOf, startGateway } from '../support/gateway.js';
import { startUpstream } from '../support/upstream.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] };

/**
 * A server that answers `hello` to every POST, and is well or ill as the test says; it has no metrics unless they are
 * given.
 */
async function plainServer(metrics?: string) {
  const state = { isWell: true, isSilent: false, silences: 0, answers: 0, metrics };
  const server = createServer((req, res) => {
    req.resume();
    if (req.url === '/health' && state.isSilent) state.silences++;
    else if (req.url === '/health')
      res
        .on('finish', () => state.answers++)
        .writeHead(state.isWell ? 200 : 500)
        .end();
    else if (req.url === '/metrics' && state.metrics !== undefined) res.end(state.metrics);
    else if (req.method === 'GET') res.writeHead(404).end();
    else res.setHeader('content-type', 'application/json').end('{"hello":1}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe('when every server is ill', () => {
  it('the gateway is not ready, says so once, and drops name the cause; then it goes on', async () => {
    const { state, url } = await plainServer();
    const upstream = { id: 'u0', url, healthPath: '/health' };
    const more = { health: { interval: '20ms' } };
    const file = fileOf([upstream], more) as { flowControl: object };
    const { gateway, log, post } = await startGateway({
      ...file,
      flowControl: { ...file.flowControl, noEndpointRequestTTL: '50ms' },
    });
    state.isWell = false;
    await until('the outage is noticed', () => log.some(({ event }) => event === 'no-endpoints'));
    const ready = await fetch(`${gateway.url}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toEqual({ status: 'no-endpoints', endpoints: 1, available: 0 });
    const error = await errorOf(await post(chat));
    expect(error).toMatchObject({ status: 503 });
    expect(error.message).toContain('every server is ill');
    state.isWell = true;
    await until('the server is back', () => log.some(({ event }) => event === 'endpoints-back'));
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    expect((await post(chat)).status).toBe(200);
    expect(log.filter(({ event }) => event === 'no-endpoints')).toHaveLength(1);
  });
});

describe('one health check that goes wrong', () => {
  it('takes no work from a server that answers well before and after it', async () => {
    const { state, url } = await plainServer();
    const more = { health: { interval: '20ms', timeout: '20ms' } };
    const { log } = await startGateway(fileOf([{ id: 'u0', url, healthPath: '/health' }], more));
    state.isSilent = true;
    await until('a check came', () => state.silences === 1);
    state.isSilent = false;
    const { answers } = state;
    await until('it has answered again', () => state.answers >= answers + 3);
    expect(log.filter(({ event }) => event === 'upstream-ill' || event === 'no-endpoints')).toEqual([]);
  });
});

describe('when all servers are silent at once', () => {
  it('the checks are suspected, loudly and in the metrics, and no server loses its work', async () => {
    const servers = await Promise.all([plainServer(), plainServer()]);
    const upstreams = servers.map(({ url }, index) => ({ id: `u${index}`, url, healthPath: '/health' }));
    const more = { health: { interval: '20ms', timeout: '20ms', failures: 2, successes: 2 } };
    const { gateway, log, post } = await startGateway(fileOf(upstreams, more));
    for (const { state } of servers) state.isSilent = true;
    await until('the checks are suspected', () => log.some(({ event }) => event === 'health-suspect'));
    expect((await post(chat)).status).toBe(200);
    expect(await (await fetch(`${gateway.url}/metrics`)).text()).toMatch(
      /headgate_upstream_health_checks_total\{endpoint="u0",result="disregarded"\} [1-9]/,
    );
    for (const { state } of servers) state.isSilent = false;
    await until('they are trusted again', () => log.some(({ event }) => event === 'health-trusted'));
    expect(log.filter(({ event }) => event === 'upstream-ill' || event === 'no-endpoints')).toEqual([]);
  });
});

describe('when no server reports its load', () => {
  it('a file that names no detector gets one that counts, loudly, until a server reports', async () => {
    const { state, url } = await plainServer();
    const { gateway, log, post } = await startGateway({ listen: { port: 0 }, upstreams: [{ id: 'u0', url }] });
    expect((await post(chat)).status).toBe(200);
    const warning = log.find(({ event }) => event === 'no-load-reports');
    expect(warning).toMatchObject({ level: 'warn', fields: { maxConcurrency: 16 } });
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    state.metrics = 'vllm:num_requests_waiting 0\nvllm:num_requests_running 0\nvllm:kv_cache_usage_perc 0\n';
    await until('a server reports', () => log.some(({ event }) => event === 'load-reports'));
    expect((await post(chat)).status).toBe(200);
  });

  it('a file that names one that needs reports is not ready, and drops say why', async () => {
    const { url } = await plainServer();
    const { gateway, log, post } = await startGateway({
      listen: { port: 0 },
      upstreams: [{ id: 'u0', url }],
      saturationDetector: { pluginRef: 'utilization-detector' },
      flowControl: { noEndpointRequestTTL: '50ms' },
    });
    await until('it is told', () => log.some(({ event, level }) => event === 'no-load-reports' && level === 'error'));
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(503);
    expect((await errorOf(await post(chat))).message).toContain('no server reports its load');
  });

  it('check --probe finds it, and servers that are not there', async () => {
    const { url } = await plainServer();
    const file = (servers: object[]): string => JSON.stringify({ listen: { port: 0 }, upstreams: servers });
    const blind = await probe(file([{ id: 'u0', url }]));
    expect(blind).toHaveLength(2);
    expect(blind[0]).toContain('upstream u0 reports no load');
    expect(blind[1]).toContain('no server reports its load: a guess of 16');
    expect(await probe(file([{ id: 'u0', url: (await startUpstream()).url }]))).toEqual([]);
    const [absent] = await probe(file([{ id: 'u1', url: 'http://127.0.0.1:9' }]));
    expect(absent).toContain('upstream u1 does not answer');
  });
});
