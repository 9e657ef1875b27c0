/** Turns a drop into an error that looks like one of a provider to the AI SDK, so that the SDK's own retries work. */
import type { HttpErrorResponse } from '../../adapters/http/index.js';
import { type Drop, FlowControlError } from '../../index.js';

/** The SDK recognizes its errors by these symbols, even if they come from another copy of it. */
const markers = ['vercel.ai.error', 'vercel.ai.error.AI_APICallError'].map((name) => Symbol.for(name));

/** A FlowControlError with the members of an APICallError. */
export function callError(drop: Drop, { status, headers }: HttpErrorResponse): FlowControlError {
  const { 'content-type': _, ...others } = headers;
  const error = new FlowControlError(drop, { status, headers: others });
  for (const marker of markers) Object.defineProperty(error, marker, { value: true });
  return Object.assign(error, {
    url: 'headgate:',
    requestBodyValues: {},
    responseHeaders: others,
    isRetryable: status === 429 || status === 503 || status === 529,
  });
}

interface ProviderError {
  readonly statusCode: number;
  readonly responseHeaders?: Readonly<Record<string, string>> | undefined;
  readonly responseBody?: string | undefined;
}

/** The answer of a server behind a provider's error; undefined for errors of another kind. */
export function answerIn(
  error: unknown,
): { status: number; headers: Readonly<Record<string, string>>; body?: string | undefined } | undefined {
  if (!(error instanceof Error) || !('statusCode' in error) || !Number.isInteger(error.statusCode)) return undefined;
  const { statusCode, responseHeaders = {}, responseBody } = error as unknown as ProviderError;
  return statusCode >= 100 && statusCode <= 599
    ? { status: statusCode, headers: responseHeaders, body: responseBody }
    : undefined;
}
