/** What quotas reserve for a call before anybody has answered it. */

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, wrapLanguageModel } from 'ai';
import { describe, expect, it } from 'vitest';
import { flowMiddleware } from '../../src/fetch/ai/index.js';
import { type FlowFetchOptions, flowFetch } from '../../src/fetch/index.js';
import { FlowController, quotaDetector } from '../../src/index.js';

const units = ['inputTokens', 'outputTokens', 'tokens'] as const;

/** A controller before large quotas, and what they have reserved. */
function metered() {
  const quotas = quotaDetector({
    groups: [{ quotas: units.map((unit) => ({ unit, limit: 1e6, window: 'sliding' as const })) }],
  });
  const reserved = (): unknown =>
    Object.fromEntries(quotas.quotas(performance.now()).quotas.map((each) => [each.unit, each.reserved]));
  return { flow: new FlowController({ constraints: [quotas] }), reserved };
}

const body = JSON.stringify({
  model: 'llama',
  max_tokens: 300,
  messages: [{ role: 'user', content: 'x'.repeat(400) }],
});
const inputTokens = Math.ceil(body.length / 4);

/** A picture of three million bytes. */
const file = new Uint8Array(3_000_000).fill(0x5a);

async function reservedFor(options: FlowFetchOptions, sent = body): Promise<unknown> {
  const { flow, reserved } = metered();
  let seen: unknown;
  const fetch = async (): Promise<Response> => {
    seen = reserved();
    return new Response();
  };
  await flowFetch(flow, { ...options, fetch })('http://model/v1/chat/completions', { method: 'POST', body: sent });
  return seen;
}

describe('flowFetch', () => {
  it('reserves the prompt as input and max_tokens as output', async () => {
    expect(await reservedFor({})).toEqual({ inputTokens, outputTokens: 300, tokens: inputTokens + 300 });
  });

  it.each([
    ['a data URL', `data:image/png;base64,${Buffer.from(file).toString('base64')}`],
    ['base64', Buffer.from(file).toString('base64')],
  ])('reserves a thousand tokens for a picture of 3 MB, sent as %s', async (_what, url) => {
    const sent = JSON.stringify({ model: 'llama', max_tokens: 300, messages: [{ content: [{ image_url: { url } }] }] });
    expect(await reservedFor({}, sent)).toMatchObject({
      inputTokens: 1000 + Math.ceil((sent.length - url.length - 2) / 4),
    });
  });

  it.each<[string, FlowFetchOptions]>([
    ['estimate', { estimate: () => 50 }],
    ['classify', { classify: () => ({ tokens: 50 }) }],
  ])('reserves the tokens that the host names: %s', async (_what, options) => {
    expect(await reservedFor(options)).toEqual({ inputTokens: 50, outputTokens: 300, tokens: 50 });
  });
});

describe('flowMiddleware', () => {
  it('reserves a thousand tokens for a picture of 3 MB', async () => {
    const { flow, reserved } = metered();
    let seen: unknown;
    const answer = { choices: [{ message: { role: 'assistant', content: 'served' }, finish_reason: 'stop' }] };
    const fetch = async (): Promise<Response> => {
      seen = reserved();
      return Response.json(answer);
    };
    const provider = createOpenAICompatible({ name: 'local', baseURL: 'http://model/v1', fetch });
    const model = wrapLanguageModel({ model: provider.chatModel('llama'), middleware: flowMiddleware(flow) });
    const content = [{ type: 'file' as const, data: file, mediaType: 'image/png' }];
    await generateText({ model, messages: [{ role: 'user', content }] });
    const { inputTokens: input } = seen as { inputTokens: number };
    expect(input).toBeGreaterThanOrEqual(1000);
    expect(input).toBeLessThan(1100);
  });

  it('reserves the prompt as input and the most that may be answered as output', async () => {
    const { flow, reserved } = metered();
    let seen: unknown;
    const answer = { choices: [{ message: { role: 'assistant', content: 'served' }, finish_reason: 'stop' }] };
    const fetch = async (): Promise<Response> => {
      seen = reserved();
      return Response.json(answer);
    };
    const provider = createOpenAICompatible({ name: 'local', baseURL: 'http://model/v1', fetch });
    const model = wrapLanguageModel({ model: provider.chatModel('llama'), middleware: flowMiddleware(flow) });
    await generateText({ model, prompt: 'x'.repeat(400), maxOutputTokens: 300 });
    const { inputTokens: input } = seen as { inputTokens: number };
    expect(input).toBeGreaterThanOrEqual(100);
    expect(input).toBeLessThan(200);
    expect(seen).toEqual({ inputTokens: input, outputTokens: 300, tokens: input + 300 });
  });
});
