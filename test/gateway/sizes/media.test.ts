/** What a prompt consists of: its text as a model reads it, and its media, in every form in which clients send them. */
import { describe, expect, it } from 'vitest';
import { type GenerationBody, GenerationBodyReader } from '../../../src/gateway/bodies/generation-body.js';
import { dataUrl, dimensions, formats, pdf, photo, picture, wav } from './pictures.js';

type Prompt = GenerationBody['prompt'];

function promptOf(body: unknown, piece = 1_000): Prompt {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const reader = new GenerationBodyReader();
  for (let at = 0; at < bytes.length; at += piece) reader.push(bytes.subarray(at, at + piece));
  return reader.end(bytes).prompt;
}

const chat = (...content: unknown[]): unknown => ({ model: 'm', messages: [{ role: 'user', content }] });
const image = (url: string, more: object = {}): unknown => ({ type: 'image_url', image_url: { url, ...more } });
const sizeIn = ({ media: [first] }: Prompt): string => `${first?.kind} ${first?.size?.width}x${first?.size?.height}`;

describe('the size of a picture', () => {
  it.each(formats.flatMap((format) => dimensions.map((size) => [format, size] as const)))(
    'is read from %s of %s',
    (format, size) => {
      expect(sizeIn(promptOf(chat(image(dataUrl('image/png', picture(format, size))))))).toBe(`picture ${size}`);
    },
  );

  it('is found behind a preview, and however slashes are escaped', () => {
    const url = dataUrl('image/jpeg', photo());
    expect(sizeIn(promptOf(chat(image(url)), 65_536))).toBe('picture 1024x1536');
    const escaped = JSON.stringify(chat(image(url))).replaceAll('/', '\\/');
    expect(sizeIn(promptOf(escaped, 65_536))).toBe('picture 1024x1536');
  });

  it.each([
    ['2^31 px', (head: Buffer) => head.writeUInt32BE(2 ** 31, 16)],
    ['no px', (head: Buffer) => head.writeUInt32BE(0, 20)],
    ['only a beginning', (head: Buffer) => head.fill(0, 4)],
  ])('is not believed that says %s', (_what, spoil) => {
    const file = picture('png');
    spoil(file);
    expect(promptOf(chat(image(dataUrl('image/png', file)))).media).toMatchObject([{ kind: 'link', tokens: 1000 }]);
  });
});

describe('media are found', () => {
  const png = picture('png');
  const base64 = png.toString('base64');
  it.each<[string, unknown, object]>([
    [
      'in a chat of OpenAI',
      chat(image(dataUrl('image/png', png), { detail: 'low' })),
      { kind: 'picture', isLow: true },
    ],
    ['by its link', chat(image('https://a.example/b.png')), { kind: 'link', tokens: 1000, isLow: false }],
    [
      'in Responses',
      {
        input: [
          { role: 'user', content: [{ type: 'input_image', detail: 'low', image_url: dataUrl('image/png', png) }] },
        ],
      },
      { kind: 'picture', isLow: true },
    ],
    [
      'in messages of Anthropic',
      chat({ type: 'image', source: { type: 'base64', data: base64, media_type: 'image/png' } }),
      { kind: 'picture', size: { width: 1024, height: 1536 } },
    ],
    [
      'by a link in those',
      chat({ type: 'image', source: { type: 'url', url: 'https://a.example/b' } }),
      { kind: 'link' },
    ],
    [
      'in the result of a tool',
      chat({
        type: 'tool_result',
        tool_use_id: 't',
        content: [{ type: 'image', source: { media_type: 'image/png', data: base64 } }],
      }),
      { kind: 'picture' },
    ],
    [
      'as sound with its length',
      chat({ input_audio: { data: wav(60).toString('base64'), format: 'wav' } }),
      { kind: 'sound', tokens: 1501 },
    ],
    [
      'as sound by its bytes',
      chat({ input_audio: { format: 'mp3', data: Buffer.alloc(160_000, 7).toString('base64') } }),
      { kind: 'sound', tokens: 251 },
    ],
    [
      'as sound of vLLM',
      chat({ type: 'audio_url', audio_url: { url: dataUrl('audio/wav', wav(10)) } }),
      { kind: 'sound', tokens: 251 },
    ],
    [
      'as video of vLLM',
      chat({ type: 'video_url', video_url: { url: dataUrl('video/mp4', Buffer.alloc(1_000_000)) } }),
      { kind: 'video', tokens: 5000 },
    ],
    [
      'as a document of three pages',
      chat({ type: 'file', file: { file_data: dataUrl('application/pdf', pdf(3)) } }),
      { kind: 'document', tokens: 4500 },
    ],
    [
      'as a document whose pages lie',
      chat({
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: pdf(99_999).toString('base64') },
      }),
      { kind: 'document', tokens: 5001 },
    ],
    [
      'as a file that the server has',
      { input: [{ content: [{ type: 'input_file', file_id: 'file-1' }] }] },
      { kind: 'document', tokens: 1000 },
    ],
  ])('%s', (_where, body, medium) => {
    const { media, textBytes } = promptOf(body);
    expect(media).toMatchObject([medium]);
    expect(media).toHaveLength(1);
    expect(textBytes).toBeLessThan(10);
  });

  it('nowhere else: a tool may be called with a URL, and a text may look like a picture', () => {
    const text = dataUrl('image/png', png);
    const { media, textBytes } = promptOf(
      chat({ type: 'tool_use', input: { url: 'https://a.example' } }, { type: 'text', text }),
    );
    expect(media).toEqual([]);
    expect(textBytes).toBe('user'.length + 'https://a.example'.length + text.length);
  });
});

describe('the text of a prompt', () => {
  it.each<[string, string, number]>([
    [
      'without what surrounds it',
      '{"model":"m","temperature":1,"messages":[{"role":"user","content":"12345678"}]}',
      12,
    ],
    [
      'with escapes as what they stand for',
      String.raw`{"prompt":"a\n\"\\\u0041\u00e9\u4f60\ud83d\ude00"}`,
      4 + 1 + 2 + 3 + 4,
    ],
    ['of names and texts of tools', '{"tools":[{"function":{"name":"f"}}]}', 'function'.length + 'name'.length + 1],
    [
      'of instructions, a system prompt and documents',
      '{"instructions":"ab","system":[{"type":"text","text":"cd"}],"documents":["ef"]}',
      6,
    ],
    ['without the IDs of calls', '{"input":[{"type":"function_call_output","call_id":"call_123","output":"ok"}]}', 2],
    [
      'that a document contains',
      '{"messages":[{"content":[{"source":{"type":"text","media_type":"text/plain","data":"12345"}}]}]}',
      5,
    ],
  ])('counts %s', (_what, body, bytes) => {
    for (const piece of [1, 7, 1_000])
      expect(promptOf(body, piece)).toEqual({ textBytes: bytes, numbers: 0, media: [] });
  });

  it('that is a list of tokens counts them', () => {
    expect(promptOf('{"prompt":[[1,22,333],[4444]],"max_tokens":5}').numbers).toBe(4);
  });
});

describe('what is hostile', () => {
  it.each<[string, () => string]>([
    [
      'a data URL that never closes',
      () => `{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,${'A'.repeat(2 ** 23)}`,
    ],
    [
      'one full of escapes',
      () => `{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,${'\\/'.repeat(2 ** 22)}"}}]}]}`,
    ],
    [
      '10,000 pictures',
      () => JSON.stringify(chat(...Array.from({ length: 10_000 }, () => image('data:image/jpeg;base64,/9j/4AAC4AAC')))),
    ],
    ['results of tools in results of tools', () => `{"messages":${'[{"content":'.repeat(120)}"x"${'}]'.repeat(120)}}`],
    [
      'pictures that are all head',
      () =>
        JSON.stringify(
          chat(
            ...Array.from({ length: 20 }, () =>
              image(`data:image/jpeg;base64,/9j/${'/+AAAv/gAAI='.slice(0, 8).repeat(40_000)}`),
            ),
          ),
        ),
    ],
  ])('%s takes no longer than text of its length', (_what, make) => {
    const body = make();
    const text = JSON.stringify({ messages: [{ role: 'user', content: 'x\n'.repeat(body.length / 3) }] });
    const timeOf = (each: string): number => {
      const startedAtMs = performance.now();
      try {
        promptOf(each, 65_536);
      } catch (error) {
        expect(error).toMatchObject({ status: 400 });
      }
      return performance.now() - startedAtMs;
    };
    timeOf(text);
    expect(timeOf(body)).toBeLessThan(10 * timeOf(text) + 500);
  });

  it('counts as text beyond the first thousand media', () => {
    const { media } = promptOf(chat(...Array.from({ length: 10_000 }, () => image('https://a.example/b.png'))), 65_536);
    expect(media).toHaveLength(1_024);
  });
});
