/** The facts that the gateway keeps of a JSON request: its model, what its prompt consists of and begins with. */
import { prefixKey } from '../../index.js';
import { ApiError } from '../shared/api-error.js';
import { PromptCounter, type PromptParts } from '../sizes/prompt-parts.js';
import { JsonScanner, type Span } from './json-scanner.js';

export interface GenerationBody {
  readonly model: string | undefined;
  /** Where the value of `model` stands in the bytes, whatever its type. */
  readonly modelSpan: Span | undefined;
  /** Names the beginning of the prompt, for affinity. */
  readonly prefixKey: string | undefined;
  readonly prompt: PromptParts;
  readonly isStream: boolean;
  /** The most that the request allows, over all the answers that it asks for. */
  readonly maxOutputTokens: number | undefined;
}

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

const wanted: ReadonlySet<string> = new Set(['model', 'stream', ...prompts, ...outputLimits, ...answerCounts]);

/** Reads along while the body arrives. */
export class GenerationBodyReader {
  private readonly counter = new PromptCounter();
  private readonly scanner = new JsonScanner(wanted, this.counter);

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
    const prompt = prompts.find((name) => spans.has(name));
    const begin = prompt === undefined ? undefined : textOf(prompt, prefixBytes);
    const countOf = (name: string): number | undefined => readCount(name, textOf(name, longestNumber));
    const limit = largest(outputLimits.map(countOf));
    const answers = Math.max(largest(answerCounts.map(countOf)) ?? 1, 1);
    return {
      model,
      modelSpan: spans.get('model'),
      prefixKey: begin === undefined ? undefined : prefixKey(begin),
      prompt: this.counter.end(bytes),
      isStream: textOf('stream', 8) === 'true',
      maxOutputTokens: limit && Math.min(limit * answers, Number.MAX_SAFE_INTEGER),
    };
  }
}

/** The same body with another model in it; every other byte stays as it came. */
export function withModel(bytes: Buffer, { modelSpan }: GenerationBody, model: string): Buffer {
  const text = JSON.stringify(model);
  if (modelSpan !== undefined) {
    return Buffer.concat([bytes.subarray(0, modelSpan.start), Buffer.from(text), bytes.subarray(modelSpan.end)]);
  }
  const afterBrace = bytes.indexOf('{') + 1;
  const rest = bytes.subarray(afterBrace);
  const comma = /^\s*\}/.test(rest.toString('latin1')) ? '' : ',';
  return Buffer.concat([bytes.subarray(0, afterBrace), Buffer.from(`"model":${text}${comma}`), rest]);
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
  const count = /^\d/.test(text ?? '') ? Number(text) : Number.NaN;
  if (Number.isNaN(count)) return undefined;
  if (Number.isSafeInteger(count)) return count;
  throw new ApiError(400, 'invalid_value', `${name} must be an integer.`);
}

function largest(counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
