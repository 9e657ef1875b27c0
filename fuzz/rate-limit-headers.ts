/** Rate-limit headers of any server: figures that come of them are finite and not below 0. */
import { readRateLimitHeaders } from '../src/constraints/quotas/rate-limit-headers.js';

const statuses = [200, 429, 503, 529] as const;

/** The first byte is the status, the rest lines of `name: value`. */
export function fuzz(input: Buffer): void {
  const headers: Record<string, string> = {};
  for (const line of input.subarray(1).toString('latin1').split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const answer = { status: statuses[(input[0] ?? 0) % 4] as number, headers };
  const { quotas, waitMs, ignored } = readRateLimitHeaders(answer, 1_790_000_000_000);
  const figures = [ignored, waitMs, ...quotas.flatMap((quota) => Object.values(quota))];
  for (const figure of figures)
    if (typeof figure === 'number' && !(figure >= 0 && Number.isFinite(figure)))
      throw new Error(`a figure of ${figure}`);
}
