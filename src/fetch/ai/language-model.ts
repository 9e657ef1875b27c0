/**
 * The part of the AI SDK's language models, specifications 3 and 4, that the middleware uses. Structural: nothing of
 * the SDK is imported.
 */
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
function isContent({ type }: StreamPart): boolean {
  return type === 'text-delta' || type === 'reasoning-delta' || type === 'tool-input-delta' || type === 'tool-call';
}

/** A lease is told of tokens when so many came since. */
const reportEvery = 32;

/** Reads the usage out of a stream while it passes, and tells the lease: at the first token, and at the end. */
export class StreamUsage<P extends StreamPart> implements AnswerReader<P> {
  private readonly lease: Lease;
  private pieces = 0;
  private reported = 0;
  private isTold = false;

  constructor(lease: Lease) {
    this.lease = lease;
  }

  push(part: P): void {
    if (part.type === 'finish' && part.usage !== undefined) {
      const usage = usageOf(part.usage);
      this.isTold = usage.completionTokens !== undefined;
      this.lease.report(usage);
    } else if (isContent(part)) {
      this.pieces += 1;
      if (this.pieces === 1 || this.pieces - this.reported >= reportEvery) this.report();
    }
  }

  end(): void {
    if (!this.isTold && this.pieces > this.reported) this.report();
  }

  /** About one token in each piece, until the provider tells. */
  private report(): void {
    this.reported = this.pieces;
    this.lease.report({ completionTokens: this.pieces });
  }
}
