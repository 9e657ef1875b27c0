/** Reads the usage from responses of OpenAI's and Anthropic's interfaces as they pass, and reports it to the lease. */
import * as s from '../../base/schema/schema.js';
import { contentPieces, fieldsOf, parseJson } from '../../base/stream/content-pieces.js';
import { SseData } from '../../base/stream/sse-data.js';
import { TextPieces } from '../../base/stream/text-pieces.js';
import type { Lease, Usage } from '../../index.js';
import { JsonMember } from './json-member.js';
import { RepeatedDelta } from './repeated-delta.js';

export interface UsageReaderOptions {
  /** Is told the usage: at the first token, then every `reportEveryTokens`, and when the server tells it. */
  lease?: Pick<Lease, 'report'> | undefined;
  /** Whether to tell as well how much of the prompt was cached, for policies that do not charge it. @default false */
  cachedTokens?: boolean | undefined;
  /** @default 32 */
  reportEveryTokens?: number | undefined;
  /** Characters of an event beyond which it is passed over, to bound a stream's memory. @default 1048576 */
  longestEvent?: number | undefined;
  /** The instant of the first token is taken from here, in ms. @default the platform's monotonic clock */
  now?: (() => number) | undefined;
}

/** Usage objects are small. */
const longestUsage = 65_536;

/** The body of an answer that has been read already: what follows it means nothing. */
const wholeAnswer = { value: undefined, push(): void {} };

const isLease = (given: unknown): given is Pick<Lease, 'report'> => 'report' in Object(given);
const options = s.object({
  lease: s.optional(s.value('a lease', isLease)),
  cachedTokens: s.optional(s.flag(), false),
  reportEveryTokens: s.optional(s.positiveInteger(), 32),
  longestEvent: s.optional(s.positiveInteger(), 1_048_576),
  now: s.optional(s.callable<() => number>(), () => performance.now()),
});

/** Every option with its value, but the lease, which may be missing. */
type Settings = s.Filled<Omit<UsageReaderOptions, 'lease'>>;

/** Bytes in, figures out. It skips anything that it cannot read, and never throws. */
export class UsageReader {
  /** When the first content came, ms of `now`; undefined before, and for a body that is no stream. */
  firstTokenAtMs: number | undefined = undefined;
  private promptTokens: number | undefined = undefined;
  private cachedPromptTokens: number | undefined = undefined;
  /** The usage, as the server reported it. */
  private toldTokens: number | undefined = undefined;
  /** Pieces of content since it told. */
  private countedTokens = 0;
  private reportedTokens = 0;
  private readonly text = new TextPieces();
  private readonly repeated = new RepeatedDelta();
  private body: SseData | JsonMember | typeof wholeAnswer | undefined = undefined;
  private readonly options: Settings;
  private readonly lease: UsageReaderOptions['lease'];

  /** `usageReader` makes it. */
  constructor(options: Settings, lease: UsageReaderOptions['lease']) {
    this.options = options;
    this.lease = lease;
  }

  private get completionTokens(): number {
    return (this.toldTokens ?? 0) + this.countedTokens;
  }

  /** The figures that are known so far; the others are left out. */
  get usage(): Partial<Usage> {
    const { promptTokens, completionTokens, cachedPromptTokens } = this;
    const usage: { -readonly [Figure in keyof Usage]?: number } = {};
    if (promptTokens !== undefined) usage.promptTokens = promptTokens;
    if (this.toldTokens !== undefined || this.countedTokens > 0) usage.completionTokens = completionTokens;
    if (cachedPromptTokens !== undefined && this.options.cachedTokens) usage.cachedPromptTokens = cachedPromptTokens;
    return usage;
  }

  /** True while `completionTokens` counts pieces of content as one token each, as the server has not told. */
  get isEstimate(): boolean {
    return this.countedTokens > 0;
  }

  /** The next part of the body, decompressed. */
  push(chunk: Uint8Array | string): void {
    if (typeof chunk === 'string') this.read(chunk);
    else if (this.isRepeated(chunk)) this.countPiece();
    else this.read(this.text.next(chunk));
  }

  /** The body has ended, whole or cut off. */
  end(): void {
    this.read(this.text.end());
    if (this.body instanceof SseData) this.body.end();
    else this.told(readUsage(this.body?.value));
    this.report();
  }

  /** The first letter tells a JSON body from a stream of events. */
  private read(text: string): void {
    if (this.body === undefined) {
      const first = text.trimStart();
      if (first === '') return;
      if (!first.startsWith('{')) this.body = new SseData(this.options.longestEvent, (data) => this.event(data));
      else if (this.hasWhole(first)) return;
      else this.body = new JsonMember('usage', longestUsage);
    }
    this.body.push(text);
  }

  /** To parse a small answer that came in one piece costs a third of looking for its usage (bench: gateway). */
  private hasWhole(text: string): boolean {
    if (text.length > longestUsage || !text.trimEnd().endsWith('}')) return false;
    const answer = fieldsOf(parseJson(text));
    if (answer === undefined) return false;
    this.body = wholeAnswer;
    this.told(readUsage(answer.usage));
    return true;
  }

  /** Most pieces of a stream are one event that brings one more piece of content. */
  private isRepeated(chunk: Uint8Array): boolean {
    const { body } = this;
    if (!(body instanceof SseData) || chunk.length > this.options.longestEvent) return false;
    return this.repeated.isPiece(chunk) && body.isBetweenEvents && this.text.isWhole;
  }

  private countPiece(): void {
    this.countedTokens += 1;
    if (this.completionTokens - this.reportedTokens >= this.options.reportEveryTokens) this.report();
  }

  private event(data: string): void {
    // `[DONE]` and other texts that are no object.
    if (!data.startsWith('{')) return;
    if (this.repeated.has(data)) return void this.countPiece();
    const event = parseJson(data);
    const pieces = contentPieces(event);
    const usage = usageOfEvent(event);
    if (pieces === 1 && usage === undefined) this.repeated.learn(data, event);
    const isFirst = pieces > 0 && this.firstTokenAtMs === undefined;
    if (isFirst) this.firstTokenAtMs = this.options.now();
    this.countedTokens += pieces;
    const hasTold = this.told(usage);
    const unreported = this.completionTokens - this.reportedTokens;
    if (isFirst || (hasTold && pieces === 0) || unreported >= this.options.reportEveryTokens) this.report();
  }

  private told(usage: ToldUsage | undefined): boolean {
    if (usage === undefined) return false;
    this.promptTokens = usage.promptTokens ?? this.promptTokens;
    this.cachedPromptTokens = usage.cachedPromptTokens ?? this.cachedPromptTokens;
    if (usage.completionTokens !== undefined) {
      this.toldTokens = usage.completionTokens;
      this.countedTokens = 0;
    }
    return true;
  }

  private report(): void {
    const { usage } = this;
    this.reportedTokens = this.completionTokens;
    if (usage.promptTokens !== undefined || usage.completionTokens !== undefined) this.lease?.report(usage);
  }
}

/**
 * Reads what a response costs while it passes: OpenAI's chat completions, completions and responses, Anthropic's
 * messages, as server-sent events or one JSON body. Give it every chunk, and call `end` before the lease is released.
 * Cost: a `JSON.parse` for each event that differs by more than its delta's text. Memory: one event.
 * @throws FlowConfigError
 * @example
 * const usage = usageReader({ lease });
 * for await (const chunk of upstream.body) usage.push(chunk);
 * usage.end();
 */
export function usageReader(given: UsageReaderOptions = {}): UsageReader {
  const { lease, cachedTokens } = given;
  // Every answer of a gateway is read so, and a check by the schema would cost as much as to read a small answer.
  if (cachedTokens === true && typeof lease?.report === 'function' && hasNoOthers(given)) {
    withCached ??= s.parse(options, { cachedTokens }, 'usageReader');
    return new UsageReader(withCached, lease);
  }
  const settings = s.parse(options, given, 'usageReader');
  return new UsageReader(settings, settings.lease);
}

let withCached: Settings | undefined;

function hasNoOthers(given: UsageReaderOptions): boolean {
  for (const name in given) if (name !== 'lease' && name !== 'cachedTokens') return false;
  return true;
}

/** What a server told of a usage. */
type ToldUsage = { readonly [Figure in keyof Usage]: number | undefined };

function tokens(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

/** Of OpenAI's or Anthropic's interface, whose `input_tokens` lacks what was cached. Undefined: it says nothing. */
function readUsage(value: unknown): ToldUsage | undefined {
  const usage = fieldsOf(value);
  if (usage === undefined) return undefined;
  const input = tokens(usage.input_tokens);
  const readFromCache = tokens(usage.cache_read_input_tokens);
  const beside = (readFromCache ?? 0) + (tokens(usage.cache_creation_input_tokens) ?? 0);
  const promptTokens = tokens(usage.prompt_tokens) ?? (input === undefined ? undefined : input + beside);
  const details = fieldsOf(usage.prompt_tokens_details) ?? fieldsOf(usage.input_tokens_details);
  const cachedPromptTokens = tokens(details?.cached_tokens) ?? readFromCache;
  const completionTokens = tokens(usage.completion_tokens) ?? tokens(usage.output_tokens);
  if (promptTokens === undefined && completionTokens === undefined) return undefined;
  return { promptTokens, completionTokens, cachedPromptTokens };
}

/** The usage in one event of a stream: at its top, in `response` (responses), or in `message` (Anthropic). */
function usageOfEvent(event: unknown): ToldUsage | undefined {
  const { usage, response, message }: Readonly<Record<string, unknown>> = fieldsOf(event) ?? {};
  return readUsage(usage) ?? readUsage(fieldsOf(response)?.usage) ?? readUsage(fieldsOf(message)?.usage);
}
