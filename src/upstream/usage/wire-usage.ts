/** Reads the token counts in answers of OpenAI's and Anthropic's interfaces. */
import { fieldsOf } from '../../base/stream/content-pieces.js';
import type { Usage } from '../../index.js';

/** No sum of a few of them is beyond what a lease takes. */
const mostTokens = Number.MAX_SAFE_INTEGER;

function tokens(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= mostTokens ? value : undefined;
}

/**
 * A `usage` object, of chat completions, completions and embeddings (`prompt_tokens`), of responses, or of Anthropic's
 * messages (`input_tokens`, where only the latter counts the cached part of the prompt beside it), with what was cached
 * of the prompt where it is told. Undefined when it says nothing.
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
  return (
    readUsage(fields?.usage) ??
    readUsage(fieldsOf(fields?.response)?.usage) ??
    readUsage(fieldsOf(fields?.message)?.usage)
  );
}
