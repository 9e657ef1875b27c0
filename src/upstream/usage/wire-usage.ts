/** Reads the token counts in answers of OpenAI's and Anthropic's interfaces. */
import type { Usage } from '../../index.js';

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
}

/** No sum of a few of them is beyond what a lease takes. */
const mostTokens = Number.MAX_SAFE_INTEGER;

function tokens(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= mostTokens ? value : undefined;
}

/**
 * A `usage` object, of chat completions, completions and embeddings (`prompt_tokens`), of responses, or of Anthropic's messages
 * (`input_tokens`, where only the latter counts the cached part of the prompt beside it), with what was cached of the prompt where it is
 * told. Undefined when it says nothing.
 */
export function readUsage(value: unknown): Partial<Usage> | undefined {
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
  return {
    ...(promptTokens === undefined ? {} : { promptTokens }),
    ...(completionTokens === undefined ? {} : { completionTokens }),
    ...(cachedPromptTokens === undefined ? {} : { cachedPromptTokens }),
  };
}

/** The usage in one event of a stream: at its top, in `response` (responses), or in `message` (Anthropic). */
export function usageOfEvent(event: unknown): Partial<Usage> | undefined {
  const fields = fieldsOf(event);
  return readUsage(fields?.usage) ?? readUsage(fieldsOf(fields?.response)?.usage) ?? readUsage(fieldsOf(fields?.message)?.usage);
}

/** Keys of a delta that hold what the model wrote: text, reasoning, tool calls, in the words of the three interfaces. */
const contentKeys = [
  'content',
  'reasoning_content',
  'reasoning',
  'refusal',
  'tool_calls',
  'function_call',
  'text',
  'thinking',
  'partial_json',
];

function isContent(value: unknown): boolean {
  return typeof value === 'string' || Array.isArray(value) ? value.length > 0 : fieldsOf(value) !== undefined;
}

function hasContent(delta: unknown): boolean {
  const fields = fieldsOf(delta);
  return fields !== undefined && contentKeys.some((key) => isContent(fields[key]));
}

/** How many pieces of content one event of a stream brings: engines send about one token in each. */
export function contentPieces(event: unknown): number {
  const fields = fieldsOf(event);
  if (fields === undefined) return 0;
  const { choices, type, delta } = fields;
  if (Array.isArray(choices)) {
    return choices.filter((choice: unknown) => hasContent(fieldsOf(choice)?.delta) || isContent(fieldsOf(choice)?.text)).length;
  }
  if (type === 'content_block_delta') return hasContent(delta) ? 1 : 0;
  return typeof type === 'string' && type.endsWith('.delta') && isContent(delta) ? 1 : 0;
}
