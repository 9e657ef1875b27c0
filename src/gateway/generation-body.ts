/** What the gateway needs to know of a JSON request: its model, how it begins, and about how long it is. */
import { prefixKey } from '../index.js';
import { ApiError } from './api-error.js';

export interface GenerationBody {
  readonly model: string | undefined;
  /** Names the beginning of the prompt, for affinity. */
  readonly prefixKey: string | undefined;
  /** Of the prompt, at four bytes each. */
  readonly inputTokens: number;
  readonly maxOutputTokens: number | undefined;
  /** The body with another model in it. Numbers beyond 2^53 lose their last digits by it. */
  withModel(model: string): Buffer;
}

const bytesPerToken = 4;
/** Of text in the prompt: longer beginnings tell no more. */
const prefixCharacters = 1024;

/** @throws ApiError 400 when it is no JSON object. */
export function readGenerationBody(bytes: Buffer): GenerationBody {
  const body = parseObject(bytes);
  const { model, max_completion_tokens: most, max_tokens: mostBefore = most } = body;
  const prompt = body.messages ?? body.prompt ?? body.input;
  const begin =
    prompt === undefined ? undefined : (typeof prompt === 'string' ? prompt : JSON.stringify(prompt)).slice(0, prefixCharacters);
  return {
    model: typeof model === 'string' && model !== '' ? model : undefined,
    prefixKey: begin === undefined ? undefined : prefixKey(begin),
    inputTokens: Math.ceil(bytes.length / bytesPerToken),
    maxOutputTokens: typeof mostBefore === 'number' ? mostBefore : undefined,
    withModel: (other) => Buffer.from(JSON.stringify({ ...body, model: other })),
  };
}

function parseObject(bytes: Buffer): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(bytes.toString('utf8'));
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body };
  } catch {
    // Told below.
  }
  throw new ApiError(400, 'invalid_json', 'The body is not a JSON object.');
}
