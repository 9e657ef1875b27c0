/**
 * Reads the quotas from the headers of an answer, and how long the caller has to wait after a refusal.
 *
 *     x-ratelimit-{limit,remaining,reset}-{requests,tokens}                       spans: `1s`, `6m0s`, `59.5s`           OpenAI and many more
 *     anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{…}        instants of RFC 3339                   Anthropic
 *     anthropic-ratelimit-unified-{,5h-,7d-}{status,utilization,reset}            seconds of the Unix epoch              Anthropic, subscriptions
 *     RateLimit, RateLimit-Policy                                                 seconds                                IETF
 *     retry-after-ms, retry-after, a text in the body of a 429                    ms, seconds or a date, spans
 *
 * Invariant: no figure is made up. A figure that cannot be right (negative, no number, beyond a year) is left out and
 * counted.
 */
import { type HeaderSource, headerValue } from '../../base/headers/header-source.js';
import { parseDuration } from '../../base/schema/duration.js';
import { isPuttingOff, type ServerAnswer } from '../../gate/server-answer.js';

/** The unit of a quota. */
export type QuotaUnit = 'requests' | 'inputTokens' | 'outputTokens' | 'tokens' | 'cost';

/** An answer's figures of one quota; those that it does not tell are undefined. */
export interface ReportedQuota {
  readonly unit: QuotaUnit;
  readonly limit: number | undefined;
  readonly remaining: number | undefined;
  /** Until the quota is full again, ms from the answer on. */
  readonly resetInMs: number | undefined;
  /** The span that the limit is for, ms. */
  readonly perMs: number | undefined;
}

export interface RateLimitReport {
  readonly quotas: readonly ReportedQuota[];
  /** Of a subscription, whose size is not told: the share of its fullest window that is used, 0…1, and for how long. */
  readonly share: { readonly used: number; readonly resetInMs: number } | undefined;
  /** How long the caller has to wait after a refusal, ms. */
  readonly waitMs: number | undefined;
  /** Figures that cannot be right. */
  readonly ignored: number;
  /** The first of them, as it came; undefined when there is none. */
  readonly firstIgnored?: string | undefined;
}

const longestMs = 365 * 86_400_000;

const openAiUnits = ['requests', 'tokens'] as const;
const anthropicUnits = ['requests', 'inputTokens', 'outputTokens', 'tokens'] as const;

/** The first stands for the windows that have no name here. */
const subscriptionWindows = ['', '5h-', '7d-'] as const;

/** Reads an answer that came at `wallNowMs`, ms of the Unix epoch, because instants in headers are calendar times. */
export function readRateLimitHeaders(answer: ServerAnswer, wallNowMs: number): RateLimitReport {
  const reader = new HeaderReader(answer.headers, wallNowMs);
  const quotas = [
    ...quotasOf(reader, openAiUnits, (figure, unit) => `x-ratelimit-${figure}-${unit}`, 'span'),
    ...quotasOf(reader, anthropicUnits, anthropicHeader, 'until'),
    ...ietfQuotas(reader),
  ];
  const { share, waitMs: untilOpenMs } = subscriptionOf(reader);
  const waitMs = isPuttingOff(answer) ? (waitOf(reader) ?? waitInBody(answer.body) ?? untilOpenMs) : undefined;
  return { quotas, share, waitMs, ignored: reader.ignored, firstIgnored: reader.firstIgnored };
}

type Figure = 'limit' | 'remaining' | 'reset';

/** `anthropic-ratelimit-input-tokens-reset` */
function anthropicHeader(figure: Figure, unit: QuotaUnit): string {
  return `anthropic-ratelimit-${unit.replace('Tokens', '-tokens')}-${figure}`;
}

/** The headers, read one figure at a time. */
class HeaderReader {
  ignored = 0;
  firstIgnored: string | undefined = undefined;
  private readonly headers: HeaderSource;
  /** The present by the server's clock. Its instants are counted from there, so that clocks need not agree. */
  private readonly nowMs: number;

  constructor(headers: HeaderSource, wallNowMs: number) {
    this.headers = headers;
    const date = Date.parse(this.text('date') ?? '');
    this.nowMs = Number.isNaN(date) ? wallNowMs : date;
  }

  text(name: string): string | undefined {
    return headerValue(this.headers, [name]);
  }

  /** A limit: above 0. */
  limit(text: string | undefined): number | undefined {
    return this.checked(text, decimal(text), (value) => value > 0 && value <= Number.MAX_SAFE_INTEGER);
  }

  remaining(text: string | undefined): number | undefined {
    return this.checked(text, decimal(text), (value) => value >= 0 && value <= Number.MAX_SAFE_INTEGER);
  }

  /** Of what there is; more than all counts as all. */
  share(text: string | undefined): number | undefined {
    const share = this.checked(text, decimal(text), (value) => value >= 0);
    return share && Math.min(share, 1);
  }

  /** A span in Go's notation, or in seconds. */
  span(text: string | undefined): number | undefined {
    const seconds = decimal(text);
    return this.checked(text, Number.isNaN(seconds) ? parseDuration(text ?? '') : seconds * 1000, isSpan);
  }

  milliseconds(text: string | undefined): number | undefined {
    return this.checked(text, decimal(text), isSpan);
  }

  /** The time until an instant. If it has no fraction, it may have been cut off, and up to a second is missing. */
  until(text: string | undefined): number | undefined {
    const ms = (/^\d{9,11}$/.test(text ?? '') ? Number(text) * 1000 : Date.parse(text ?? '')) - this.nowMs;
    const isCutOff = text !== undefined && !/\d\.\d/.test(text);
    // An instant that has just passed counts as now: the answer was under way.
    return this.checked(text, ms < 0 && ms > -60_000 ? 0 : ms + (isCutOff ? 1000 : 0), isSpan);
  }

  private checked(text: string | undefined, value: number, isRight: (value: number) => boolean): number | undefined {
    if (text === undefined) return undefined;
    if (isRight(value)) return value;
    this.ignored++;
    this.firstIgnored ??= text;
    return undefined;
  }
}

function isSpan(ms: number): boolean {
  return ms >= 0 && ms <= longestMs;
}

/** NaN for anything but a plain decimal number. */
function decimal(text: string | undefined): number {
  return text !== undefined && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
}

/** The quotas of a provider that has three headers for each. A reset is a span from now, or an instant (`until`). */
function* quotasOf(
  reader: HeaderReader,
  units: readonly QuotaUnit[],
  header: (figure: Figure, unit: QuotaUnit) => string,
  reset: 'span' | 'until',
): Generator<ReportedQuota, void, undefined> {
  for (const unit of units) {
    const limit = reader.limit(reader.text(header('limit', unit)));
    const remaining = reader.remaining(reader.text(header('remaining', unit)));
    const resetInMs = reader[reset](reader.text(header('reset', unit)));
    if (limit !== undefined || remaining !== undefined) yield { unit, limit, remaining, resetInMs, perMs: undefined };
  }
}

/** A refusal holds until all used-up windows are reset; beside the status `allowed` it is about something else. */
function subscriptionOf(reader: HeaderReader): Pick<RateLimitReport, 'share' | 'waitMs'> {
  const text = (name: string): string | undefined => reader.text(`anthropic-ratelimit-unified-${name}`);
  const windows = subscriptionWindows.map((window) => {
    const used = reader.share(text(`${window}utilization`)) ?? 0;
    const resetInMs = reader.until(text(`${window}reset`)) ?? 0;
    return { used: text(`${window}status`) === 'rejected' ? 1 : used, resetInMs };
  });
  const fullest = windows.reduce((a, b) => (b.used > a.used ? b : a));
  const isAllowed = text('status')?.startsWith('allowed') === true;
  const waitMs = Math.max(...windows.map(({ used, resetInMs }) => (used < 1 || isAllowed ? 0 : resetInMs)));
  return { share: fullest.used > 0 ? fullest : undefined, waitMs: waitMs || undefined };
}

/** Policies of requests, as written today (`"default";r=50;t=30`) and in draft 7 (`limit=100, reset=30`). */
function* ietfQuotas(reader: HeaderReader): Generator<ReportedQuota, void, undefined> {
  const field = reader.text('ratelimit');
  if (field === undefined) return;
  const policies = members(reader.text('ratelimit-policy') ?? '');
  const isDraft = /(?:^|[,;\s])remaining\s*=/i.test(field);
  const entries = isDraft ? [{ name: '', parameters: parametersOf(field.split(',')) }] : members(field);
  for (const { name, parameters } of entries) {
    const policy = isDraft ? policies[0] : policies.find((each) => each.name === name);
    const unit = policy?.parameters.get('qu') ?? '"requests"';
    if (unit !== '"requests"') continue;
    const told = parameters.get('limit') ?? policy?.parameters.get('q') ?? (isDraft ? policy?.name : undefined);
    const limit = reader.limit(told);
    const remaining = reader.remaining(parameters.get(isDraft ? 'remaining' : 'r'));
    const resetInMs = reader.span(parameters.get(isDraft ? 'reset' : 't'));
    const perMs = reader.span(policy?.parameters.get('w'));
    yield { unit: 'requests', limit, remaining, resetInMs, perMs: perMs === 0 ? undefined : perMs };
  }
}

interface Member {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** The members of a list of RFC 9651, as far as these fields need it. */
function members(field: string): Member[] {
  return field
    .split(',')
    .map((member) => member.split(';'))
    .map(([name = '', ...parameters]) => ({ name: name.trim(), parameters: parametersOf(parameters) }));
}

function parametersOf(parts: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    parts.map((part): [string, string] => {
      const [name = '', value = ''] = part.split(/=(.*)/s);
      return [name.trim().toLowerCase(), value.trim()];
    }),
  );
}

function waitOf(reader: HeaderReader): number | undefined {
  const exact = reader.milliseconds(reader.text('retry-after-ms'));
  if (exact !== undefined) return exact;
  const text = reader.text('retry-after');
  return text === undefined || !Number.isNaN(decimal(text)) ? reader.span(text) : reader.until(text);
}

/** `Please try again in 6m0s.`, `"retryDelay": "34.07s"`; only the beginning is read. */
function waitInBody(body: unknown): number | undefined {
  if (typeof body !== 'string') return undefined;
  const wait = /(?:try again in|retry in|retryDelay["']?\s*:\s*["'])\s*((?:\d+(?:\.\d+)?(?:ms|s|m|h))+)/i;
  const found = wait.exec(body.slice(0, 8192));
  const ms = found === null ? NaN : parseDuration(found[1] ?? '');
  return isSpan(ms) ? ms : undefined;
}
