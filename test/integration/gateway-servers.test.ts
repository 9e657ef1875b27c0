/**
 * A gateway before real model-server processes: the `openai` client unmodified, servers that die, join, and fall
 * silent.
 */
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { hasFreshMetrics } from '../../src/endpoints/available-pool.js';
import { loadGatewayConfig } from '../../src/gateway/index.js';
import { fileOf, type Started, startGateway } from '../gateway/support/gateway.js';
import { type ModelServer, startModelServer } from '../gateway/support/model-server.js';
import { idleMetrics, startUpstream } from '../gateway/support/upstream.js';
import { until } from './support/until.js';

const model = 'default-model';
const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Say hello' }];

function servers(...names: string[]): Promise<ModelServer[]> {
  return Promise.all(names.map(startModelServer));
}

function upstreamsOf(running: readonly ModelServer[]): object[] {
  return running.map(({ name, url }) => ({ id: name, url }));
}

function clientOf({ gateway }: Started, options: object = {}): OpenAI {
  return new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'sk-none', maxRetries: 0, ...options });
}

const queueDepthThreshold = 5;
const utilization = {
  plugins: [{ type: 'utilization-detector', parameters: { metricsStalenessThreshold: '1s', queueDepthThreshold } }],
  flowControl: { saturationDetector: { pluginRef: 'utilization-detector' } },
  scrape: { interval: '50ms' },
};

describe('the openai client', () => {
  it('streams, asks whole, and lists models', async () => {
    const started = await startGateway(fileOf(upstreamsOf(await servers('a')), {}, 15));
    const openai = clientOf(started);
    const stream = await openai.chat.completions.create({
      model,
      messages,
      max_tokens: 8,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? '';
      usage = chunk.usage;
    }
    expect(text).toMatch(/^Hello from a/);
    expect(usage?.completion_tokens).toBe(8);
    const { data: whole, response } = await openai.chat.completions
      .create({ model, messages, max_tokens: 8 })
      .withResponse();
    expect(whole.usage?.completion_tokens).toBe(8);
    expect(response.headers.get('x-request-id')).not.toBeNull();
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual([model]);
    expect((await openai.models.retrieve(model)).id).toBe(model);
  });

  it('aborts, and the server stops generating', async () => {
    const [server] = await servers('a');
    const started = await startGateway(fileOf(upstreamsOf([server!]), {}, 15));
    const stream = await clientOf(started).chat.completions.create({ model, messages, max_tokens: 4000, stream: true });
    for await (const _ of stream) stream.controller.abort();
    await until('the seat is free', () => started.gateway.flow.stats().inFlight === 0);
    const metrics = async (): Promise<string> => (await fetch(`${server!.url}/metrics`)).text();
    await expect.poll(metrics).toMatch(/num_requests_running\{.*\} 0$/m);
  });

  it('is refused with 429, retries by itself after Retry-After, and is served', async () => {
    const running = await servers('a');
    const limits = { maxRequests: 1, saturationDetector: { pluginRef: 'concurrency-detector' } };
    const started = await startGateway(fileOf(upstreamsOf(running), { flowControl: limits }));
    const { gateway, log } = started;
    const statuses = (): unknown[] => log.filter(({ event }) => event === 'request').map(({ fields }) => fields.status);
    const openai = clientOf(started, { maxRetries: 2 });
    const held = [1, 2].map(() => clientOf(started).chat.completions.create({ model, messages, max_tokens: 60 }));
    await until('one runs and one waits', () => gateway.flow.stats().waiting === 1);
    const answer = await openai.chat.completions.create({ model, messages, max_tokens: 2 });
    expect(answer.usage?.completion_tokens).toBe(2);
    await Promise.all(held);
    expect(statuses()).toContain(429);
  });

  it('parses every kind of error body', async () => {
    const running = await servers('a');
    const keys = [{ key: 'sk-good', tenant: 'good' }];
    const file = { auth: { keys }, limits: { maxRequestBytes: 2000 } };
    const started = await startGateway(fileOf(upstreamsOf(running), file));
    const hasty = await startGateway(fileOf(upstreamsOf(running), { ...file, timeouts: { total: '300ms' } }));
    const failureOf = (
      options: object,
      body: object = {},
      asked = started,
    ): Promise<InstanceType<typeof OpenAI.APIError>> =>
      clientOf(asked, options)
        .chat.completions.create({ model, messages, ...body })
        .then(
          () => Promise.reject(new Error('it was served')),
          (error) => error,
        );
    const good = { apiKey: 'sk-good' };
    const unknown = await failureOf({});
    expect([unknown instanceof OpenAI.AuthenticationError, unknown.code]).toEqual([true, 'invalid_api_key']);
    const wrongModel = await failureOf(good, { model: 'other' });
    expect([wrongModel instanceof OpenAI.NotFoundError, wrongModel.message]).toEqual([
      true,
      '404 The model "other" does not exist.',
    ]);
    const long = await failureOf(good, { messages: [{ role: 'user', content: 'x'.repeat(3000) }] });
    expect([long.status, long.code]).toEqual([413, 'request_too_large']);
    const slow = await failureOf(good, { max_tokens: 4000, ignore_eos: true }, hasty);
    expect([slow.status, slow.code, slow.type]).toEqual([504, 'upstream_timeout', 'server_error']);
  });
});

describe('a server that is killed', () => {
  it('loses its own streams and no others; its seats come back, and work goes on elsewhere', async () => {
    const running = await servers('a', 'b');
    const started = await startGateway(fileOf(upstreamsOf(running), {}, 4));
    const { gateway } = started;
    const openai = clientOf(started);
    const body = { model, messages, max_tokens: 150, stream: true, ignore_eos: true } as const;
    const streaming = new Set<number>();
    const ends = Array.from({ length: 8 }, async (_, index) => {
      let servedBy = '';
      try {
        for await (const chunk of await openai.chat.completions.create(body)) {
          servedBy ||= /-([ab])-/.exec(chunk.id)?.[1] ?? '';
          streaming.add(index);
        }
        return `${servedBy} whole`;
      } catch {
        return `${servedBy} broken`;
      }
    });
    await until('all stream', () => streaming.size === 8);
    running[0]!.child.kill('SIGKILL');
    expect((await Promise.all(ends)).sort()).toEqual([...Array(4).fill('a broken'), ...Array(4).fill('b whole')]);
    await until('all seats are free', () => gateway.flow.stats().inFlight === 0);
    const after = await Promise.all(
      Array.from({ length: 8 }, () =>
        openai.chat.completions.create({ model, messages, max_tokens: 2 }).then(({ id }) => id),
      ),
    );
    expect(after.every((id) => id.includes('-b-'))).toBe(true);
  });
});

describe('a server that joins', () => {
  it('gets work within a scrape interval, while others are full', async () => {
    const [first, second] = await servers('a', 'b');
    const file = (running: ModelServer[]): object => fileOf(upstreamsOf(running), utilization);
    const started = await startGateway(file([first!]));
    const { gateway } = started;
    const openai = clientOf(started);
    const body = { model, messages, max_tokens: 60, ignore_eos: true } as const;
    const work: Promise<string>[] = [];
    /** On a busy machine requests come no faster than one server answers them: more come until enough of them wait. */
    const someWait = (): boolean => {
      const { waiting, enqueued } = gateway.flow.stats();
      if (waiting > 50) return true;
      if (enqueued < work.length) return false;
      for (let more = 0; more < 200; more++) {
        const answer = openai.chat.completions.create(body).then(({ id }) => id);
        // Of a test that fails before, only its own fault is to be read.
        answer.catch(() => {});
        work.push(answer);
      }
      return false;
    };
    await until(() => `some wait: ${JSON.stringify(gateway.flow.stats())}`, someWait);
    // In reports of its own, which come once a scrape interval. The gate looks at the mean of both servers: one that
    // counts twice what it can bear keeps it closed, however idle the other is. A report that took the whole second
    // after which it counts for nothing, on a machine that is busy, opens nothing either; nor does one beside a server
    // that got more since its own report than it may have waiting.
    let reports = 0;
    const isMeanBearable = (): boolean =>
      gateway.pool.endpoints.every(
        ({ metrics: { waitingQueueSize = 0, kvCacheUsage = 0, sampledAtMs = 0 } = {}, unsampledRequests }) =>
          Math.max((waitingQueueSize + unsampledRequests) / queueDepthThreshold, kvCacheUsage / 0.8) < 2 &&
          gateway.pool.now() < sampledAtMs + 1000,
      );
    let reportsBeforeWork: number | undefined;
    gateway.pool.on('reported', ({ id }) => {
      if (id === 'b' && isMeanBearable()) reports++;
    });
    gateway.flow.on('dispatched', ({ endpoint }) => {
      if (endpoint?.id === 'b') reportsBeforeWork ??= reports;
    });
    gateway.reconfigure(loadGatewayConfig(file([first!, second!])));
    await until('it gets work', () => reportsBeforeWork !== undefined);
    expect(reportsBeforeWork).toBeLessThanOrEqual(1);
    const ids = await Promise.all(work);
    expect(ids.filter((id) => id.includes('-b-')).length).toBeGreaterThan(30);
  });
});

describe('metrics that are not to be had', () => {
  it('do not stop traffic where the last known ones count on', async () => {
    const upstream = await startUpstream();
    const [serve] = upstream.server.listeners('request') as ((
      req: { url?: string | undefined },
      res: { destroy(): void; end(text: string): void },
    ) => void)[];
    let isOut = false;
    upstream.server.removeAllListeners('request').on('request', (req, res) => {
      if (req.url !== '/metrics') serve?.(req, res);
      else if (isOut) res.destroy();
      else res.end(idleMetrics);
    });
    const file = (stalenessPolicy: string): object =>
      fileOf([upstream.url], {
        ...utilization,
        plugins: [
          { type: 'utilization-detector', parameters: { metricsStalenessThreshold: '100ms', stalenessPolicy } },
        ],
      });
    const lasting = await startGateway(file('last-known'));
    const strict = await startGateway(file('saturated'));
    const chat = { model: 'llama', messages };
    for (const { post } of [lasting, strict]) expect((await post(chat)).status).toBe(200);
    isOut = true;
    await until('both know', () =>
      [lasting, strict].every(({ log }) => log.some(({ event }) => event === 'scrape-failed')),
    );
    // An idle server is asked once a second, and its figures count until then.
    await until('the figures of both are too old', () =>
      [lasting, strict].every(({ gateway: { pool } }) =>
        pool.endpoints.every((endpoint) => !hasFreshMetrics(endpoint, 100, pool.now())),
      ),
    );
    for (let index = 0; index < 20; index++) expect((await lasting.post(chat)).status).toBe(200);
    // The other half of the claim: by default the gate closes.
    const left = new AbortController();
    const held = strict.post(chat, { signal: left.signal }).catch(() => 'left');
    await until('it waits', () => strict.gateway.flow.stats().waiting === 1);
    isOut = false;
    expect(((await held) as Response).status).toBe(200);
  });
});
