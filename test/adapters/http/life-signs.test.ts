/** What stands in a stream that began in place of the answer that a drop would have had. */
import { describe, expect, it } from 'vitest';
import { type LifeSigns, lifeSigns } from '../../../src/adapters/http/life-signs.js';
import { toHttpResponse } from '../../../src/adapters/http/to-http-response.js';
import type { Drop } from '../../../src/index.js';
import { drops } from './drops.js';

const signsAt = (url: string, body: unknown = { stream: true }): LifeSigns | undefined =>
  lifeSigns({}, {}, { headers: {}, asked: { url, body } }, () => {});

/** The data of the only event, and its name. */
function eventIn(text: string): { name: string | undefined; data: Record<string, unknown> } {
  const [, name, data = ''] = /^(?:event: (\w+)\n)?data: (.*)\n\n$/.exec(text) ?? [];
  return { name, data: JSON.parse(data) };
}

describe.each(Object.entries(drops) as [string, Drop][])('the drop %s', (_, drop) => {
  const { status, headers, body } = toHttpResponse(drop, { body: 'openai', random: () => 0 });
  const { error } = JSON.parse(body);
  const told = (url: string) => eventIn(signsAt(url)!.instead(status, (name) => headers[name])?.(body) ?? '');
  const retry = headers['retry-after-ms'];
  const after = retry === undefined ? {} : { retry_after_ms: Number(retry) };

  it('is told with the code, the message and the wait of its answer', () => {
    expect(told('/v1/chat/completions')).toEqual({ name: undefined, data: { error: { ...error, status, ...after } } });
  });

  it('is told in the events of Responses and of Anthropic', () => {
    const { code, message } = error;
    expect(told('/v1/responses?x')).toMatchObject({ name: 'error', data: { type: 'error', code, message, ...after } });
    const type = [429, 503, 529].includes(status) ? 'overloaded_error' : 'api_error';
    expect(told('/v1/messages')).toMatchObject({
      name: 'error',
      data: { type: 'error', error: { type, code, message, ...after } },
    });
  });
});

describe('an answer that is no stream', () => {
  const text = (url: string, status: number, body: string) =>
    signsAt(url)!.instead(status, () => undefined)?.(body) ?? '';

  it('of a server keeps what it says', () => {
    const overloaded = '{"type":"error","error":{"type":"invalid_request_error","message":"too long"}}';
    expect(eventIn(text('/v1/messages', 400, overloaded)).data).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'too long' },
    });
  });

  it.each([
    ['no JSON', '<html>\r\n502</html>', '<html>\r\n502</html>'],
    ['nothing', '', 'status 502'],
    ['problem details', '{"title":"Bad","detail":"no server"}', 'no server'],
    ['an error that is text', '{"error":"down"}', '{"error":"down"}'],
    ['null', 'null', 'null'],
  ])('is told although it is %s', (_, body, message) => {
    expect(eventIn(text('/v1/completions', 502, body)).data).toMatchObject({ error: { message, status: 502 } });
  });

  it('that succeeds is one event, line by line', () => {
    expect(text('/v1/completions', 200, '{\n}')).toBe('data: {\ndata: }\n\n');
  });
});

describe('who gets signs of life', () => {
  it('streams by Accept, by a parsed body, or as the host says', () => {
    expect(lifeSigns({}, {}, { headers: { accept: 'text/event-stream' } }, () => {})?.kind).toBe('events');
    expect(signsAt('/v1/x')?.kind).toBe('events');
    expect(signsAt('/v1/x', { stream: 'yes' })).toBeUndefined();
    expect(
      lifeSigns({}, { isStream: () => false }, { headers: { accept: 'text/event-stream' } }, () => {}),
    ).toBeUndefined();
  });

  it('others only where the host says so', () => {
    const other = (options: Parameters<typeof lifeSigns>[1]) => lifeSigns({}, options, { headers: {} }, () => {})?.kind;
    expect([other({}), other({ informational: true }), other({ json: 'whitespace' })]).toEqual([
      undefined,
      'processing',
      'whitespace',
    ]);
  });
});
