/** Replicas of the real gateway behind one limit, over real sockets, with the store killed under load. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkSource } from '../../../src/gateway/cli/check-source.js';
import { loadGatewayConfig } from '../../../src/gateway/index.js';
import { fileOf, type Started, startGateway } from '../../gateway/support/gateway.js';
import { serve, startUpstream } from '../../gateway/support/upstream.js';
import { freePort } from '../../support/free-port.js';
import { Store, storeKinds } from '../support/stores.js';
import { describeWithStores, until } from '../support/with-store.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }], stream: true };
const leaseMs = 1_500;
const timing = { refreshInterval: '200ms', leaseDuration: `${leaseMs}ms`, callTimeout: '100ms', drainDuration: '1s' };

function sharedFile(url: string, store: string, more: object = {}): object {
  const sharedState = { url: store, pool: 'chat', maxConcurrency: 8, replicas: 2, ...timing, ...more };
  return fileOf([url], { sharedState }, 1_000);
}

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.floor(sorted.length * share)] ?? Number.NaN;

describe.runIf(storeKinds.length > 0)('two gateways with shared state', () => {
  it('keep one limit, and fail no request, while the store is killed and comes back empty', {
    timeout: 60_000,
  }, async () => {
    const store = await Store.start(storeKinds[0]!);
    onTestFinished(() => store.stop());
    let running = 0;
    let most = 0;
    const upstream = await startUpstream((received, index) => {
      running++;
      most = Math.max(most, running);
      setTimeout(
        () => {
          running--;
          serve(received, index);
        },
        20 + (index % 7) * 10,
      );
    });
    const gateways: Started[] = [];
    for (let i = 0; i < 2; i++) gateways.push(await startGateway(sharedFile(upstream.url, store.url)));
    const limits = (): number[] => gateways.map(({ gateway }) => gateway.flow.stats().inFlight);
    await until(() => gateways.every(({ log }) => log.every(({ event }) => event !== 'lease-expired')), limits);

    const waits: { readonly atMs: number; readonly ttftMs: number }[] = [];
    const failures: number[] = [];
    let isOver = false;
    async function client(index: number): Promise<void> {
      while (!isOver) {
        const startedAtMs = performance.now();
        const response = await (gateways[index % 2] as Started).post(chat);
        waits.push({ atMs: startedAtMs, ttftMs: performance.now() - startedAtMs });
        if (response.status !== 200) failures.push(response.status);
        await response.text();
      }
    }
    const clients = Array.from({ length: 24 }, (_, index) => client(index));
    const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
    await until(() => waits.length > 50);
    await pause(500);
    const killedAtMs = performance.now();
    await store.kill();
    await pause(2 * leaseMs);
    // The safe shares keep serving after the lease is over.
    await until(() => waits.filter(({ atMs }) => atMs > killedAtMs + leaseMs).length > 20);
    const upAtMs = performance.now();
    await store.up();
    await until(
      () => gateways.every(({ log }) => log.some(({ event }) => event === 'lease-recovered')),
      () => gateways.map(({ log }) => log.map(({ event }) => event)),
    );
    const recoveredMs = performance.now() - upAtMs;
    await pause(leaseMs);
    isOver = true;
    await Promise.all(clients);

    expect(failures).toEqual([]);
    expect(most).toBeLessThanOrEqual(8);
    const during = waits
      .filter(({ atMs }) => atMs > killedAtMs && atMs < upAtMs)
      .map(({ ttftMs }) => ttftMs)
      .sort((a, b) => a - b);
    const before = waits
      .filter(({ atMs }) => atMs < killedAtMs)
      .map(({ ttftMs }) => ttftMs)
      .sort((a, b) => a - b);
    const shown = (sorted: readonly number[]): string =>
      [0.5, 0.9, 0.99].map((share) => `${Math.round(percentile(sorted, share))} ms`).join(' / ');
    console.log(
      `TTFT p50/p90/p99 before ${shown(before)}, without the store ${shown(during)}; answered again after ${Math.round(recoveredMs)} ms`,
    );
    const events = new Set(gateways.flatMap(({ log }) => log.map(({ event }) => event)));
    expect([...events]).toEqual(
      expect.arrayContaining([
        'shared-state',
        'shared-state-breaker',
        'lease-expired',
        'lease-recovered',
        'shared-state-lost',
      ]),
    );
  });
});

describeWithStores('a gateway with shared state', (store) => {
  it('shows its share among the metrics, and takes another limit without a restart', async () => {
    const upstream = await startUpstream();
    const { gateway, config } = await startGateway(sharedFile(upstream.url, store().url, { pool: 'metrics' }));
    const metric = async (name: string): Promise<number> => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      return Number(new RegExp(`^headgate_shared_${name}\\{[^}]*\\} (.*)$`, 'm').exec(text)?.[1]);
    };
    const becomes = async (name: string, value: number): Promise<void> => {
      for (let i = 0; i < 200 && (await metric(name)) !== value; i++)
        await new Promise((resolve) => setTimeout(resolve, 20));
      expect(await metric(name)).toBe(value);
    };
    await becomes('granted', 8);
    expect(await metric('lease_expired')).toBe(0);
    expect(await metric('engine_breaker_open')).toBe(0);
    const shared = config.sharedState!;
    expect(gateway.reconfigure({ ...config, sharedState: { ...shared, limit: 5 } })).toEqual([]);
    await becomes('granted', 5);
    expect(gateway.reconfigure({ ...config, sharedState: undefined })).toEqual(['sharedState']);
  });
});

describeWithStores('two gateways with a quota of their provider', (store) => {
  it('let go what one quota allows, also after a reload', { timeout: 30_000 }, async () => {
    let received = 0;
    const upstream = await startUpstream((request, index) => {
      received++;
      serve(request, index);
    });
    // One request in six minutes comes back: the load of the machine changes nothing.
    const limit = 20;
    const fileWith = (burst: number): object => ({
      ...fileOf([upstream.url], {
        plugins: [
          {
            type: 'quota-detector',
            parameters: { groups: [{ name: 'account', quotas: [{ unit: 'requests', limit: 10, per: '1h', burst }] }] },
          },
        ],
        flowControl: { saturationDetector: { pluginRef: 'quota-detector' } },
        sharedState: { url: store().url, pool: 'provider', quotas: true, replicas: 2, callTimeout: '5s' },
      }),
    });
    const gateways = [await startGateway(fileWith(limit)), await startGateway(fileWith(limit))];
    // More than the quota allows: the others wait, or are told when to come back.
    for (let i = 0; i < limit; i++) for (const { post } of gateways) post(chat).catch(() => {});
    // A quarter of the burst at most lies unused.
    await until(
      () => received >= (limit * 3) / 4 - 1,
      () => received,
    );
    expect(received).toBeLessThanOrEqual(limit);
    const [first] = gateways as [Started];
    expect(first.gateway.flow.figures().quotas?.quotas).toMatchObject([
      { group: 'account', isShared: true, limit: 10 },
    ]);
    expect(await (await fetch(`${first.gateway.url}/metrics`)).text()).toMatch(
      /^headgate_shared_quota_limit\{.*\} 10$/m,
    );
    // The next detector draws from the same quota.
    expect(first.gateway.reconfigure(loadGatewayConfig(fileWith(limit - 0.5)))).toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(received).toBeLessThanOrEqual(limit);
  });
});

describeWithStores('a gateway with a quota of its provider', (store) => {
  it('goes on by it when another configuration is refused', async () => {
    const upstream = await startUpstream();
    const fileWith = (limit: number): object =>
      fileOf([upstream.url], {
        plugins: [{ type: 'quota-detector', parameters: { groups: [{ quotas: [{ unit: 'requests', limit }] }] } }],
        flowControl: { saturationDetector: { pluginRef: 'quota-detector' } },
        sharedState: { url: store().url, pool: 'refused', quotas: true, replicas: 1, callTimeout: '5s' },
      });
    const { gateway, post } = await startGateway(fileWith(100_000));
    expect((await post(chat)).status).toBe(200);
    const next = loadGatewayConfig(fileWith(200_000));
    expect(() => gateway.reconfigure({ ...next, flow: { ...next.flow, maxBands: 0 } })).toThrow('maxBands');
    expect(gateway.flow.figures().quotas?.quotas).toMatchObject([{ isShared: true, limit: 100_000 }]);
    expect((await post(chat)).status).toBe(200);
  });
});

describe('a gateway file with shared state', () => {
  const base = 'listen: { port: 0 }\nupstreams: [{ id: a, url: "http://a" }]\n';
  const check = (section: string, more = ''): ReturnType<typeof checkSource> =>
    checkSource(`${base}sharedState: ${section}\n${more}`);

  it.each([
    ['{ url: "redis://a", pool: chat }', 'sharedState'],
    ['{ url: "redis://a", maxConcurrency: 1, maxTokens: 2 }', 'sharedState'],
    ['{ url: "http://user:secret@a", maxConcurrency: 1 }', 'sharedState.url'],
    ['{ url: "redis://user:secret#1@a:6379", maxConcurrency: 1 }', 'sharedState.url'],
    ['{ url: "redis://user:secret/1@a:6379", maxConcurrency: 1 }', 'sharedState.url'],
    ['{ url: "redis://user:secret%@a:6379", maxConcurrency: 1 }', 'sharedState.url'],
    ['{ maxConcurrency: 1 }', 'sharedState'],
    ['{ url: "redis://a", cluster: ["redis://b"], maxConcurrency: 1 }', 'sharedState'],
    ['{ cluster: [], maxConcurrency: 1 }', 'sharedState.cluster'],
    ['{ cluster: "redis://:secret@a", maxConcurrency: 1 }', 'sharedState.cluster'],
    ['{ cluster: ["redis://a", "redis:secret"], maxConcurrency: 1 }', 'sharedState.cluster[1]'],
    ['{ cluster: ["redis://a", "rediss://b"], maxConcurrency: 1 }', 'sharedState.cluster'],
    ['{ cluster: ["redis://:secret@a", "redis://b"], maxConcurrency: 1 }', 'sharedState.cluster'],
    ['{ cluster: ["redis://a/2"], maxConcurrency: 1 }', 'sharedState.cluster'],
    ['{ sentinel: { nodes: ["redis://a"] }, maxConcurrency: 1 }', 'sharedState.sentinel.name'],
    ['{ sentinel: "redis://:secret@a", maxConcurrency: 1 }', 'sharedState.sentinel'],
    ['{ sentinel: { name: p, nodes: ["redis://a/1"] }, maxConcurrency: 1 }', 'sharedState.sentinel.nodes'],
    ['{ url: "redis://:secret@a", password: secret2, maxConcurrency: 1 }', 'sharedState.password'],
    ['{ url: "redis://a", username: u, maxConcurrency: 1 }', 'sharedState.username'],
    ['{ url: "redis://a", tls: { ca: secret }, maxConcurrency: 1 }', 'sharedState.tls'],
    ['{ url: "rediss://a", tls: { cert: secret }, maxConcurrency: 1 }', 'sharedState.tls'],
    ['{ url: "rediss://a", tls: { CA: secret }, maxConcurrency: 1 }', 'sharedState.tls.CA'],
    ['{ url: "redis://a?family=6", maxConcurrency: 1 }', 'sharedState.url'],
    ['{ url: "redis://a", maxConcurrency: 0 }', 'sharedState.maxConcurrency'],
    ['{ url: "redis://a", maxConcurrency: 1, pool: "a b" }', 'sharedState.pool'],
    ['{ url: "redis://a", maxConcurrency: 1, leaseDuration: 1s }', 'sharedState.leaseDuration'],
    ['{ url: "redis://a", maxConcurrency: 1, fallback: open }', 'sharedState.fallback'],
    ['{ url: "redis://a", maxConcurency: 1 }', 'sharedState.maxConcurency'],
    ['{ url: "redis://a", quotas: false }', 'sharedState'],
    ['{ url: "redis://a", maxConcurrency: 1, quotas: maybe }', 'sharedState.quotas'],
  ])('is refused with the place of the fault: %s', (section, path) => {
    const { faults } = check(section);
    expect(faults.map((fault) => fault.path)).toContain(path);
    expect(JSON.stringify(faults)).not.toContain('secret');
  });

  it('is explained by the check: what is shared, and what is not', () => {
    const { effective } = check(
      '{ url: "redis://:secret@a", maxConcurrency: 64, pool: chat, replicas: 3, drainDuration: 30m }',
    );
    const shown = JSON.stringify(effective);
    expect(shown).toContain('64 requests in flight, as pool \\"chat\\"');
    expect(shown).not.toContain('secret');
    expect(JSON.stringify(checkSource(base).effective)).toContain('nothing: every limit is that of one replica');
  });

  it('is warned of where limits hold in each replica', () => {
    const plugins =
      'plugins:\n- { type: concurrency-detector }\n- { type: token-bucket }\nflowControl: { saturationDetector: { pluginRef: concurrency-detector } }\n';
    const { warnings, faults } = check('{ url: "redis://a", maxConcurrency: 2 }', plugins);
    expect(faults).toEqual([]);
    expect(warnings.join('\n')).toMatch(/concurrency-detector: its limits hold in each replica/);
    expect(warnings.join('\n')).toMatch(/token-bucket: its rate holds in each replica/);
    expect(warnings.join('\n')).toMatch(/drainDuration is 1 min, but a request may take 30 min/);
    expect(warnings.join('\n')).toMatch(/replicas is not set/);
  });

  it('says which quotas are shared, and which are those of each replica', () => {
    const plugins = (window: string): string =>
      `plugins:\n- { type: quota-detector, parameters: { groups: [{ quotas: [{ unit: tokens, limit: 10, window: ${window} }] }] } }\nflowControl: { saturationDetector: { pluginRef: quota-detector } }\n`;
    const shared = check('{ url: "redis://a", quotas: true }', plugins('gcra'));
    expect(shared.faults).toEqual([]);
    expect(shared.warnings.join('\n')).not.toMatch(/quota-detector|replicas/);
    expect(JSON.stringify(shared.effective)).toContain('Quotas of quota-detector (gcra windows)');
    const sliding = check('{ url: "redis://a", quotas: true }', plugins('sliding'));
    expect(sliding.warnings.join('\n')).toMatch(
      /its sliding windows hold in each replica; only gcra windows are shared/,
    );
    const sessions =
      'plugins:\n- { type: session-limit-detector, parameters: { maxSessions: 5 } }\nflowControl: { saturationDetector: { pluginRef: session-limit-detector } }\n';
    expect(check('{ url: "redis://a", maxConcurrency: 4, replicas: 2 }', sessions).warnings.join('\n')).toMatch(
      /session-limit-detector: its sessions are counted in each replica/,
    );
    const own = check('{ url: "redis://a", maxConcurrency: 4, replicas: 2, quotas: false }', plugins('gcra'));
    expect(own.warnings.join('\n')).toMatch(/its quotas hold in each replica, because sharedState.quotas is false/);
    expect(JSON.stringify(own.effective)).not.toContain('Quotas of quota-detector');
  });

  it('reads the address from the environment', () => {
    const file = { listen: { port: 0 }, upstreams: [], sharedState: { url: { env: 'REDIS_URL' }, maxConcurrency: 4 } };
    expect(loadGatewayConfig(file, { env: { REDIS_URL: 'rediss://r:6379' } }).sharedState).toMatchObject({
      store: { nodes: [{ host: 'r', port: 6379 }], tls: {} },
      limit: 4,
    });
    expect(() => loadGatewayConfig(file, { env: {} })).toThrow(/REDIS_URL/);
  });
});

it('a gateway starts without the store, serves by its first share, and says what is wrong', async () => {
  const upstream = await startUpstream();
  const port = await freePort();
  const { post, log, gateway } = await startGateway(sharedFile(upstream.url, `redis://127.0.0.1:${port}`));
  const response = await post(chat);
  expect(response.status).toBe(200);
  await response.text();
  const line = log.find(({ event }) => event === 'shared-state');
  expect(line?.fields.message).toMatch(/pool "chat": the store cannot be reached/);
  expect(gateway.flow.stats().inFlight).toBe(0);
});
