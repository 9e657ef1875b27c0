/** Streams through the clients of three makers, and a model server that speaks what each of them asks for. */

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { streamText } from 'ai';
import OpenAI from 'openai';
import { type Answer, sse } from './upstream.js';

type Fetch = typeof globalThis.fetch;

const model = 'llama';
const messages = [{ role: 'user' as const, content: 'hello' }];

/** By client, on a `fetch` of its own if one is given: the text that it reads; rejects with what it reports. */
export const sdkStreams: Readonly<Record<string, (url: string, fetch?: Fetch) => Promise<string>>> = {
  async OpenAI(url, fetch = globalThis.fetch) {
    const client = new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 0, fetch });
    let text = '';
    for await (const { choices } of await client.chat.completions.create({ model, messages, stream: true }))
      text += choices[0]?.delta.content ?? '';
    return text;
  },
  async 'OpenAI, Responses'(url, fetch = globalThis.fetch) {
    const client = new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 0, fetch });
    let text = '';
    for await (const event of await client.responses.create({ model, input: 'hello', stream: true }))
      if (event.type === 'response.output_text.delta') text += event.delta;
    return text;
  },
  async Anthropic(url, fetch = globalThis.fetch) {
    const client = new Anthropic({ apiKey: 'none', baseURL: url, maxRetries: 0, fetch });
    let text = '';
    for await (const event of await client.messages.create({ model, max_tokens: 5, messages, stream: true }))
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text;
    return text;
  },
  async 'AI SDK'(url, fetch = globalThis.fetch) {
    const provider = createOpenAICompatible({ name: 'local', baseURL: `${url}/v1`, fetch });
    let text = '';
    const { fullStream } = streamText({ model: provider(model), prompt: 'hello', maxRetries: 0, onError() {} });
    for await (const part of fullStream) {
      if (part.type === 'error') throw part.error;
      if (part.type === 'text-delta') text += part.text;
    }
    return text;
  },
};

const inEvents = (events: readonly object[]): string =>
  events.map((event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`).join('');

/** `served`, in the interface that was asked. */
export const serveAnyone: Answer = ({ req, res }) => {
  if (req.url?.endsWith('/messages')) {
    const delta = (text: string) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
    const usage = { input_tokens: 1, output_tokens: 0 };
    const message = { id: 'm', type: 'message', role: 'assistant', model, content: [], stop_reason: null, usage };
    res
      .setHeader('content-type', 'text/event-stream')
      .end(
        inEvents([
          { type: 'message_start', message },
          { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
          delta('ser'),
          delta('ved'),
          { type: 'content_block_stop', index: 0 },
          { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
          { type: 'message_stop' },
        ]),
      );
  } else if (req.url?.endsWith('/responses')) {
    const part = { item_id: 'i', output_index: 0, content_index: 0 };
    res.setHeader('content-type', 'text/event-stream').end(
      inEvents([
        { type: 'response.output_text.delta', ...part, delta: 'ser' },
        { type: 'response.output_text.delta', ...part, delta: 'ved' },
        { type: 'response.completed', response: { id: 'r', status: 'completed', output: [] } },
      ]),
    );
  } else {
    const end = {
      id: 'c1',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    };
    res.setHeader('content-type', 'text/event-stream');
    res.end(`${sse('ser')}${sse('ved')}data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`);
  }
};
