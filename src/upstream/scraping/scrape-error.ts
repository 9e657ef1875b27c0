/** Why a scrape brought nothing. */

/**
 * `url`: there is none to ask. `profile`: the host's choice of a profile failed. `network`: no answer. `timeout`: no
 * whole answer in time. `http-status`: an answer, but no success. `too-large`: the answer exceeds `maxResponseBytes`,
 * or a metric has too many series. `no-metrics`: the answer lacks the metrics.
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
