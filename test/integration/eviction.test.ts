/** What a client sees of a request that is evicted while it runs, over real sockets. */
import { describe, expect, it } from 'vitest';
import type { RequestFlow } from '../../src/adapters/node/index.js';
import type { Host, Io } from './support/application.js';
import { countingGate } from './support/counting-gate.js';
import { hosts } from './support/hosts.js';
import { type Running, start } from './support/start.js';
import { until } from './support/until.js';

const priorities = { batch: -10, premium: 100 } as const;

describe.each(hosts)('$name', (host: Host) => {
  /** One seat. `/batch` runs `batch`, `/premium` is answered at once. */
  async function evicting(batch: (io: Io) => Promise<void> | void): Promise<Running & { running: RequestFlow[] }> {
    const running: RequestFlow[] = [];
    const started = await start(host, {
      gate: countingGate(1, { eviction: {} }),
      options: {
        trust: true,
        objectives: priorities,
      },
      async handler(io) {
        if (io.flow !== undefined) running.push(io.flow);
        if (io.path === '/premium') io.send(200, 'premium');
        else await batch(io);
      },
    });
    return { ...started, running };
  }

  function ask({ client }: Running, name: keyof typeof priorities) {
    return client.request({ path: `/${name}`, headers: { 'x-gateway-inference-objective': name } });
  }

  it('answers 429 evicted-priority when no byte was sent, and the premium request goes', async () => {
    const server = await evicting(() => new Promise(() => {}));
    const batch = ask(server, 'batch');
    await until('batch runs', () => server.running.length === 1);
    const premium = ask(server, 'premium');
    expect(await batch.status).toBe(429);
    expect(await batch.headers).toMatchObject({ 'x-llm-d-request-dropped-reason': 'evicted-priority' });
    expect(JSON.parse(await batch.text)).toMatchObject({ code: 'ERR_FLOW_EVICTED', outcome: 'EvictedOther', status: 429 });
    expect(await premium.text).toBe('premium');
    await until('all seats are free', () => server.gate.flow.stats().inFlight === 0);
  });

  it('leaves the answer to a handler that heeds the signal', async () => {
    const server = await evicting(
      (io) => new Promise((_, reject) => io.flow?.signal.addEventListener('abort', () => reject(io.flow?.signal.reason), { once: true })),
    );
    const batch = ask(server, 'batch');
    await until('batch runs', () => server.running.length === 1);
    const premium = ask(server, 'premium');
    expect(await batch.status).toBe(429);
    expect(await premium.text).toBe('premium');
  });

  it('breaks a stream off that has begun', async () => {
    const server = await evicting((io) => {
      io.stream().write('data: 1\n\n');
    });
    const batch = ask(server, 'batch');
    const broken = batch.text.then(
      () => 'ended',
      () => 'broken off',
    );
    await until('the stream has begun', () => batch.received() !== '');
    const premium = ask(server, 'premium');
    expect(await broken).toBe('broken off');
    expect(await premium.text).toBe('premium');
    await until('all seats are free', () => server.gate.flow.stats().inFlight === 0);
    expect(server.gate.releases.every((count) => count === 1)).toBe(true);
  });
});
