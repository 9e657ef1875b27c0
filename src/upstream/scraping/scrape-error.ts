/** Why a scrape brought nothing. */

/**
 * `url`: none to ask. `profile`: choosing one failed. `network`: no answer. `timeout`: no whole one in time.
 * `http-status`: no success. `too-large`: above `maxResponseBytes`, or too many series. `no-metrics`: they are absent.
 */
export type ScrapeFailure = 'url' | 'profile' | 'network' | 'timeout' | 'http-status' | 'too-large' | 'no-metrics';

export class ScrapeError extends Error {
  override readonly name = 'ScrapeError';
  readonly code: ScrapeFailure;

  constructor(code: ScrapeFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** The answer of the host's function. @throws ScrapeError when it throws */
export function attempt<T>(code: ScrapeFailure, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    throw new ScrapeError(code, messageOf(error), error);
  }
}

export function asScrapeError(error: unknown): ScrapeError {
  return error instanceof ScrapeError ? error : new ScrapeError('network', messageOf(error), error);
}

/** `fetch` says in the cause what happened. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  const code = 'code' in cause ? String(cause.code) : '';
  return `${error.message}: ${cause.message || code}`;
}
