/** The OpenAI client with a retrying fetch, against a gateway on node:http whose one seat the test holds. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FlowControlOptions, flowControl, type NodeRequest } from '../../src/adapters/node/index.js';
import { type RetryOptions, retryingFetch } from '../../src/client/index.js';
import { concurrencyDetector, FlowController, type Lease } from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { until } from '../integration/support/until.js';
import { runNow } from '../support/flow.js';

interface Setup {
  readonly client?: RetryOptions;
  readonly gateway?: Partial<FlowControlOptions<NodeRequest>>;
  readonly timeout?: number;
}

interface Gateway {
  readonly openai: OpenAI;
  readonly clock: ManualClock;
  /** Holds the only seat. */
  readonly held: Lease;
  readonly statuses: number[];
}

const completion = {
  id: 'c1',
  object: 'chat.completion',
  created: 0,
  model: 'llama',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'served' } }],
};

const events = ['ser', 'ved'].map((content) => ({
  ...completion,
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta: { content } }],
}));

async function complete(req: IncomingMessage, res: ServerResponse): Promise<void> {
  let body = '';
  for await (const chunk of req) body += chunk;
  if (JSON.parse(body).stream !== true) {
    res.setHeader('content-type', 'application/json').end(JSON.stringify(completion));
    return;
  }
  res.setHeader('content-type', 'text/event-stream');
  for (const event of events) res.write(`data: ${JSON.stringify(event)}\n\n`);
  res.end('data: [DONE]\n\n');
}

async function start({ client, gateway, timeout }: Setup = {}): Promise<Gateway> {
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    admission: {
      type: 'no-waiting',
      admit: (_request, _key, view) => (view.saturation() < 1 ? 'admit' : { reason: 'the seat is taken' }),
    },
  });
  const limit = flowControl(flow, { body: 'openai', random: () => 0, ...gateway });
  const statuses: number[] = [];
  const server = createServer((req, res) => {
    res.on('finish', () => statuses.push(res.statusCode));
    limit(req, res, () => void complete(req, res));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await flow.close();
  });
  const clock = new ManualClock();
  const openai = new OpenAI({
    apiKey: 'none',
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    maxRetries: 0,
    fetch: retryingFetch({ clock, random: () => 0, ...client }),
    ...(timeout !== undefined && { timeout }),
  });
  return { openai, clock, held: runNow(flow), statuses };
}

const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'hello' }];

async function refusedOnce({ clock, statuses }: Gateway, times = 1): Promise<void> {
  await until('the gateway refused', () => statuses.length === times);
  await until('the client waits', () => clock.pendingTimers === 1);
}

describe('the OpenAI client with a retrying fetch', () => {
  it('is served by a gateway that refused it before, at the second that Retry-After names', async () => {
    const gateway = await start();
    const served = gateway.openai.chat.completions.create({ model: 'llama', messages });
    await refusedOnce(gateway);
    gateway.held.release();
    gateway.clock.advance(999);
    expect(gateway.clock.pendingTimers).toBe(1);
    gateway.clock.advance(1);
    expect((await served).choices[0]?.message.content).toBe('served');
    expect(gateway.statuses).toEqual([429, 200]);
  });

  it('gets a stream after a refusal', async () => {
    const gateway = await start();
    const stream = gateway.openai.chat.completions.create({ model: 'llama', messages, stream: true });
    await refusedOnce(gateway);
    gateway.held.release();
    gateway.clock.advance(1000);
    let text = '';
    for await (const chunk of await stream) text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe('served');
  });

  it('gets the error of the last refusal, with what the gateway said', async () => {
    const gateway = await start({ client: { maxAttempts: 2 } });
    const failed = gateway.openai.chat.completions
      .create({ model: 'llama', messages })
      .catch((error: unknown) => error);
    await refusedOnce(gateway);
    gateway.clock.advance(1000);
    const error = await failed;
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect((error as InstanceType<typeof OpenAI.RateLimitError>).code).toBe('ERR_FLOW_SATURATED');
    expect(gateway.statuses).toEqual([429, 429]);
  });

  it('retries 529 as well', async () => {
    const gateway = await start({ gateway: { contract: () => ({ status: 529 }) } });
    const served = gateway.openai.chat.completions.create({ model: 'llama', messages });
    await refusedOnce(gateway);
    gateway.held.release();
    gateway.clock.advance(1000);
    expect((await served).id).toBe('c1');
    expect(gateway.statuses).toEqual([529, 200]);
  });

  it('is not retried by itself: one refusal is one request where the budget is spent', async () => {
    const gateway = await start({ client: { budget: { requested() {}, tryRetry: () => false } } });
    await expect(gateway.openai.chat.completions.create({ model: 'llama', messages })).rejects.toBeInstanceOf(
      OpenAI.RateLimitError,
    );
    expect(gateway.statuses).toEqual([429]);
  });

  it('has one timeout for all attempts and pauses', async () => {
    const gateway = await start({ timeout: 2000 });
    await expect(gateway.openai.chat.completions.create({ model: 'llama', messages })).rejects.toBeInstanceOf(
      OpenAI.APIConnectionTimeoutError,
    );
    expect([gateway.statuses, gateway.clock.pendingTimers]).toEqual([[429], 0]);
  });

  it('can be aborted while it waits', async () => {
    const gateway = await start();
    const controller = new AbortController();
    const aborted = gateway.openai.chat.completions.create({ model: 'llama', messages }, { signal: controller.signal });
    const outcome = expect(aborted).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    await refusedOnce(gateway);
    controller.abort();
    await outcome;
    expect(gateway.clock.pendingTimers).toBe(0);
  });
});
