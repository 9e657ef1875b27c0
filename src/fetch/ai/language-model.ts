/**
 * The part of the AI SDK's language models, specifications 3 and 4, that the middleware uses. Structural: nothing of
 * the SDK is imported.
 */

/** The options of a call. */
export interface CallParams {
  readonly prompt: unknown;
  readonly maxOutputTokens?: number | undefined;
  readonly abortSignal?: AbortSignal | undefined;
  readonly providerOptions?: Readonly<Record<string, object | undefined>> | undefined;
}

/** Tokens by kind; earlier specifications have a number in place of each. */
interface ModelUsage {
  readonly inputTokens?:
    | { readonly total?: number | undefined; readonly cacheRead?: number | undefined }
    | number
    | undefined;
  readonly outputTokens?: { readonly total?: number | undefined } | number | undefined;
}

interface ModelResponse {
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
}

export interface GenerateResult {
  readonly usage: ModelUsage;
  readonly response?: ModelResponse | undefined;
}

export interface StreamResult {
  readonly stream: ReadableStream<StreamPart>;
  readonly response?: ModelResponse | undefined;
}

export interface StreamPart {
  readonly type: string;
  readonly usage?: ModelUsage | undefined;
}

export interface Model {
  readonly provider: string;
  readonly modelId: string;
}

/** The consumption of the call; figures that the provider does not tell are left out. */
export function usageOf({ inputTokens, outputTokens }: ModelUsage): {
  promptTokens?: number;
  completionTokens?: number;
  cachedPromptTokens?: number;
} {
  const input = typeof inputTokens === 'object' ? inputTokens : { total: inputTokens, cacheRead: undefined };
  const output = typeof outputTokens === 'object' ? outputTokens.total : outputTokens;
  return {
    ...(isTokens(input.total) && { promptTokens: input.total }),
    ...(isTokens(output) && { completionTokens: output }),
    ...(isTokens(input.cacheRead) && { cachedPromptTokens: input.cacheRead }),
  };
}

function isTokens(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

/** Parts that bring what the model wrote. */
export function isContent({ type }: StreamPart): boolean {
  return type === 'text-delta' || type === 'reasoning-delta' || type === 'tool-input-delta' || type === 'tool-call';
}
