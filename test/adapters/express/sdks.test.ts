/** The clients of model APIs in front of the README's recipe for Express: they show why a request was dropped. */
import type { AddressInfo } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import express from 'express';
import OpenAI from 'openai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { flowControl, relay } from '../../../src/adapters/express/index.js';
import { concurrencyDetector, FlowController } from '../../../src/index.js';
import { type Behaviour, serve, startModelServer } from '../../fetch/model-server.js';

const question = { model: 'llama', max_tokens: 5, messages: [{ role: 'user' as const, content: 'hello' }] };

/** Asks through the recipe, with each client. */
async function start(behave: Behaviour, limits: { maxRequests?: number } = {}) {
  const model = await startModelServer(behave);
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    limits,
    overflow: 'fair',
  });
  const app = express();
  app.use('/v1', flowControl(flow, { classify: () => ({ fairnessId: 'acme' }) }));
  app.post('/v1/*path', express.json(), async (req, res) => {
    const upstream = fetch(`${model.url}${req.path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(req.body),
      signal: req.flow.signal,
    });
    await relay(upstream, req, res);
  });
  const server = app.listen(0);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const openai = new OpenAI({ apiKey: 'key', baseURL: `${url}/v1`, maxRetries: 0 });
  const anthropic = new Anthropic({ apiKey: 'key', baseURL: url, maxRetries: 0 });
  return {
    askOpenAI: () => openai.chat.completions.create(question).catch((error: Error) => error),
    askAnthropic: () => anthropic.messages.create(question).catch((error: Error) => error),
  };
}

describe('the recipe of the README', () => {
  it('tells the clients of OpenAI and Anthropic why a request was dropped', async () => {
    const { askOpenAI, askAnthropic } = await start(serve, { maxRequests: 0 });
    const reason = 'At most 0 requests may wait, and 0 are waiting.';
    const told = await askOpenAI();
    expect(told).toBeInstanceOf(OpenAI.RateLimitError);
    expect(told).toMatchObject({
      status: 429,
      message: `429 ${reason}`,
      code: 'ERR_FLOW_SATURATED',
      type: 'rate_limit_error',
      param: null,
    });
    expect(await askAnthropic()).toMatchObject({ status: 429, message: expect.stringContaining(reason) });
  });

  it('tells them that the model server gave no answer', async () => {
    const { askOpenAI, askAnthropic } = await start(({ res }) => void res.socket?.destroy());
    const message = 'No answer from the model server.';
    expect(await askOpenAI()).toMatchObject({ status: 502, message: `502 ${message}`, code: 'ERR_FLOW_NO_ANSWER' });
    expect(await askAnthropic()).toMatchObject({ status: 502, message: expect.stringContaining(message) });
  });

  it('serves them', async () => {
    const { askOpenAI, askAnthropic } = await start(serve);
    expect(await askOpenAI()).toMatchObject({ choices: [{ message: { content: 'served' } }] });
    expect(await askAnthropic()).toMatchObject({ content: [{ text: 'served' }] });
  });
});
