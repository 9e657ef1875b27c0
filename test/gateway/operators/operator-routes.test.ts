/** What operators are told where something of theirs fails. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Gauge, Registry } from 'prom-client';
import { expect, it, onTestFinished } from 'vitest';
import type { BodyReader } from '../../../src/gateway/bodies/body-reader.js';
import { type OperatorState, operatorRoutes } from '../../../src/gateway/operators/operator-routes.js';
import { exposition } from '../../../src/observability/prometheus/index.js';

it('metrics that cannot be read are an error with its status, and no empty answer', async () => {
  const register = new Registry();
  new Gauge({
    name: 'broken',
    help: 'A metric of the host that fails.',
    registers: [register],
    collect() {
      throw new Error('the disk is gone');
    },
  });
  const state: Partial<OperatorState> = {
    register: {
      contentType: register.contentType,
      parts: () => exposition(register),
      json: () => register.getMetricsAsJSON(),
    },
    demand: { path: '/demand', token: undefined },
  };
  const routes = operatorRoutes(() => state as OperatorState, {} as BodyReader);
  const server = createServer((req, res) => {
    routes('/metrics', req, res).catch((error: Error) => {
      if (res.headersSent) res.destroy();
      else res.writeHead(500).end(error.message);
    });
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
  expect(answer.status).toBe(500);
  expect(await answer.text()).toBe('the disk is gone');
});
