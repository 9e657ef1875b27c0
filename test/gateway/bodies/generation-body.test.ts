import { describe, expect, it, vi } from 'vitest';
import { type GenerationBody, GenerationBodyReader } from '../../../src/gateway/bodies/generation-body.js';
import { withFields } from '../../../src/gateway/bodies/with-fields.js';

function read(text: string): GenerationBody {
  const bytes = Buffer.from(text);
  const reader = new GenerationBodyReader();
  reader.push(bytes);
  return reader.end(bytes);
}

describe('what is kept of a body', () => {
  it.each([
    ['{"max_tokens":10}', 10],
    ['{"max_tokens":1,"max_completion_tokens":500}', 500],
    ['{"max_output_tokens":7}', 7],
    ['{"max_tokens":10,"n":3}', 30],
    ['{"max_tokens":10,"n":2,"best_of":5}', 50],
    ['{"max_tokens":null}', undefined],
    ['{"max_tokens":-1}', undefined],
    ['{"max_tokens":"10"}', undefined],
    ['{"n":3}', undefined],
    ['{"max_tokens":9007199254740991,"n":9007199254740991}', Number.MAX_SAFE_INTEGER],
  ])('of %s: at most %s tokens are generated', (text, expected) => {
    expect(read(text).maxOutputTokens).toBe(expected);
  });

  it.each(['{"max_tokens":0.5}', '{"n":1e400}', '{"max_completion_tokens":1e300}'])('rejects %s with 400', (text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ status: 400, code: 'invalid_value' }));
  });

  it('names the beginning of the prompt, whatever follows it', () => {
    const prompt = (end: string): string =>
      JSON.stringify({ messages: [{ role: 'system', content: 'x'.repeat(2000) + end }] });
    expect(read(prompt('a')).prefixKey).toBe(read(prompt('b')).prefixKey);
    expect(read(prompt('a')).prefixKey).not.toBe(read('{"prompt":"another"}').prefixKey);
    expect(read('{}').prefixKey).toBeUndefined();
  });

  it.each(['model', 'stream', 'max_tokens', 'n', 'prompt'])('is not made text of at length: %s', (name) => {
    const bytes = Buffer.from(`{"${name}":["${'é'.repeat(1e5)}"]}`);
    const reader = new GenerationBodyReader();
    reader.push(bytes);
    const decode = vi.spyOn(bytes, 'toString');
    reader.end(bytes);
    for (const [, start = 0, end = bytes.length] of decode.mock.calls) expect(end - start).toBeLessThanOrEqual(1_024);
  });

  it('is no model that would have to be kept at length', () => {
    expect(() => read(`{"model":"${'m'.repeat(1e6)}"}`)).toThrow(
      expect.objectContaining({ status: 400, code: 'invalid_value' }),
    );
  });
});

describe('another model', () => {
  it.each([
    ['{"model":"a","seed":12345678901234567890}', '{"model":"b\\"","seed":12345678901234567890}'],
    ['{ "n" : 1 , "model" : "ä" }', '{ "n" : 1 , "model" : "b\\"" }'],
    ['{"n":1}', '{"model":"b\\"","n":1}'],
    ['{ }', '{"model":"b\\"" }'],
  ])('in %s leaves every other byte as it was', (before, after) => {
    const bytes = Buffer.from(before);
    expect(withFields(bytes, read(before).spans, { model: JSON.stringify('b"') }).toString()).toBe(after);
  });
});
