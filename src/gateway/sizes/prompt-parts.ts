/**
 * Counts what a prompt consists of while its bytes are scanned: bytes of text, numbers, and where media stand.
 *
 *   "messages": [{ "content": [{ "type": "text", "text": "…" }, { "image_url": { "url": "data:…", "detail": "low" } }] }]
 *                                          └ unread       └ text                          └ a medium         └ its label
 *
 * Invariant: bounded memory, because media beyond the first thousand count as text.
 */
import { type Medium, mediumOf } from './media.js';

/** What a prompt consists of, whatever the model. */
export interface PromptParts {
  readonly textBytes: number;
  /** Of prompts that are lists of tokens, and in the definitions of tools. */
  readonly numbers: number;
  readonly media: readonly Medium[];
}

/** A string that is a medium, or tells something of one in the same object. */
type Mark = readonly [field: string, object: number, start: number, end: number];

const mostMarks = 1_024;
const longestLabel = 64;

/** The hash of a name with one byte more. */
export const addToHash = (hash: number, byte: number): number => Math.imul(hash ^ byte, 0x01000193);

const byHash = (...names: string[]): ReadonlyMap<number, string> =>
  new Map(names.map((name) => [Buffer.from(name).reduce(addToHash, 0), name]));

/** Fields of the body that a model reads: of the former the values, of the latter the names too. */
const prompts = /^(?:messages|prompt|input|system|instructions|suffix|quer(?:y|ies)|documents|text_[12])$/;
const tools = /^(?:tools|functions)$/;
/** Their string is a medium. */
const media = byHash('image_url', 'video_url', 'audio_url', 'file_url', 'file_data', 'file_id');
/** Objects whose `url` or `data` is one. */
const wrappers = byHash('image_url', 'video_url', 'audio_url', 'input_audio', 'source');
const wrapped = byHash('url', 'data');
const labels = byHash('detail', 'format', 'media_type');
/** No part of the text that a model reads. */
const unread = byHash('type', 'id', 'call_id', 'tool_call_id', 'tool_use_id', 'signature', 'encrypted_content');

export class PromptCounter {
  private textBytes = 0;
  private numbers = 0;
  private readonly marks: Mark[] = [];
  private reads: 'nothing' | 'values' | 'names' = 'nothing';
  /** Of the containers that are open: the hash of the name, and a number. */
  private readonly names: number[] = [];
  private readonly objects: number[] = [];
  private opened = 0;
  private name = 0;
  private field: string | undefined = undefined;

  /** A field of the body begins. */
  begin(name: string): void {
    this.reads = prompts.test(name) ? 'values' : tools.test(name) ? 'names' : 'nothing';
    this.name = 0;
  }

  /** A name within it. */
  named(hash: number, bytes: number): void {
    this.name = hash;
    if (this.reads === 'names') this.textBytes += bytes;
  }

  open(): void {
    this.names.push(this.name);
    this.objects.push(this.opened++);
  }

  close(): void {
    this.name = this.names.pop() ?? 0;
    this.objects.pop();
  }

  /** A string begins. True: it is a medium, and may be long. */
  isMedium(): boolean {
    this.field = undefined;
    if (this.reads !== 'values' || this.marks.length === mostMarks) return false;
    const { name, names } = this;
    const wrapper = wrapped.has(name) ? wrappers.get(names[names.length - 1] ?? 0) : undefined;
    if (wrapper !== undefined) this.field = wrapped.get(name) === 'data' ? `${wrapper} data` : wrapper;
    else this.field = media.get(name) ?? (labels.has(name) ? 'label' : undefined);
    return this.field !== undefined;
  }

  /** The string ended; `spare`: by how much its escapes are longer than what they stand for. */
  string(start: number, end: number, spare: number): void {
    const { reads, field, objects } = this;
    if (reads === 'nothing') return;
    if (field !== undefined && (end - start <= longestLabel || !labels.has(this.name)))
      this.marks.push([field, objects[objects.length - 1] ?? 0, start, end]);
    else if (reads === 'names' || !unread.has(this.name)) this.textBytes += end - start - spare;
  }

  number(): void {
    if (this.reads !== 'nothing') this.numbers += 1;
  }

  /** @param body all that was scanned */
  end(body: Buffer): PromptParts {
    const { numbers, marks } = this;
    const told = new Map<number, string>();
    for (const [field, object, start, end] of marks)
      if (field === 'label') told.set(object, `${told.get(object) ?? ''} ${body.toString('latin1', start, end)}`);
    const found: Medium[] = [];
    for (const [field, object, start, end] of marks) {
      const medium = field === 'label' ? undefined : mediumOf(body, start, end, field, told.get(object) ?? '');
      if (medium !== undefined) found.push(medium);
      else if (field !== 'label') this.textBytes += end - start;
    }
    return { textBytes: this.textBytes, numbers, media: found };
  }
}
