/**
 * A model server on a socket that takes prompts in the dialects of OpenAI (chat, Responses) and Anthropic, counts them
 * as the family of the model does, and reports the usage in the same dialect, in a stream too. It knows files by what
 * was put into them (`files`), so that it reads no head of any.
 */
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Family, Size } from './token-counts.js';
import { startUpstream, type Upstream } from './upstream.js';

/** What is in a file: a picture, sound, or a document. */
export type Contents = Size | { readonly seconds: number } | { readonly pages: number };

/** By the digest of the file. */
const files = new Map<string, Contents>();
const digest = (file: Buffer): string => createHash('sha256').update(file).digest('base64');

/** Tells the server what is in a file. */
export function known(file: Buffer, contents: Contents): Buffer {
  files.set(digest(file), contents);
  return file;
}

type Fields = Readonly<Record<string, unknown>>;
const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];

/** Tokens of a prompt, whatever its dialect. */
export function promptTokens(family: Family, body: Fields): number {
  const { frame } = family;
  const tools = listOf(body.tools);
  let tokens = frame.prompt;
  for (const message of [...listOf(body.messages), ...listOf(body.input)])
    tokens += frame.message + ofPart(family, message);
  for (const text of [body.system, body.instructions]) tokens += ofPart(family, text);
  for (const tool of tools) tokens += frame.tool + family.text(JSON.stringify(fields(tool).function ?? tool));
  return tokens + (tools.length > 0 ? frame.tools : 0);
}

/** A message, a part of one, or its text. */
function ofPart(family: Family, given: unknown): number {
  if (typeof given === 'string') return family.text(given);
  if (Array.isArray(given)) return given.reduce((sum: number, part) => sum + ofPart(family, part), 0);
  const part = fields(given);
  const { image_url, input_audio, audio_url, file, source, type } = part;
  if (image_url !== undefined || (type === 'image' && source !== undefined)) return ofPicture(family, part);
  const data =
    fields(input_audio).data ??
    fields(audio_url).url ??
    fields(file).file_data ??
    part.file_data ??
    fields(source).data;
  if (data !== undefined) return ofContents(family, contentsOf(data), undefined);
  let tokens = 0;
  for (const name of ['role', 'name', 'content', 'text', 'output', 'arguments'])
    tokens += ofPart(family, part[name] ?? '');
  for (const call of listOf(part.tool_calls)) tokens += ofPart(family, fields(call).function ?? '');
  if (type === 'tool_use') tokens += family.text(JSON.stringify(part.input));
  return tokens;
}

function ofPicture(family: Family, { image_url, detail, source }: Fields): number {
  const { data, url = data } = fields(source);
  const from = fields(image_url).url ?? image_url ?? url;
  return ofContents(family, contentsOf(from), String(fields(image_url).detail ?? detail ?? 'auto'));
}

function ofContents(family: Family, contents: Contents, detail: string | undefined): number {
  if ('width' in contents) return family.picture(contents, detail);
  return 'pages' in contents ? contents.pages * family.perPage : Math.ceil(contents.seconds * family.perSecondOfSound);
}

/** Of a data URL, of base64, or of a link, whose picture has the size that its name tells. */
function contentsOf(from: unknown): Contents {
  const text = String(from);
  const [, width, height] = /^https:.*\/(\d+)x(\d+)\./.exec(text) ?? [];
  if (width !== undefined) return { width: Number(width), height: Number(height) };
  const contents = files.get(digest(Buffer.from(text.replace(/^data:[^,]*,/, ''), 'base64')));
  if (contents === undefined) throw new Error(`nobody told what is in ${text.slice(0, 60)}`);
  return contents;
}

/** Told once in each dialect, at the end of a stream; Anthropic tells the prompt at the beginning. */
function answer(res: ServerResponse, path: string, isStream: boolean, tokens: number, cached: number): void {
  const openai = { prompt_tokens: tokens, completion_tokens: 2, total_tokens: tokens + 2 };
  const input = { input_tokens: tokens, output_tokens: 2, total_tokens: tokens + 2 };
  const anthropic = { input_tokens: tokens - cached, cache_read_input_tokens: cached, output_tokens: 2 };
  const cachedIn = { cached_tokens: cached };
  const [whole, events]: [object, readonly object[]] = path.endsWith('/messages')
    ? [
        { type: 'message', content: [{ type: 'text', text: 'ok' }], usage: anthropic },
        [
          { type: 'message_start', message: { type: 'message', usage: { ...anthropic, output_tokens: 1 } } },
          { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ok' } },
          { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
          { type: 'message_stop' },
        ],
      ]
    : path.endsWith('/responses')
      ? [
          { object: 'response', status: 'completed', usage: { ...input, input_tokens_details: cachedIn } },
          [
            { type: 'response.output_text.delta', delta: 'ok' },
            { type: 'response.completed', response: { usage: { ...input, input_tokens_details: cachedIn } } },
          ],
        ]
      : [
          { choices: [{ message: { content: 'ok' } }], usage: { ...openai, prompt_tokens_details: cachedIn } },
          [
            { choices: [{ delta: { content: 'ok' } }] },
            { choices: [], usage: { ...openai, prompt_tokens_details: cachedIn } },
          ],
        ];
  if (!isStream) return void res.setHeader('content-type', 'application/json').end(JSON.stringify(whole));
  res.setHeader('content-type', 'text/event-stream');
  for (const event of events)
    res.write(`${'type' in event ? `event: ${String(event.type)}\n` : ''}data: ${JSON.stringify(event)}\n\n`);
  res.end(path.endsWith('/chat/completions') ? 'data: [DONE]\n\n' : '');
}

/** @param cachedShare of each prompt is told as cached, 0…1 */
export async function startTokenServer(family: Family, cachedShare = 0): Promise<Upstream> {
  return await startUpstream(({ req, res, body }) => {
    const asked = fields(JSON.parse(body));
    const tokens = promptTokens(family, asked);
    answer(res, req.url ?? '', asked.stream === true, tokens, Math.floor(tokens * cachedShare));
  });
}
