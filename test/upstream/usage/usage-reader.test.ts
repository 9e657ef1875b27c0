import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Usage } from '../../../src/index.js';
import { type UsageReader, type UsageReaderOptions, usageReader } from '../../../src/upstream/index.js';
import { key, leaseOf, makeFlow, request } from '../../support/flow.js';
import {
  chatStream,
  chatUsage,
  completionStream,
  continuousStream,
  messagesStream,
  responsesStream,
  toolStream,
} from './streams.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function readAll(body: string, options: UsageReaderOptions = {}): UsageReader {
  const reader = usageReader(options);
  reader.push(bytes(body));
  reader.end();
  return reader;
}

/** A lease that notes what it is told. */
function noting(): { reports: Partial<Usage>[]; report(usage: Partial<Usage>): void } {
  const reports: Partial<Usage>[] = [];
  return { reports, report: (usage) => void reports.push({ ...usage }) };
}

describe('a stream', () => {
  it.each<[string, string, Partial<Usage>]>([
    ['chat completions', chatStream(chatUsage), { promptTokens: 12, completionTokens: 4 }],
    ['chat completions with usage in every chunk', continuousStream, { promptTokens: 12, completionTokens: 9 }],
    ['completions', completionStream, { promptTokens: 5, completionTokens: 3 }],
    ['responses', responsesStream, { promptTokens: 20, completionTokens: 5 }],
    ['messages, whose cached prompt is counted apart', messagesStream, { promptTokens: 100, completionTokens: 15 }],
  ])('of %s tells its usage', (_, body, usage) => {
    const reader = readAll(body);
    expect(reader.usage).toEqual(usage);
    expect(reader.isEstimate).toBe(false);
  });

  it.each<[string, string, number]>([
    ['chat completions without usage', chatStream(), 4],
    ['tool calls and reasoning', toolStream, 3],
    ['two choices at once', completionStream.split('\n\n')[0] ?? '', 2],
    [
      'responses that were cut off',
      responsesStream.slice(0, responsesStream.indexOf('event: response.output_text.done')),
      2,
    ],
  ])('of %s is counted by its pieces of content', (_, body, completionTokens) => {
    const reader = readAll(body);
    expect(reader.usage).toEqual({ completionTokens });
    expect(reader.isEstimate).toBe(true);
  });

  it('is counted on from what the server told', () => {
    const events = messagesStream.split(/(?<=\n\n)/);
    const reader = usageReader();
    const seen = events.map((event) => {
      reader.push(event);
      return [reader.usage.completionTokens, reader.isEstimate];
    });
    expect(seen).toEqual([
      [1, false],
      [1, false],
      [1, false],
      [2, true],
      [3, true],
      [3, true],
      [15, false],
      [15, false],
    ]);
  });

  it.each([
    ['line feeds', '\n'],
    ['carriage returns', '\r'],
    ['both', '\r\n'],
  ])('may be split anywhere, and end its lines with %s', (_, end) => {
    const manyLines = 'data: {"usage":\ndata: {\ndata: "prompt_tokens":\ndata: 5}}\n\n';
    const bodies = [chatStream(chatUsage), responsesStream, messagesStream, continuousStream, manyLines];
    fc.assert(
      fc.property(fc.constantFrom(...bodies), fc.array(fc.integer({ min: 1, max: 40 })), (body, sizes) => {
        const whole = bytes(body.replaceAll('\n', end));
        const reader = usageReader();
        let at = 0;
        for (const size of sizes) {
          reader.push(whole.subarray(at, at + size));
          at += size;
        }
        reader.push(whole.subarray(at));
        reader.end();
        expect(reader.usage).toEqual(readAll(body).usage);
      }),
      { numRuns: 200 },
    );
  });

  it('may come one byte at a time, with a byte order mark in front', () => {
    const reader = usageReader();
    for (const byte of bytes(`\uFEFF${chatStream(chatUsage)}`)) reader.push(Uint8Array.of(byte));
    reader.end();
    expect(reader.usage).toEqual({ promptTokens: 12, completionTokens: 4 });
  });

  it('may lack its last empty line, and have comments, other fields and no blank after the colon', () => {
    const body = ': ping\n\nid: 1\nretry: 5\nevent: x\ndata:{"usage":\ndata: {"prompt_tokens": 3}}';
    expect(readAll(body).usage).toEqual({ promptTokens: 3 });
  });

  it.each([
    ['no JSON', 'data: {oops\n\n'],
    ['nothing', ''],
    ['blanks', ' \n \n'],
    ['null', 'data: null\n\n'],
    ['a list', 'data: [1]\n\n'],
    ['usage of another kind', 'data: {"usage":5}\n\ndata: {"usage":{"prompt_tokens":"7","completion_tokens":-1}}\n\n'],
    ['choices of another kind', 'data: {"choices":[null,7,{"delta":null}]}\n\n'],
    ['other fields', 'database: {"usage":{"prompt_tokens":1}}\n\n'],
  ])('of %s says nothing', (_, body) => {
    expect(readAll(body).usage).toEqual({});
  });

  it('of any bytes does no harm', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.uint8Array(), fc.string())), (chunks) => {
        const reader = usageReader();
        for (const chunk of chunks) reader.push(chunk);
        reader.end();
      }),
    );
  });
});

describe('an event that is too long', () => {
  const rest = 'data: {"usage":{"prompt_tokens":1}}\n\n';

  it.each([
    ['one line', `data: {"choices":[{"delta":{"content":"${'x'.repeat(3000)}"}}]}\n\n`],
    ['many lines', `${'data: "0123456789"\n'.repeat(200)}\n`],
    ['a comment', `:${'x'.repeat(3000)}\n\n`],
  ])('of %s is passed over, and what follows is read', (_, long) => {
    for (const size of [7, 100, 10_000]) {
      const reader = usageReader({ longestEvent: 1000 });
      const body = `${long}${rest}`;
      for (let at = 0; at < body.length; at += size) reader.push(body.slice(at, at + size));
      reader.end();
      expect(reader.usage).toEqual({ promptTokens: 1 });
      expect(reader.firstTokenAtMs).toBeUndefined();
    }
  });

  it('does not fill the memory', () => {
    const reader = usageReader({ longestEvent: 10_000 });
    const chunk = bytes('x'.repeat(65_536));
    reader.push('data: ');
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 2000; i++) reader.push(chunk);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(60e6);
  });
});

describe('a body of JSON', () => {
  const chat = {
    id: 'x',
    choices: [{ message: { role: 'assistant', content: 'a "usage": {} ] } \\" 🚀' } }],
    usage: chatUsage,
    model: 'm',
  };

  it.each<[string, unknown, Partial<Usage>]>([
    ['a chat completion', chat, { promptTokens: 12, completionTokens: 4 }],
    [
      'a response',
      { output: [{ usage: { input_tokens: 1 } }], usage: { input_tokens: 7, output_tokens: 2 } },
      { promptTokens: 7, completionTokens: 2 },
    ],
    [
      'a message',
      { content: [], usage: { input_tokens: 7, cache_read_input_tokens: 3, output_tokens: 2 } },
      { promptTokens: 10, completionTokens: 2 },
    ],
    [
      'an embedding',
      { data: [{ embedding: [0.1, -2e-5] }], usage: { prompt_tokens: 9, total_tokens: 9 } },
      { promptTokens: 9 },
    ],
    ['an error', { error: { message: 'usage' } }, {}],
    ['usage further down', { data: { usage: chatUsage } }, {}],
    [
      'no usage',
      {
        usage: null,
        'us"age': { prompt_tokens: 1 },
        usage2: { prompt_tokens: 1 },
        a: 'usage',
        b: ['usage', { prompt_tokens: 1 }],
      },
      {},
    ],
  ])('%s tells its usage, however it is written and split', (_, body, usage) => {
    for (const text of [JSON.stringify(body), ` \n${JSON.stringify(body, null, 2)}\n`]) {
      expect(readAll(text).usage).toEqual(usage);
      fc.assert(
        fc.property(fc.array(fc.integer({ min: 1, max: 30 })), (sizes) => {
          const whole = bytes(text);
          const reader = usageReader();
          let at = 0;
          for (const size of sizes) {
            reader.push(whole.subarray(at, at + size));
            at += size;
          }
          reader.push(whole.subarray(at));
          reader.end();
          expect(reader.usage).toEqual(usage);
        }),
        { numRuns: 30 },
      );
    }
  });

  it('may be of any shape', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.option(fc.nat()), (body, tokens) => {
        const { usage: _, ...others } = body;
        const text = JSON.stringify(tokens === null ? others : { ...others, usage: { prompt_tokens: tokens } });
        expect(readAll(text).usage).toEqual(tokens === null ? {} : { promptTokens: tokens });
      }),
    );
  });

  it('need not fit into the memory', () => {
    const reader = usageReader();
    reader.push('{"data":[');
    const chunk = bytes('{"embedding":[0.125,0.25],"text":"\\"}]"},'.repeat(1000));
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 500; i++) reader.push(chunk);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(60e6);
    reader.push('0],"usage":{"prompt_tokens":3}}');
    reader.end();
    expect(reader.usage).toEqual({ promptTokens: 3 });
  });

  it('has no first token', () => {
    expect(readAll(JSON.stringify(chat)).firstTokenAtMs).toBeUndefined();
  });
});

it('the first token is the first piece of content, and not the first chunk', () => {
  let nowMs = 0;
  const reader = usageReader({ now: () => nowMs });
  for (const event of chatStream(chatUsage).split(/(?<=\n\n)/)) {
    nowMs += 10;
    reader.push(event);
  }
  expect(reader.firstTokenAtMs).toBe(20);
});

describe('the lease', () => {
  it('is told at the first token, then by the number of tokens, and what the server says at once', () => {
    const lease = noting();
    const reader = usageReader({ lease, reportEveryTokens: 2 });
    for (const event of chatStream(chatUsage).split(/(?<=\n\n)/)) reader.push(event);
    expect(lease.reports).toEqual([
      { completionTokens: 1 },
      { completionTokens: 3 },
      { promptTokens: 12, completionTokens: 4 },
    ]);
  });

  it('is told what is known when the stream is cut off', () => {
    const lease = noting();
    const reader = usageReader({ lease });
    reader.push(chatStream());
    reader.end();
    expect(lease.reports).toEqual([{ completionTokens: 1 }, { completionTokens: 4 }]);
  });

  it('is told the prompt of messages before their first token', () => {
    const lease = noting();
    usageReader({ lease }).push(messagesStream.slice(0, messagesStream.indexOf('event: content')));
    expect(lease.reports).toEqual([{ promptTokens: 100, completionTokens: 1 }]);
  });

  it('is told nothing when there is nothing to tell', () => {
    const lease = noting();
    readAll('data: [DONE]\n\n', { lease });
    readAll('{"error":{}}', { lease });
    expect(lease.reports).toEqual([]);
  });

  it('is told of no figures that no server can mean', async () => {
    const { flow } = makeFlow();
    const lease = leaseOf(await flow.enqueue(request, key()));
    const reader = readAll(
      '{"usage":{"input_tokens":1.7e308,"cache_read_input_tokens":1.7e308,"output_tokens":1e300}}',
      { lease },
    );
    expect(reader.usage).toEqual({});
    expect(lease.usage).toEqual({ promptTokens: 0, completionTokens: 0 });
  });

  it('may have been released meanwhile', () => {
    const { flow } = makeFlow({ saturationDetector: () => 0 });
    const lease = leaseOf(flow.tryEnqueue(request, key()));
    const reader = usageReader({ lease });
    reader.push(chatStream());
    expect(lease.usage.completionTokens).toBe(1);
    lease.release();
    reader.end();
    expect(lease.usage).toEqual({ promptTokens: 0, completionTokens: 1 });
  });
});

it.each([
  [{ lease: {} }],
  [{ lease: 7 }],
  [{ reportEveryTokens: 0 }],
  [{ longestEvent: -1 }],
  [{ now: 5 }],
  [{ leese: undefined }],
])('options are checked: %j', (options) => {
  expect(() => usageReader(options as UsageReaderOptions)).toThrow(/^usageReader: /);
});

describe('a JSON body that came in one piece', () => {
  const usage = '{"prompt_tokens":3,"completion_tokens":4}';
  const told = { promptTokens: 3, completionTokens: 4 };

  it.each<[string, string, Partial<Usage>]>([
    ['is read', `{"id":"x","usage":${usage}}`, told],
    ['is read when its end is missing', `{"id":"x","usage":${usage},"choices":[{"text":"a`, told],
    ['is read when something follows', `{"usage":${usage}} {`, told],
    ['counts by the last of several', `{"usage":{"prompt_tokens":1},"usage":${usage}}`, told],
    ['has no usage within a text', `{"text":"\\"usage\\":${usage.replaceAll('"', '\\"')}"}`, {}],
    ['has no usage of something within it', `{"choices":[{"usage":${usage}}]}`, {}],
    ['has none where it is no object', '{"usage":[1]}', {}],
    ['may be longer than what is parsed at once', `{"text":"${'a'.repeat(5000)}","usage":${usage}}`, told],
  ])('%s', (_, body, expected) => {
    expect(readAll(body).usage).toEqual(expected);
  });
});

describe('events that differ in the text of their delta alone', () => {
  const chunk = (content: string, more = ''): string =>
    `data: {"id":"c","choices":[{"index":0,"delta":{"content":${content}}}]${more}}\n\n`;

  it.each<[string, readonly string[], number]>([
    ['a text', ['"a b"', '" c"', '"d"', '"😀"'], 4],
    ['no text', ['"ab"', '""', '"c"', '""'], 2],
    ['escapes', ['"ab"', '"\\""', '"\\\\"', '"\\u0061"', '"c\\"'], 4],
    ['a text that stands elsewhere, too', ['"choices"', '""', '"index"', '""'], 2],
    ['what is no text', ['"ab"', 'null', '["x"]', '1', '"","x":"y"'], 2],
  ])('count as they do by themselves: %s', (_, contents, completionTokens) => {
    const together = usageReader();
    for (const content of contents) together.push(chunk(content));
    expect(together.usage.completionTokens).toBe(completionTokens);
    const alone = contents.map((content) => readAll(chunk(content)).usage.completionTokens ?? 0);
    expect(alone.reduce((sum, tokens) => sum + tokens)).toBe(completionTokens);
  });

  it('are told of as often as others', () => {
    const lease = noting();
    const reader = usageReader({ lease, reportEveryTokens: 3 });
    for (let index = 0; index < 8; index++) reader.push(chunk(`"token ${index}"`));
    expect(lease.reports.map(({ completionTokens }) => completionTokens)).toEqual([1, 4, 7]);
  });

  it('count alike as bytes and as text, however they are cut and whatever stands between them', () => {
    const contents = [
      '"ab"',
      '"ab"',
      '"c d"',
      '"😀"',
      '""',
      '"\\n"',
      '"x\\"y"',
      '"\r"',
      '"a\nb"',
      'null',
      '"c\\"',
      '"","x":"y"',
    ];
    const between = [': ping\n\n', 'event: x\n', 'data: [DONE]\n\n', '\n', 'data: "ab\n', '\r', '\r\n'];
    const pieces = fc.array(
      fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom(...contents).map((content) => chunk(content)) },
        fc.constantFrom(...between),
      ),
      { maxLength: 30 },
    );
    const cut = fc.array(fc.integer({ min: 1, max: 90 }), { maxLength: 4 });
    fc.assert(
      fc.property(pieces, cut, fc.boolean(), (texts, sizes, isCut) => {
        const [ofBytes, ofText] = [noting(), noting()];
        const read = usageReader({ lease: ofBytes, reportEveryTokens: 2 });
        const reference = usageReader({ lease: ofText, reportEveryTokens: 2 });
        let left = bytes(texts.join(''));
        const events = isCut ? sizes : texts.map((text) => bytes(text).length);
        for (const size of [...events, left.length]) {
          read.push(left.subarray(0, size));
          left = left.subarray(size);
        }
        for (const text of texts) reference.push(text);
        read.end();
        reference.end();
        expect([read.usage, ofBytes.reports]).toEqual([reference.usage, ofText.reports]);
      }),
      { numRuns: 500 },
    );
  });

  it('are one event each when they are counted without decoding', () => {
    const reader = usageReader();
    const two = bytes(chunk('"ab"') + chunk('"cd"'));
    for (let index = 0; index < 3; index++) reader.push(bytes(chunk('"ab"')));
    reader.push(two);
    expect(reader.usage.completionTokens).toBe(5);
    // The beginning of a line is held: what follows belongs to it.
    reader.push(bytes('da'));
    reader.push(bytes(chunk('"ab"')));
    expect(reader.usage.completionTokens).toBe(5);
    reader.push(bytes('é').subarray(0, 1));
    reader.push(bytes(chunk('"ab"')));
    expect(reader.usage.completionTokens).toBe(5);
    reader.push(bytes(chunk('"ab"')));
    expect(reader.usage.completionTokens).toBe(6);
  });

  it('of more than the longest are passed over, whichever way they come', () => {
    const reader = usageReader({ longestEvent: 90 });
    for (let index = 0; index < 3; index++) reader.push(bytes(chunk('"ab"')));
    reader.push(bytes(chunk(`"${'long '.repeat(20)}"`)));
    expect(reader.usage.completionTokens).toBe(3);
  });

  it('do not hide the usage in one of them', () => {
    const reader = usageReader();
    for (let index = 0; index < 3; index++) reader.push(chunk('"ab"'));
    reader.push(chunk('"ab"', ',"usage":{"prompt_tokens":5,"completion_tokens":9}'));
    expect(reader.usage).toEqual({ promptTokens: 5, completionTokens: 9 });
  });
});
