/** Calls that are aborted at random moments. Whatever happens, every lease comes back once and nobody waits. */

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, fetch, request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { flowControl } from '../../../src/adapters/undici/index.js';
import { inFlightEviction } from '../../../src/core/eviction.js';
import { countingGate } from '../../integration/support/counting-gate.js';
import { seededRandom } from '../../integration/support/random.js';
import { until } from '../../integration/support/until.js';

const calls = 600;
const atATime = 30;

it.each([1, 2, 3])(`${calls} calls, seed %d`, async (seed) => {
  const random = seededRandom(seed);
  const server = http.createServer((req, res) => {
    req.resume();
    void delay(random.between(0, 3)).then(async () => {
      if (random.next() < 0.1) return res.destroy();
      for (let i = random.between(0, 3); i > 0; i -= 1) {
        res.write('x'.repeat(random.pick([1, 100_000])));
        await delay(1);
      }
      return random.next() < 0.1 ? res.destroy() : res.end('end');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ connections: 4 });
  onTestFinished(async () => {
    await agent.destroy();
    server.closeAllConnections();
    server.close();
  });

  const gate = countingGate(8, {
    limits: { maxRequests: 20 },
    defaultRequestTtl: '100ms',
    eviction: inFlightEviction(),
  });
  const classify = () => ({ fairnessId: `tenant ${random.between(1, 3)}`, priority: random.pick([-10, 0, 100]) });
  const dispatcher = agent.compose(flowControl(gate, { classify }));

  async function call(): Promise<void> {
    const caller = new AbortController();
    const timer = random.next() < 0.5 ? setTimeout(() => caller.abort(), random.between(0, 25)) : undefined;
    const body = random.next() < 0.5 ? 'x'.repeat(30_000) : null;
    const options = { dispatcher, signal: caller.signal, ...(body !== null && { method: 'POST', body }) };
    const url = `http://localhost:${port}/`;
    const done =
      random.next() < 0.5
        ? fetch(url, options).then((res) => res.text())
        : request(url, options).then((res) => res.body.text());
    await done.catch(() => {});
    clearTimeout(timer);
  }
  let next = 0;
  async function callInTurn(): Promise<void> {
    while (next < calls) {
      next += 1;
      await call();
      await delay(random.between(0, 3));
    }
  }
  await Promise.all(Array.from({ length: atATime }, callInTurn));

  const { flow, releases } = gate;
  await until(
    () => `none in flight or waiting: ${JSON.stringify(flow.stats())}`,
    () => flow.stats().inFlight === 0 && flow.stats().waiting === 0,
  );
  const { dispatched, released, outcomes } = flow.stats();
  expect(released).toBe(dispatched);
  expect(releases.filter((count) => count !== 1)).toEqual([]);
  // The storm was one: calls ran, and were given up while they waited.
  expect(dispatched).toBeGreaterThan(0);
  expect(outcomes.EvictedContextCancelled + outcomes.EvictedTTL + outcomes.RejectedCapacity).toBeGreaterThan(10);
});
