import { describe, expect, it } from 'vitest';
import { FetchCall } from '../../../src/fetch/fetch-call.js';
import { genAiAttributes } from '../../../src/observability/opentelemetry/gen-ai.js';

const told = (request: unknown): unknown[] => Object.values(genAiAttributes(request));

describe('operation and provider of a request', () => {
  it('have the names of the conventions', () => {
    const named = { 'gen_ai.operation.name': 'embeddings', 'gen_ai.provider.name': 'openai' };
    expect(genAiAttributes({ req: { url: '/v1/embeddings' } })).toEqual(named);
  });

  it.each([
    ['/v1/chat/completions', 'chat', 'openai'],
    ['/v1/chat/completions?api-version=3', 'chat', 'openai'],
    ['/v1/responses', 'chat', 'openai'],
    ['/v1/messages', 'chat', 'anthropic'],
    ['/v1/completions', 'text_completion', 'openai'],
    ['/v1beta/models/gemini:streamGenerateContent', 'generate_content', 'openai'],
    ['/v1/images/generations', 'generate_content', 'openai'],
    ['/v1/rerank', 'other', 'openai'],
    ['/v1/anything?x=/v1/messages', 'other', 'openai'],
  ])('come from the path %s', (url, ...expected) => {
    expect(told({ req: { url } })).toEqual(expected);
  });

  it('come from the path that a client asked for, behind a router, at an endpoint picker and in a call', () => {
    expect(told({ req: { url: '/completions', originalUrl: '/v1/chat/completions' } })).toEqual(['chat', 'openai']);
    expect(told({ req: { path: '/v1/messages' } })).toEqual(['chat', 'anthropic']);
    expect(told({ req: new FetchCall('https://api.example.com/v1/messages', {}) })).toEqual(['chat', 'anthropic']);
    expect(told({ req: new Request('http://host/v1/embeddings') })).toEqual(['embeddings', 'openai']);
  });

  it('are those that the request names itself, providers of the AI SDK without the name of the interface', () => {
    expect(told({ operation: 'retrieval', provider: 'cohere' })).toEqual(['retrieval', 'cohere']);
    expect(told({ provider: 'anthropic.messages' })).toEqual(['chat', 'anthropic']);
  });

  it('are there for every request', () => {
    for (const request of [undefined, null, 7, {}, { req: {} }]) expect(told(request)).toEqual(['chat', 'openai']);
  });
});
