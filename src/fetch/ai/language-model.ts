/** What the middleware uses of the AI SDK's language models, specifications 3 and 4; nothing of it is imported. */
import type { Lease } from '../../index.js';
import type { AnswerReader } from '../lease-end.js';

/** The options of a call. */
export interface CallParams {
  readonly prompt: unknown;
  readonly maxOutputTokens?: number | undefined;
  readonly abortSignal?: AbortSignal | undefined;
  readonly providerOptions?: Readonly<Record<string, object | undefined>> | undefined;
}

/** Tokens by kind; earlier specifications have a number in place of each. */
interface ModelUsage {
  readonly inputTokens?: { readonly [Kind in 'total' | 'cacheRead']?: number | undefined } | number | undefined;
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
export function usageOf({ inputTokens, outputTokens }: ModelUsage): Parameters<Lease['report']>[0] {
  const input = typeof inputTokens === 'object' ? inputTokens : { total: inputTokens, cacheRead: undefined };
  const output = typeof outputTokens === 'object' ? outputTokens.total : outputTokens;
  return {
    ...(isTokens(input.total) && { promptTokens: input.total }),
    ...(isTokens(output) && { completionTokens: output }),
    ...(isTokens(input.cacheRead) && { cachedPromptTokens: input.cacheRead }),
  };
}

const isTokens = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;

const content: readonly string[] = ['text-delta', 'reasoning-delta', 'tool-input-delta', 'tool-call'];

const reportEvery = 32;

/** Reads the usage out of a stream while it passes, and tells the lease: at the first token, and at the end. */
export function streamUsage(lease: Lease): AnswerReader<StreamPart> {
  let pieces = 0;
  let reported = 0;
  let isTold = false;
  /** About one token in each piece, until the provider tells. */
  const report = (): void => {
    reported = pieces;
    lease.report({ completionTokens: pieces });
  };
  return {
    push({ type, usage: told }) {
      if (type === 'finish' && told !== undefined) {
        const usage = usageOf(told);
        isTold = usage.completionTokens !== undefined;
        lease.report(usage);
      } else if (content.includes(type)) {
        pieces += 1;
        if (pieces === 1 || pieces - reported >= reportEvery) report();
      }
    },
    end() {
      if (!isTold && pieces > reported) report();
    },
  };
}
