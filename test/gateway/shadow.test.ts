/**
 * The gateway in shadow mode, from a file: nothing is held or dropped, everything is told as it would be, and a reload
 * turns it on for real.
 */

import { expect, it } from 'vitest';
import { loadGatewayConfig } from '../../src/gateway/index.js';
import { overviewOf } from '../../src/index.js';
import { until } from '../integration/support/until.js';
import { fileOf, startGateway } from './support/gateway.js';
import { type Answer, serve, startUpstream } from './support/upstream.js';

const body = { model: 'm', messages: [] };

function fileWith(url: string, mode: string): object {
  const flowControl = {
    mode,
    saturationDetector: { pluginRef: 'concurrency-detector' },
    maxRequests: 1,
    overflow: 'reject',
    defaultRequestTTL: '60s',
  };
  return fileOf([url], { flowControl, log: { requests: true } });
}

/** A server that answers when the test says so. */
async function slowServer() {
  const held: Parameters<Answer>[] = [];
  const upstream = await startUpstream((...given) => void held.push(given));
  const answerAll = (): void => {
    for (const given of held.splice(0)) serve(...given);
  };
  return { upstream, answerAll };
}

it('lets everything through, and says what would have been', async () => {
  const { upstream, answerAll } = await slowServer();
  const { gateway, post, log } = await startGateway(fileWith(upstream.url, 'shadow'));
  const answers = Array.from({ length: 4 }, () => post(body));
  // One seat, one place in the queue, and all four are with the server.
  await until('four requests at the server', () => upstream.received.length === 4);
  const { stats } = overviewOf(gateway.flow);
  expect(stats).toMatchObject({ inFlight: 1, waiting: 1, rejected: 2 });
  expect(stats.shadow).toMatchObject({
    passed: 4,
    running: 4,
    wouldHaveWaited: 1,
    wouldHaveBeenDropped: [{ outcome: 'RejectedCapacity', reason: 'global-max-requests', requests: 2 }],
  });
  answerAll();
  expect(await Promise.all(answers.map(async (answer) => (await answer).status))).toEqual([200, 200, 200, 200]);
  await until('four lines', () => log.filter(({ event }) => event === 'request').length === 4);
  const lines = log
    .filter(({ event }) => event === 'request')
    .map(({ fields }) => [fields.status, fields.reason, fields.wouldDrop]);
  expect(lines.filter(([, reason]) => reason !== undefined)).toEqual([]);
  expect(lines.filter(([, , would]) => would === 'global-max-requests')).toHaveLength(2);
});

it('is turned on for real by a reload', async () => {
  const { upstream, answerAll } = await slowServer();
  const { gateway, post } = await startGateway(fileWith(upstream.url, 'shadow'));
  const passed = [post(body), post(body)];
  await until('two requests at the server', () => upstream.received.length === 2);
  gateway.reconfigure(loadGatewayConfig(fileWith(upstream.url, 'queue')));
  expect(gateway.flow.isShadow).toBe(false);
  const third = post(body);
  await until('a request that waits', () => gateway.flow.stats().waiting === 1);
  expect((await post(body)).status).toBe(429);
  expect(upstream.received).toHaveLength(2);
  answerAll();
  await until('the third at the server', () => upstream.received.length === 3);
  answerAll();
  expect((await third).status).toBe(200);
  await Promise.all(passed);
});

it('refuses nothing but what no server could take', async () => {
  const { post } = await startGateway(fileWith('http://127.0.0.1:1', 'shadow'));
  expect((await post(body)).status).toBe(502);
});
