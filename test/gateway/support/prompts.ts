/** Prompts of many kinds, and how each dialect writes them. */
import { readdirSync, readFileSync } from 'node:fs';
import { crc32, deflateSync } from 'node:zlib';
import { dimensions, formats, pdf, photo, picture, wav } from '../sizes/pictures.js';
import { known } from './token-server.js';

type Random = () => number;

/** Media are base64; a `link` is a URL. */
type Part =
  | { readonly text: string }
  | { readonly image: string; readonly type: string }
  | { readonly link: string }
  | { readonly sound: string }
  | { readonly document: string };

export interface Prompt {
  readonly system?: string;
  readonly parts: readonly Part[];
  readonly tools?: readonly Tool[];
  /** Earlier calls of tools, with their results. */
  readonly calls?: readonly { readonly input: object; readonly result: string }[];
}

interface Tool {
  readonly name: string;
  readonly description: string;
  readonly parameters: object;
}

const root = new URL('../../../', import.meta.url);
const textOf = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const repeated = (text: string): string => text.repeat(Math.ceil(20_000 / text.length));
const texts = {
  english: ['docs/concepts.md', 'docs/http.md', 'docs/quotas.md'].map(textOf).join('\n'),
  code: readdirSync(new URL('src/core/engine/', root), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => textOf(`src/core/engine/${name}`))
    .join('\n'),
  german: repeated(
    'Die Warteschlange entscheidet, welche Anfrage als nächste an die Reihe kommt. Wer viel verbraucht hat, wartet ' +
      'länger; wer selten fragt, kommt sofort dran. Überlastung erkennt man daran, dass Antwortzeiten wachsen, obwohl ' +
      'die Auslastung schon vollständig ist. Grundsätzlich gilt: lieber früh ablehnen als spät enttäuschen. ',
  ),
  chinese: repeated(
    '队列决定下一个请求是谁的。用得多的租户要等得更久，很少提问的租户马上就能得到服务。当响应时间不断增长，而服务器已经满负荷时，就是过载了。' +
      '最好早一点拒绝，也不要让用户等到最后才失望。每个请求都有优先级，优先级高的先走，但是低优先级的请求也不能永远等下去。',
  ),
  russian: repeated(
    'Очередь решает, какой запрос будет следующим. Кто много потратил, ждёт дольше; кто спрашивает редко, получает ' +
      'ответ сразу. Перегрузку видно по тому, что время ответа растёт, хотя серверы уже заняты полностью. ',
  ),
};

/** So many characters from anywhere in a text. */
function excerpt(text: string, length: number, random: Random): string {
  const from = Math.floor(random() * Math.max(0, text.length - length));
  return text.slice(from, from + length);
}

/** From `least` to `most`, as many short ones as long ones. */
const between = (random: Random, least: number, most: number): number => Math.round(least * (most / least) ** random());

/** A whole PNG, of one colour. */
function png(width: number, height: number): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const named = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(named));
    return Buffer.concat([length, named, sum]);
  };
  const head = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  const rows = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height));
  const magic = Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]);
  return Buffer.concat([magic, chunk('IHDR', head), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))]);
}

const base64 = (file: Buffer): string => file.toString('base64');
const sized = (size: string) => ({ width: Number(size.split('x')[0]), height: Number(size.split('x')[1]) });
/** The bytes may repeat, and then mean the same. */
const stored = formats.flatMap((format) =>
  dimensions.map((size) => ({ type: `image/${format}`, image: base64(known(picture(format, size), sized(size))) })),
);
const camera = { type: 'image/jpeg', image: base64(known(photo(3_000_000), { width: 1024, height: 1536 })) };

function anyPicture(random: Random): Part {
  if (random() < 0.5) return stored[Math.floor(random() * stored.length)]!;
  const [width, height] = [between(random, 64, 8_000), between(random, 64, 8_000)];
  return { type: 'image/png', image: base64(known(png(width, height), { width, height })) };
}

const linkTo = (width: number, height: number, random: Random): string =>
  `https://a.example/${Math.floor(random() * 1e6)}/${width}x${height}.jpg`;
const question = (random: Random): Part => ({ text: excerpt(texts.english, between(random, 40, 300), random) });
const textIn =
  (language: keyof typeof texts, least: number, most: number) =>
  (random: Random): Prompt => ({ parts: [{ text: excerpt(texts[language], between(random, least, most), random) }] });

/** Definitions of tools as agents send them, with a schema each. */
const tools: readonly Tool[] = ['read_file', 'write_file', 'search', 'run_command', 'fetch_url', 'ask_user'].map(
  (name) => ({
    name,
    description: `Use ${name} when the task needs it. ${excerpt(texts.english, 400, () => name.length / 12)}`,
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'Where, as a path from the root of the project.' },
        limit: { type: 'integer', description: 'How many lines at most; all of them if it is left out.' },
        mode: { type: 'string', enum: ['plain', 'regex', 'glob'] },
      },
      required: ['path'],
    },
  }),
);

export const kinds: Readonly<Record<string, (random: Random) => Prompt>> = {
  'English text': textIn('english', 200, 6_000),
  'German text': textIn('german', 200, 6_000),
  'Chinese text': textIn('chinese', 60, 3_000),
  'Russian text': textIn('russian', 100, 4_000),
  code: textIn('code', 200, 6_000),
  'short questions': textIn('english', 2, 60),
  'texts of any length': textIn('english', 2, 16_000),
  'an agent with tools': (random) => ({
    system: excerpt(texts.english, 2_000, random),
    tools,
    calls: Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({
      input: { path: 'src/index.ts', limit: Math.floor(random() * 500) },
      result: excerpt(texts.code, between(random, 200, 4_000), random),
    })),
    parts: [question(random)],
  }),
  'a picture of any kind and size': (random) => ({ parts: [question(random), anyPicture(random)] }),
  'a photo of 3 MB': (random) => ({ parts: [question(random), camera] }),
  'some pictures in a long text': (random) => ({
    parts: [
      { text: excerpt(texts.english, between(random, 1_000, 8_000), random) },
      ...Array.from({ length: 1 + Math.floor(random() * 4) }, () => anyPicture(random)),
    ],
  }),
  'links to photos of one size': (random) => ({
    parts: [question(random), { link: linkTo(1600, 1200, random) }],
  }),
  'links to photos of 12 megapixels': (random) => ({ parts: [question(random), { link: linkTo(4000, 3000, random) }] }),
  'links to photos of any size': (random) => ({
    parts: [question(random), { link: linkTo(between(random, 64, 8_000), between(random, 64, 8_000), random) }],
  }),
  'sound of any length': (random) => {
    const seconds = Math.round(between(random, 3, 60));
    return { parts: [question(random), { sound: base64(known(wav(seconds), { seconds })) }] };
  },
  'a document of any length': (random) => {
    const pages = Math.round(between(random, 1, 60));
    return { parts: [question(random), { document: base64(known(pdf(pages, 2_000 * pages + 5_000), { pages })) }] };
  },
};

export interface Written {
  readonly path: string;
  readonly body: object;
}

const fileUrl = (type: string, data: string): string => `data:${type};base64,${data}`;

/** As the clients of the three dialects write it. */
export const dialects = {
  chat(model: string, { system, parts, tools: defined, calls = [] }: Prompt): Written {
    const content = parts.map((part) => {
      if ('text' in part) return { type: 'text', ...part };
      if ('image' in part) return { type: 'image_url', image_url: { url: fileUrl(part.type, part.image) } };
      if ('link' in part) return { type: 'image_url', image_url: { url: part.link } };
      if ('sound' in part) return { type: 'input_audio', input_audio: { data: part.sound, format: 'wav' } };
      return { type: 'file', file: { filename: 'a.pdf', file_data: fileUrl('application/pdf', part.document) } };
    });
    const earlier = calls.flatMap(({ input, result }, i) => [
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: `call_${i}`, type: 'function', function: { name: 'read_file', arguments: JSON.stringify(input) } },
        ],
      },
      { role: 'tool', tool_call_id: `call_${i}`, content: result },
    ]);
    const messages = [
      ...(system === undefined ? [] : [{ role: 'system', content: system }]),
      { role: 'user', content },
      ...earlier,
    ];
    const named = defined?.map((each) => ({ type: 'function', function: each }));
    return { path: '/v1/chat/completions', body: { model, max_tokens: 256, messages, tools: named } };
  },

  responses(model: string, { system, parts, tools: defined, calls = [] }: Prompt): Written {
    const content = parts.map((part) => {
      if ('text' in part) return { type: 'input_text', ...part };
      if ('image' in part) return { type: 'input_image', detail: 'auto', image_url: fileUrl(part.type, part.image) };
      if ('link' in part) return { type: 'input_image', image_url: part.link };
      if ('sound' in part) return { type: 'input_audio', input_audio: { data: part.sound, format: 'wav' } };
      return { type: 'input_file', filename: 'a.pdf', file_data: fileUrl('application/pdf', part.document) };
    });
    const earlier = calls.flatMap(({ input: asked, result }, i) => [
      { type: 'function_call', call_id: `call_${i}`, name: 'read_file', arguments: JSON.stringify(asked) },
      { type: 'function_call_output', call_id: `call_${i}`, output: result },
    ]);
    const input = [{ role: 'user', content }, ...earlier];
    const named = defined?.map((each) => ({ type: 'function', ...each }));
    return {
      path: '/v1/responses',
      body: { model, max_output_tokens: 256, instructions: system, input, tools: named },
    };
  },

  messages(model: string, { system, parts, tools: defined, calls = [] }: Prompt): Written {
    const content = parts.map((part) => {
      if ('text' in part) return { type: 'text', ...part };
      const sourceOf = (media_type: string, data: string) => ({ type: 'base64', media_type, data });
      if ('image' in part) return { type: 'image', source: sourceOf(part.type, part.image) };
      if ('link' in part) return { type: 'image', source: { type: 'url', url: part.link } };
      if ('sound' in part) throw new Error('this dialect has no sound');
      return { type: 'document', source: sourceOf('application/pdf', part.document) };
    });
    const earlier = calls.flatMap(({ input, result }, i) => [
      { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${i}`, name: 'read_file', input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: `toolu_${i}`, content: result }] },
    ]);
    const named = defined?.map(({ parameters, ...each }) => ({ ...each, input_schema: parameters }));
    const messages = [{ role: 'user', content }, ...earlier];
    return { path: '/v1/messages', body: { model, max_tokens: 256, system, messages, tools: named } };
  },
};
