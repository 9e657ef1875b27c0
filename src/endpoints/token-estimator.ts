/** How many tokens to book for a request before anybody has run it. */
import * as s from '../base/schema/schema.js';

export interface TokenEstimatorOptions {
  /** Whether to book the answer as well. @default false */
  addEstimatedOutputTokens?: boolean | undefined;
  /** Tokens of the answer for each token of the prompt, from 0 up. @default 1.5 */
  outputRatio?: number | undefined;
  /** The longest answer to book, from 0 up. @default none */
  maxEstimatedOutputTokens?: number | undefined;
}

export const tokenEstimatorOptions: s.Schema<TokenEstimatorOptions> = s.object({
  addEstimatedOutputTokens: s.optional(s.flag()),
  outputRatio: s.optional(s.atLeastZero()),
  maxEstimatedOutputTokens: s.optional(s.atLeastZero()),
});

/** A prompt in the index of cached prefixes of one endpoint, in blocks of tokens. */
export interface PrefixMatch {
  readonly blockSize: number;
  readonly totalBlocks: number;
  readonly matchedBlocks: number;
}

/** The facts of a request that an estimate uses. */
export interface TokenSubject {
  /** Length of the whole prompt. */
  readonly inputTokens: number;
  /** The client's `max_tokens`. A negative number is none. */
  readonly maxOutputTokens?: number | null | undefined;
  readonly prefix?: PrefixMatch | undefined;
}

/** The prompt without what the server has cached. The index counts even if it disagrees with `inputTokens`. */
export function uncachedInputTokens(inputTokens: number, prefix?: PrefixMatch): number {
  if (prefix === undefined) return Math.max(inputTokens, 0);
  const { blockSize, totalBlocks, matchedBlocks } = prefix;
  const beyondBlocks = Math.max(inputTokens - totalBlocks * blockSize, 0);
  return Math.max((totalBlocks - matchedBlocks) * blockSize, 0) + beyondBlocks;
}

/** `inputTokens · outputRatio`, rounded, at most what the caps allow. Caps that are negative or missing are none. */
export function estimatedOutputTokens(
  inputTokens: number,
  outputRatio: number,
  ...caps: readonly (number | null | undefined)[]
): number {
  if (!(inputTokens > 0)) return 0;
  let tokens = Math.round(inputTokens * outputRatio);
  for (const cap of caps) if (cap !== null && cap !== undefined && cap >= 0) tokens = Math.min(tokens, cap);
  return tokens;
}

/**
 * A function that says what to put into `request.tokens`: the uncached prompt and, if asked for, the answer. The answer
 * is estimated from the whole prompt: what is cached does not shorten it. Detectors that count tokens use this number
 * until the request ends. Source: llm-d-router, inflight-load-producer. @throws FlowConfigError
 * @example
 * const estimate = tokenEstimator({ addEstimatedOutputTokens: true });
 * await flow.enqueue({ byteSize, tokens: estimate({ inputTokens: 10, maxOutputTokens: 3 }) }, key); // 13
 */
export function tokenEstimator(options: TokenEstimatorOptions = {}): (subject: TokenSubject) => number {
  const settings = s.parse(tokenEstimatorOptions, options, 'tokenEstimator');
  const { addEstimatedOutputTokens, outputRatio = 1.5, maxEstimatedOutputTokens } = settings;
  return function estimateTokens({ inputTokens, maxOutputTokens, prefix }: TokenSubject): number {
    const input = uncachedInputTokens(inputTokens, prefix);
    if (addEstimatedOutputTokens !== true) return input;
    return input + estimatedOutputTokens(inputTokens, outputRatio, maxOutputTokens, maxEstimatedOutputTokens);
  };
}
