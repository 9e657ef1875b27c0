/** The facts that the gateway keeps of a JSON request: its model, what its prompt consists of and begins with. */
import { fieldsOf, parseJson } from '../../base/stream/content-pieces.js';
import { prefixKey } from '../../index.js';
import { ApiError } from '../shared/api-error.js';
import { PromptCounter, type PromptParts } from '../sizes/prompt-parts.js';
import { JsonScanner, type Span } from './json-scanner.js';

export interface GenerationBody {
  readonly model: string | undefined;
  /** Where the fields that are looked at stand in the bytes, whatever their type. */
  readonly spans: ReadonlyMap<string, Span>;
  /** Their names. */
  readonly names: ReadonlySet<string>;
  /** Names the beginning of the prompt, for affinity. */
  readonly prefixKey: string | undefined;
  readonly prompt: PromptParts;
  readonly isStream: boolean;
  /** The `service_tier` that the client asks for. */
  readonly tier: string | undefined;
  /** What an agent tells of the request in `nvext.agent_hints`. Source: NVIDIA Dynamo, agent hints. */
  readonly hints: AgentHints;
  /** The most that the request allows, over all the answers that it asks for. */
  readonly maxOutputTokens: number | undefined;
}

export interface AgentHints {
  readonly priority?: number | undefined;
  /** The likely length of the output, tokens. */
  readonly osl?: number | undefined;
}

/** Longer ones are not read. */
const longestHints = 4_096;

/** Bytes of the prompt in the body that are looked at; more would not help. */
const prefixBytes = 1024;

/** As it stands in the body, quotes included. */
export const longestModel = 512;

/** `JsonScanner` takes no longer numbers, so a longer value is text. */
const longestNumber = 401;

/** Every interface has its own name for the limit. The largest counts: which of them a server heeds is not known. */
const outputLimits = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'] as const;
const answerCounts = ['n', 'best_of'] as const;
const prompts = ['messages', 'prompt', 'input'] as const;

/** The last three: what servers order requests by, and the tiers of service. */
const others = ['model', 'stream', 'priority', 'nvext', 'service_tier'] as const;
const wanted: ReadonlySet<string> = new Set([...prompts, ...outputLimits, ...answerCounts, ...others]);

/** A name that can be looked for besides, in ASCII because the scanner compares no others. */
export function isRankField(name: unknown): name is string {
  return typeof name === 'string' && /^\w{1,24}$/.test(name) && (name === 'priority' || !wanted.has(name));
}

/** Reads along while the body arrives. */
export class GenerationBodyReader {
  private readonly counter = new PromptCounter();
  private readonly names: ReadonlySet<string>;
  private readonly scanner: JsonScanner;

  constructor(besides: readonly string[] = []) {
    this.names = besides.length === 0 ? wanted : new Set([...wanted, ...besides]);
    this.scanner = new JsonScanner(this.names, this.counter);
  }

  /** @throws ApiError 400 when it is no JSON object */
  push(chunk: Buffer): void {
    this.scanner.push(chunk);
  }

  /** @param bytes all that was pushed @throws ApiError 400 */
  end(bytes: Buffer): GenerationBody {
    const spans = this.scanner.end();
    const textOf = (name: string, mostBytes: number): string | undefined => {
      const span = spans.get(name);
      return span && bytes.toString('utf8', span.start, Math.min(span.end, span.start + mostBytes));
    };
    const model = readModel(textOf('model', longestModel + 1));
    const begin = textOf(prompts.find((name) => spans.has(name)) ?? '', prefixBytes);
    const countOf = (name: string): number | undefined => readCount(name, textOf(name, longestNumber));
    const limit = largest(outputLimits.map(countOf));
    const answers = Math.max(largest(answerCounts.map(countOf)) ?? 1, 1);
    return {
      model,
      spans,
      names: this.names,
      prefixKey: begin === undefined ? undefined : prefixKey(begin),
      prompt: this.counter.end(bytes),
      isStream: textOf('stream', 8) === 'true',
      tier: /^"(\w+)"$/.exec(textOf('service_tier', 64) ?? '')?.[1],
      hints: readHints(textOf('nvext', longestHints)),
      maxOutputTokens: limit && Math.min(limit * answers, Number.MAX_SAFE_INTEGER),
    };
  }
}

/** The same with fields that nobody looked for when it came. @throws ApiError 400 for one that is there twice */
export function lookedThrough(body: GenerationBody, bytes: Buffer, besides: readonly string[]): GenerationBody {
  if (besides.every((name) => body.names.has(name))) return body;
  const scanner = new JsonScanner(new Set(besides));
  scanner.push(bytes);
  const names = new Set([...body.names, ...besides]);
  return { ...body, names, spans: new Map([...body.spans, ...scanner.end()]) };
}

/** Undefined for what is none. */
function readHints(nvext: string | undefined): AgentHints {
  const hints = fieldsOf(fieldsOf(nvext === undefined ? undefined : parseJson(nvext))?.agent_hints) ?? {};
  const numberOf = (value: unknown): number | undefined =>
    Number.isSafeInteger(value) ? (value as number) : undefined;
  return { priority: numberOf(hints.priority), osl: numberOf(hints.osl) };
}

/** Undefined for anything but text; the server will reject it. */
function readModel(text: string | undefined): string | undefined {
  if (text?.startsWith('"') !== true || text === '""') return undefined;
  if (text.length > longestModel)
    throw new ApiError(400, 'invalid_value', `model must be shorter than ${longestModel} characters.`);
  return JSON.parse(text) as string;
}

/** Undefined for anything but a number, which servers reject, and for negative ones, which some use for no limit. */
function readCount(name: string, text: string | undefined): number | undefined {
  const count = /^\d/.test(text ?? '') ? Number(text) : NaN;
  if (Number.isNaN(count)) return undefined;
  if (Number.isSafeInteger(count)) return count;
  throw new ApiError(400, 'invalid_value', `${name} must be an integer.`);
}

function largest(counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
