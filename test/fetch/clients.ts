/** The clients of model APIs, each used in the same four ways. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';
import OpenAI6 from 'openai6';
import type { FlowFetch } from '../../src/fetch/index.js';

export interface ClientOptions {
  readonly url: string;
  readonly fetch: FlowFetch;
  readonly maxRetries?: number;
}

export interface ModelClient {
  /** The text of an answer in one piece. */
  complete(signal?: AbortSignal): Promise<string>;
  /** The pieces of a streamed answer; throws where the client does. */
  stream(signal?: AbortSignal): AsyncIterable<string>;
  /** Asks for a stream, and forgets it. */
  forget(): Promise<void>;
}

const model = 'llama';
const messages = [{ role: 'user' as const, content: 'hello' }];

function openai(Client: typeof OpenAI | typeof OpenAI6, { url, fetch, maxRetries = 0 }: ClientOptions): ModelClient {
  const { completions } = (new Client({ baseURL: `${url}/v1`, apiKey: 'k', fetch, maxRetries }) as OpenAI).chat;
  return {
    async complete(signal) {
      const answer = await completions.create({ model, messages }, { signal: signal ?? null });
      return answer.choices[0]?.message.content ?? '';
    },
    async *stream(signal) {
      const stream = await completions.create({ model, messages, stream: true }, { signal: signal ?? null });
      for await (const chunk of stream) yield chunk.choices[0]?.delta.content ?? '';
    },
    async forget() {
      await completions.create({ model, messages, stream: true }).asResponse();
    },
  };
}

function anthropic({ url, fetch, maxRetries = 0 }: ClientOptions): ModelClient {
  const client = new Anthropic({ baseURL: url, apiKey: 'k', fetch, maxRetries });
  const asked = { model, messages, max_tokens: 10 };
  return {
    async complete(signal) {
      const { content } = await client.messages.create(asked, { signal: signal ?? null });
      return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    },
    async *stream(signal) {
      const stream = await client.messages.create({ ...asked, stream: true }, { signal: signal ?? null });
      for await (const event of stream)
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') yield event.delta.text;
    },
    async forget() {
      await client.messages.create({ ...asked, stream: true }).asResponse();
    },
  };
}

function aiSdk({ url, fetch, maxRetries = 0 }: ClientOptions): ModelClient {
  const chat = createOpenAICompatible({ name: 'local', baseURL: `${url}/v1`, fetch, includeUsage: true }).chatModel(
    model,
  );
  return {
    async complete(abortSignal) {
      return (await generateText({ model: chat, prompt: 'hello', maxRetries, ...(abortSignal && { abortSignal }) }))
        .text;
    },
    async *stream(abortSignal) {
      const { fullStream } = streamText({
        model: chat,
        prompt: 'hello',
        maxRetries,
        onError() {},
        ...(abortSignal && { abortSignal }),
      });
      for await (const part of fullStream) {
        if (part.type === 'text-delta') yield part.text;
        if (part.type === 'error') throw part.error;
        if (part.type === 'abort') throw abortSignal?.reason;
      }
    },
    async forget() {
      await chat.doStream({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }] });
    },
  };
}

function langchain({ url, fetch, maxRetries = 0 }: ClientOptions): ModelClient {
  const chat = new ChatOpenAI({ model, apiKey: 'k', maxRetries, configuration: { baseURL: `${url}/v1`, fetch } });
  return {
    async complete(signal) {
      return String((await chat.invoke('hello', { ...(signal && { signal }) })).content);
    },
    async *stream(signal) {
      for await (const chunk of await chat.stream('hello', { ...(signal && { signal }) })) yield String(chunk.content);
    },
    async forget() {
      await chat.stream('hello');
    },
  };
}

/**
 * `cancels`: leaving the loop over a stream cancels the answer. The others read on behind the caller's back, until the
 * server ends or their signal aborts. `endsQuietly`: a stream whose signal aborts ends as if it were whole. The others
 * throw.
 */
export const clients: readonly (readonly [
  name: string,
  make: (options: ClientOptions) => ModelClient,
  cancels: boolean,
  endsQuietly: boolean,
])[] = [
  ['openai 7', (options) => openai(OpenAI, options), true, true],
  ['openai 6', (options) => openai(OpenAI6, options), true, true],
  ['@anthropic-ai/sdk', anthropic, true, true],
  ['the AI SDK', aiSdk, false, false],
  ['LangChain', langchain, false, false],
];
