/**
 * The gateway in front of a provider with quotas: a process of its own that answers 429 as OpenAI and Anthropic do, and
 * counts violations.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fileOf, type Started, startGateway } from './support/gateway.js';

const script = fileURLToPath(new URL('../../examples/hosted/provider.mjs', import.meta.url));
/** Windows are short so that tests are, and travel is allowed for a loaded machine. */
const windowMs = 1500;

interface Stats {
  readonly accepted: number;
  readonly violations: number;
  readonly violationsByWindow: Record<string, number>;
}

interface Provider {
  readonly url: string;
  stats(): Promise<Stats>;
}

async function startProvider(options: Record<string, string | number>): Promise<Provider> {
  const args = Object.entries({ 'latency-ms': 5, 'window-ms': windowMs, ...options }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ]);
  const child: ChildProcess = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill());
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const url = line.toString().trim();
  return { url, stats: async () => (await fetch(`${url}/stats`)).json() as Promise<Stats> };
}

const keys = [100, 0, -10].map((priority) => ({ key: `key-${priority}`, tenant: `t${priority}`, priority }));

function inFront({ url }: Provider, parameters: object, more: object = {}): Promise<Started> {
  const plugins = [{ type: 'quota-detector', parameters }];
  const flowControl = { saturationDetector: { pluginRef: 'quota-detector' }, defaultRequestTTL: '120s' };
  return startGateway(fileOf([url], { plugins, flowControl, auth: { keys }, ...more }));
}

function send({ post }: Started, priority = 0, maxTokens = 10): Promise<Response> {
  const body = { model: 'm', max_tokens: maxTokens, messages: [{ role: 'user', content: 'hello' }] };
  return post(body, { headers: { authorization: `Bearer key-${priority}` } });
}

/** Three times what fits into a window, from fifty clients of three priorities; the statuses that they got. */
async function overload(gateway: Started): Promise<Set<number>> {
  const queue = Array.from({ length: 60 }, (_, i) => [100, 0, -10][i % 3] as number);
  const statuses = new Set<number>();
  const client = async (): Promise<void> => {
    for (let priority = queue.shift(); priority !== undefined; priority = queue.shift()) {
      const response = await send(gateway, priority);
      await response.arrayBuffer();
      statuses.add(response.status);
    }
  };
  await Promise.all(Array.from({ length: 50 }, client));
  return statuses;
}

describe('at three times the quota of a provider', () => {
  it.each([
    ['openai', 'fixed'],
    ['openai', 'sliding'],
    ['anthropic', 'sliding'],
  ])('configured quotas cause no 429 at all, and everybody is served: %s, %s windows', async (style, window) => {
    const limits = { requests: 20, input: 2000, output: 400 };
    const provider = await startProvider({ style, window, ...limits });
    const quotas = [
      { unit: 'requests', limit: limits.requests },
      { unit: 'inputTokens', limit: limits.input },
      { unit: 'outputTokens', limit: limits.output },
    ].map((quota) => ({ ...quota, per: `${windowMs}ms`, window }));
    const gateway = await inFront(provider, { groups: [{ quotas, learn: false }], travel: '2s' });
    expect([...(await overload(gateway))]).toEqual([200]);
    expect(await provider.stats()).toMatchObject({ accepted: 60, violations: 0 });
  });

  it.each(['openai', 'anthropic'])(
    'learnt quotas cause at most one 429 in a window, which no client sees: %s',
    async (style) => {
      const provider = await startProvider({ style, window: 'fixed', requests: 20, input: 100_000, output: 100_000 });
      const gateway = await inFront(provider, {}, { retry: { max: 10 } });
      expect([...(await overload(gateway))]).toEqual([200]);
      const stats = await provider.stats();
      expect(stats.accepted).toBe(60);
      expect(Math.max(0, ...Object.values(stats.violationsByWindow))).toBeLessThanOrEqual(1);
    },
  );
});

describe('a 429 of a provider', () => {
  it('stays away from the client while its request can wait: it goes back to its place and is sent again', async () => {
    const provider = await startProvider({ requests: 3 });
    const gateway = await inFront(provider, { groups: [{ learn: false, quotas: [{ unit: 'requests', limit: 100 }] }] });
    const foreign = { method: 'POST', body: '{"max_tokens":1}' };
    for (let i = 0; i < 3; i++) await (await fetch(provider.url, foreign)).arrayBuffer();
    const response = await send(gateway);
    expect(response.status).toBe(200);
    expect(await provider.stats()).toMatchObject({ accepted: 4, violations: 1 });
    expect(gateway.log.filter(({ event }) => event === 'retry')).toHaveLength(1);
  });

  it('reaches the client once it was sent again as often as it may', async () => {
    const provider = await startProvider({ requests: 1, 'window-ms': 60_000 });
    const gateway = await inFront(
      provider,
      { groups: [{ learn: false, quotas: [{ unit: 'requests', limit: 100 }] }] },
      { retry: { max: 0 } },
    );
    expect((await send(gateway)).status).toBe(200);
    const response = await send(gateway);
    expect(response.status).toBe(429);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('a request that a quota has no room for in its time', () => {
  it('is told at once, with the true time to come back', async () => {
    const provider = await startProvider({ requests: 1 });
    const plugins = [
      {
        type: 'quota-detector',
        parameters: { groups: [{ name: 'account A', quotas: [{ unit: 'requests', limit: 1, per: '1h' }] }] },
      },
    ];
    const flowControl = { saturationDetector: { pluginRef: 'quota-detector' }, defaultRequestTTL: '60s' };
    const gateway = await startGateway(fileOf([provider.url], { plugins, flowControl, auth: { keys } }));
    expect((await send(gateway)).status).toBe(200);
    const response = await send(gateway);
    expect(response.status).toBe(429);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(3500);
    expect(await response.text()).toContain('the quota has no room for 1 request of account A');
    expect(await provider.stats()).toMatchObject({ accepted: 1, violations: 0 });
  });
});
