import { describe, expect, it } from 'vitest';
import type { ExtProcRequest } from '../../../src/adapters/ext-proc/index.js';
import { defaultParsers, RequestParsers } from '../../../src/gateway/epp/request-parsers.js';

function requestOf(path: string, body: string, headers: Record<string, string> = {}): ExtProcRequest {
  return { path, body: Buffer.from(body), headers: new Map(Object.entries(headers)) } as unknown as ExtProcRequest;
}

const parse = (path: string, body: string, types: readonly string[] = defaultParsers, headers = {}) =>
  new RequestParsers(types).parse(requestOf(path, body, headers));

describe('what stands in a body', () => {
  it.each([
    ['/v1/chat/completions', '{"model":"m","messages":[]}'],
    ['/v1/completions', '{"model":"m","prompt":"a"}'],
    ['/v1/embeddings', '{"model":"m","input":["a"]}'],
    ['/v1/responses', '{"model":"m","input":"a"}'],
    ['/v1/conversations', '{"model":"m"}'],
    ['/v1/images/generations', '{"model":"m","prompt":"a"}'],
    ['/v1/chat/completions/render', '{"model":"m","messages":[]}'],
    ['/v1/completions/render', '{"model":"m","prompt":"a"}'],
    ['/v1/messages', '{"model":"m","messages":[]}'],
    ['/inference/v1/generate', '{"model":"m","token_ids":[1]}'],
    ['/tenant-a/openai/v1/completions', '{"model":"m","prompt":"a"}'],
  ])('is read by the end of the path: %s', (path, body) => {
    expect(parse(path, body)?.model).toBe('m');
  });

  it.each([
    ['/v1/chat/completions', '{"model":"m","prompt":"a"}', 'messages'],
    ['/v1/completions', '{"model":"m","messages":[]}', 'prompt'],
    ['/v1/responses', '{"model":"m"}', 'input'],
    ['/v1/messages', '{"model":"m"}', 'messages'],
  ])('must have what its path needs: %s', (path, body, field) => {
    expect(() => parse(path, body)).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining(field) }),
    );
  });

  it.each(['', '[1]', '{"model":"m"', 'null', '\u0000'])('is refused where it is no JSON object: %j', (body) => {
    expect(() => parse('/v1/conversations', body)).toThrow(expect.objectContaining({ status: 400 }));
  });

  it('is left alone on paths that nobody knows, where the last parser passes everything', () => {
    expect(parse('/v1/audio/speech', '\u0000\u0001')).toBeUndefined();
    expect(parse('/xchat/completionsx', 'no JSON')).toBeUndefined();
  });

  it('is refused on paths that no parser takes', () => {
    const only = ['openai-parser'];
    const unknown = expect.objectContaining({
      status: 400,
      code: 'unknown_path',
      message: expect.stringContaining('/'),
    });
    expect(() => parse('/x', '{}', only)).toThrow(unknown);
    expect(() => parse(`/x${'y'.repeat(9_000)}`, '{}', only)).toThrow(unknown);
    expect(() => parse('/v1/messages', '{"model":"m","messages":[]}', only)).toThrow(unknown);
  });

  it('is that of completions where the proxy tells no path, or of the path in another header', () => {
    expect(() => parse('', '{"model":"m"}')).toThrow(
      expect.objectContaining({ message: expect.stringContaining('prompt') }),
    );
    const told = { 'x-original-path': '/v1/embeddings' };
    expect(() => parse('', '{"model":"m"}', defaultParsers, told)).toThrow(
      expect.objectContaining({ message: expect.stringContaining('input') }),
    );
  });
});
