import { describe, expect, it } from 'vitest';
import { readRateLimitHeaders } from '../../../src/constraints/quotas/rate-limit-headers.js';

const now = Date.parse('2025-06-01T12:00:00.000Z');

function told(headers: Record<string, string>, status = 200, body?: unknown): ReturnType<typeof readRateLimitHeaders> {
  return readRateLimitHeaders({ status, headers: new Headers(headers), body }, now);
}

const quota = { limit: undefined, remaining: undefined, resetInMs: undefined, perMs: undefined };

describe('the headers of an answer', () => {
  it('tell nothing where there are none', () => {
    expect(told({ 'content-type': 'application/json', 'retry-after': '3' })).toEqual({
      quotas: [],
      waitMs: undefined,
      ignored: 0,
    });
  });

  it("are read as OpenAI's, with spans in Go's notation", () => {
    const { quotas } = told({
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-reset-requests': '1s',
      'x-ratelimit-limit-tokens': '150000',
      'x-ratelimit-remaining-tokens': '149984',
      'x-ratelimit-reset-tokens': '6m0s',
    });
    expect(quotas).toEqual([
      { ...quota, unit: 'requests', limit: 60, remaining: 59, resetInMs: 1000 },
      { ...quota, unit: 'tokens', limit: 150_000, remaining: 149_984, resetInMs: 360_000 },
    ]);
  });

  it("are read as Anthropic's, with instants by the server's own clock, of which up to a second was cut off", () => {
    const { quotas } = told({
      date: 'Sun, 01 Jun 2025 13:00:00 GMT',
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '49',
      'anthropic-ratelimit-requests-reset': '2025-06-01T13:00:01Z',
      'anthropic-ratelimit-input-tokens-limit': '30000',
      'anthropic-ratelimit-input-tokens-remaining': '29000',
      'anthropic-ratelimit-input-tokens-reset': '2025-06-01T13:00:02.500Z',
      'anthropic-ratelimit-output-tokens-limit': '8000',
      'anthropic-ratelimit-output-tokens-remaining': '0',
    });
    expect(quotas).toEqual([
      { ...quota, unit: 'requests', limit: 50, remaining: 49, resetInMs: 2000 },
      { ...quota, unit: 'inputTokens', limit: 30_000, remaining: 29_000, resetInMs: 2500 },
      { ...quota, unit: 'outputTokens', limit: 8000, remaining: 0 },
    ]);
  });

  it('are read as the fields of the IETF, of today and of the seventh draft', () => {
    expect(told({ ratelimit: '"default";r=50;t=30', 'ratelimit-policy': '"default";q=100;w=60' }).quotas).toEqual([
      { unit: 'requests', limit: 100, remaining: 50, resetInMs: 30_000, perMs: 60_000 },
    ]);
    expect(told({ ratelimit: 'limit=100, remaining=50, reset=30', 'ratelimit-policy': '100;w=60' }).quotas).toEqual([
      { unit: 'requests', limit: 100, remaining: 50, resetInMs: 30_000, perMs: 60_000 },
    ]);
    expect(
      told({ ratelimit: '"bytes";r=50;t=30', 'ratelimit-policy': '"bytes";q=9;w=60;qu="content-bytes"' }).quotas,
    ).toEqual([]);
  });

  it.each([
    ['retry-after-ms before all', { 'retry-after-ms': '1500', 'retry-after': '9' }, undefined, 1500],
    ['retry-after in seconds', { 'retry-after': '20' }, undefined, 20_000],
    ['retry-after as a date', { 'retry-after': 'Sun, 01 Jun 2025 12:00:10 GMT' }, undefined, 11_000],
    [
      "OpenAI's sentence",
      {},
      '{"error":{"message":"Rate limit reached. Please try again in 1m6.5s. Visit …"}}',
      66_500,
    ],
    ["Google's retryDelay", {}, '{"details":[{"@type":"…RetryInfo","retryDelay": "34.07s"}]}', 34_070],
    ['nothing', {}, '{"error":"busy"}', undefined],
    ['a body that is none', {}, { retryDelay: '3s' }, undefined],
  ])('tell a refused caller how long to wait: %s', (_, headers, body, waitMs) => {
    expect(told(headers as Record<string, string>, 429, body).waitMs).toBe(waitMs);
    expect(told(headers as Record<string, string>, 529, body).waitMs).toBe(waitMs);
  });

  it('tell of a subscription how full its fullest window is, whose size nobody knows', () => {
    const headers = {
      'anthropic-ratelimit-unified-status': 'allowed_warning',
      'anthropic-ratelimit-unified-reset': String(now / 1000 + 600),
      'anthropic-ratelimit-unified-5h-utilization': '0.42',
      'anthropic-ratelimit-unified-5h-reset': String(now / 1000 + 600),
      'anthropic-ratelimit-unified-7d-utilization': '0.87',
      'anthropic-ratelimit-unified-7d-reset': '2025-06-03T12:00:00.000Z',
    };
    const week = { used: 0.87, resetInMs: 2 * 86_400_000 };
    expect(told(headers)).toEqual({ quotas: [], share: week, waitMs: undefined, ignored: 0 });
    expect(told({ ...headers, 'anthropic-ratelimit-unified-5h-utilization': '1.02' }).share?.used).toBe(1);
    expect(told({ ...headers, 'anthropic-ratelimit-unified-5h-utilization': '-1' })).toMatchObject({
      share: week,
      ignored: 1,
    });
  });

  it.each<[what: string, headers: Record<string, string>, waitMs: number | undefined]>([
    [
      'the last of the used-up windows',
      { '5h-utilization': '1', '7d-status': 'rejected', status: 'rejected' },
      86_401_000,
    ],
    ['the window that counts, whatever its name', { status: 'rejected', reset: String(now / 1000 + 60) }, 61_000],
    [
      'nothing where the subscription allows it: something else is full',
      { '5h-utilization': '1', status: 'allowed' },
      undefined,
    ],
    ['retry-after before them', { '5h-utilization': '1', 'retry-after': '7' }, 7000],
  ])('of a subscription tell a refused caller how long to wait: %s', (_, given, waitMs) => {
    const headers = { '5h-reset': String(now / 1000 + 3600), '7d-reset': String(now / 1000 + 86_400), ...given };
    const named = Object.entries(headers).map(([name, value]) => {
      return [name === 'retry-after' ? name : `anthropic-ratelimit-unified-${name}`, value];
    });
    expect(told(Object.fromEntries(named), 429).waitMs).toBe(waitMs);
    expect(told(Object.fromEntries(named), 200).waitMs).toBeUndefined();
  });

  it.each([
    ['a negative remaining', { 'x-ratelimit-limit-requests': '60', 'x-ratelimit-remaining-requests': '-1' }, 1],
    [
      'no numbers',
      {
        'x-ratelimit-limit-tokens': 'NaN',
        'x-ratelimit-remaining-tokens': 'Infinity',
        'x-ratelimit-reset-tokens': 'soon',
      },
      3,
    ],
    ['a limit of 0', { 'x-ratelimit-limit-requests': '0' }, 1],
    ['more than 2^53', { 'x-ratelimit-limit-tokens': '9007199254740993' }, 1],
    [
      'an instant in 1970',
      { 'anthropic-ratelimit-requests-limit': '5', 'anthropic-ratelimit-requests-reset': '1970-01-01T00:00:00Z' },
      1,
    ],
    [
      'an instant in 2100',
      { 'anthropic-ratelimit-requests-limit': '5', 'anthropic-ratelimit-requests-reset': '2100-01-01T00:00:00Z' },
      1,
    ],
    ['a wait beyond a year', { 'retry-after': '40000000' }, 1],
    ['a wait that is negative', { 'retry-after': '-3' }, 1],
  ])('that cannot be right are left out and counted: %s', (_, headers, ignored) => {
    const answer = told(headers as Record<string, string>, 429);
    expect(answer.ignored).toBe(ignored);
    expect(answer.waitMs).toBeUndefined();
    for (const { remaining, resetInMs } of answer.quotas)
      expect([remaining, resetInMs]).toEqual([undefined, undefined]);
  });
});

/** The only quota that headers tell of. */
function only(headers: Record<string, string>): unknown {
  const { quotas } = told(headers);
  expect(quotas).toHaveLength(1);
  return quotas[0];
}

describe('the figures of a quota', () => {
  it('are told by a limit or by what is left of it, and not by the end of a window alone', () => {
    const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map(
      (figure) => `x-ratelimit-${figure}-tokens`,
    ) as [string, string, string];
    expect(only({ [limit]: '7' })).toEqual({ ...quota, unit: 'tokens', limit: 7 });
    expect(only({ [remaining]: '0' })).toEqual({ ...quota, unit: 'tokens', remaining: 0 });
    expect(told({ [reset]: '1s' })).toEqual({ quotas: [], waitMs: undefined, ignored: 0 });
    const tokens = 'anthropic-ratelimit-tokens';
    expect(only({ [`${tokens}-limit`]: '7' })).toEqual({ ...quota, unit: 'tokens', limit: 7 });
    expect(only({ [`${tokens}-remaining`]: '7' })).toEqual({ ...quota, unit: 'tokens', remaining: 7 });
    expect(told({ [`${tokens}-reset`]: '2025-06-01T12:00:01Z' }).quotas).toEqual([]);
  });

  it.each([
    ['9007199254740991', 2 ** 53 - 1],
    ['0.5', 0.5],
    ['007', 7],
  ])('may be %s', (text, value) => {
    expect(only({ 'x-ratelimit-limit-tokens': text, 'x-ratelimit-remaining-tokens': text })).toMatchObject({
      limit: value,
      remaining: value,
    });
  });

  it.each([['1e3'], ['+5'], ['5x'], ['x5'], ['5.'], ['.5'], ['0x10'], ['1,000'], ['9007199254740992']])(
    'cannot be %s',
    (text) => {
      const { quotas, ignored, firstIgnored } = told({
        'x-ratelimit-limit-tokens': '1',
        'x-ratelimit-remaining-tokens': text,
      });
      expect([quotas, ignored, firstIgnored]).toEqual([[{ ...quota, unit: 'tokens', limit: 1 }], 1, text]);
    },
  );

  it('that cannot be right are counted one by one, and the first is kept as it came', () => {
    const { quotas, ignored, firstIgnored } = told({
      'x-ratelimit-limit-requests': '-1',
      'x-ratelimit-limit-tokens': 'many',
    });
    expect([quotas, ignored, firstIgnored]).toEqual([[], 2, '-1']);
  });

  it.each([
    ['20', 20_000],
    ['1.5', 1500],
    ['59.5s', 59_500],
    ['6m0s', 360_000],
    ['31536000', 31_536_000_000],
    ['0', 0],
  ])('end after %s', (text, resetInMs) => {
    expect(only({ 'x-ratelimit-limit-tokens': '1', 'x-ratelimit-reset-tokens': text })).toMatchObject({ resetInMs });
  });

  it.each([['31536001'], ['-1'], ['-1s'], ['later']])('cannot end after %s', (text) => {
    const { quotas, ignored } = told({ 'x-ratelimit-limit-tokens': '1', 'x-ratelimit-reset-tokens': text });
    expect([quotas[0]?.resetInMs, ignored]).toEqual([undefined, 1]);
  });

  it.each([
    ['2025-06-01T12:00:00.000Z', 0],
    ['2025-06-01T12:00:00.250Z', 250],
    ['2025-06-01T12:00:05Z', 6000],
    ['2025-06-01T11:59:59.500Z', 0],
    ['2025-06-01T11:59:59Z', 0],
    ['2025-06-01T11:59:00.001Z', 0],
    ['2026-06-01T12:00:00.000Z', 31_536_000_000],
  ])('end at %s, by the calendar where the answer bears no date', (text, resetInMs) => {
    for (const date of ['', 'some day']) {
      expect(
        only({ date, 'anthropic-ratelimit-requests-limit': '1', 'anthropic-ratelimit-requests-reset': text }),
      ).toMatchObject({
        resetInMs,
      });
    }
  });

  it.each([['2025-06-01T11:59:00.000Z'], ['2025-06-01T11:59:00Z'], ['2026-06-01T12:00:00.001Z'], ['noon']])(
    'cannot end at %s',
    (text) => {
      const { quotas, ignored } = told({
        'anthropic-ratelimit-requests-limit': '1',
        'anthropic-ratelimit-requests-reset': text,
      });
      expect([quotas[0]?.resetInMs, ignored]).toEqual([undefined, 1]);
    },
  );
});

describe('the fields of the IETF', () => {
  const unknown = { ...quota, unit: 'requests' };

  it.each<[string, Record<string, string>, object[]]>([
    ['no field', { 'ratelimit-policy': '"default";q=100;w=60' }, []],
    ['no policy', { ratelimit: '"default";r=50' }, [{ ...unknown, remaining: 50 }]],
    [
      'a policy of another name',
      { ratelimit: '"a";r=5;t=3', 'ratelimit-policy': '"b";q=9;w=60' },
      [{ ...unknown, remaining: 5, resetInMs: 3000 }],
    ],
    [
      'two policies, in another order',
      { ratelimit: '"day";r=7;t=9, "minute";r=5;t=3', 'ratelimit-policy': '"minute";q=10;w=60, "day";q=100;w=86400' },
      [
        { unit: 'requests', limit: 100, remaining: 7, resetInMs: 9000, perMs: 86_400_000 },
        { unit: 'requests', limit: 10, remaining: 5, resetInMs: 3000, perMs: 60_000 },
      ],
    ],
    [
      'the unit of requests, by name',
      { ratelimit: '"a";r=5', 'ratelimit-policy': '"a";q=9;qu="requests"' },
      [{ ...unknown, limit: 9, remaining: 5 }],
    ],
    [
      'spaces and capitals',
      { ratelimit: ' "a" ; R = 5 ; T = 3 ', 'ratelimit-policy': ' "a" ; Q = 9 ; W = 60 ' },
      [{ unit: 'requests', limit: 9, remaining: 5, resetInMs: 3000, perMs: 60_000 }],
    ],
    [
      'a limit beside what is left',
      { ratelimit: '"a";limit=8;r=5', 'ratelimit-policy': '"a";q=9' },
      [{ ...unknown, limit: 8, remaining: 5 }],
    ],
    [
      'a span of nothing',
      { ratelimit: '"a";r=5', 'ratelimit-policy': '"a";q=9;w=0' },
      [{ ...unknown, limit: 9, remaining: 5 }],
    ],
    [
      'a parameter without a value',
      { ratelimit: '"a";x;r=5', 'ratelimit-policy': '"a"' },
      [{ ...unknown, remaining: 5 }],
    ],
    [
      'the seventh draft, without a limit of its own',
      { ratelimit: 'remaining=50, reset=30', 'ratelimit-policy': '100;w=60' },
      [{ unit: 'requests', limit: 100, remaining: 50, resetInMs: 30_000, perMs: 60_000 }],
    ],
    [
      'the seventh draft, without a policy',
      { ratelimit: 'limit=100,Remaining =50' },
      [{ ...unknown, limit: 100, remaining: 50 }],
    ],
    [
      'the seventh draft, in another order',
      { ratelimit: 'limit=100, reset=30, remaining=50' },
      [{ ...unknown, limit: 100, remaining: 50, resetInMs: 30_000 }],
    ],
    [
      'a policy whose name only ends like the draft',
      { ratelimit: '"xremaining=";r=5' },
      [{ ...unknown, remaining: 5 }],
    ],
  ])('tell of %s', (_, headers, quotas) => {
    expect(told(headers)).toEqual({ quotas, waitMs: undefined, ignored: 0 });
  });
});

describe('the wait of a refusal', () => {
  const waitMs = (body: unknown, headers: Record<string, string> = {}): number | undefined =>
    told(headers, 429, body).waitMs;

  it.each([
    ['Please try again in 20s.', 20_000],
    ['please TRY AGAIN IN 120ms', 120],
    ['retry in 1h2m3.5s', 3_723_500],
    ['{"retryDelay":"3s"}', 3000],
    ["{'retryDelay' : '3s'}", 3000],
    ['try again in   7s', 7000],
    ['try again in 8760h', 31_536_000_000],
  ])('is read from the text %j', (body, expected) => {
    expect(waitMs(body)).toBe(expected);
  });

  it.each([
    ['try again in a while'],
    ['try again in 5'],
    ['try again in 8761h'],
    ['retryDelay 3s'],
    [`${' '.repeat(8192)}try again in 7s`],
    [['try again in 7s']],
    [undefined],
  ])('is not told by %j', (body) => {
    expect(waitMs(body)).toBeUndefined();
  });

  it('is read up to the end of the first 8192 characters', () => {
    expect(waitMs(`${' '.repeat(8192 - 'try again in 7s'.length)}try again in 7s`)).toBe(7000);
  });

  it('is that of the headers, however the text contradicts', () => {
    expect(waitMs('try again in 7s', { 'retry-after': '3' })).toBe(3000);
    expect(waitMs('try again in 7s', { 'retry-after': 'soon' })).toBe(7000);
    expect(waitMs('try again in 7s', { 'retry-after-ms': 'soon', 'retry-after': '3' })).toBe(3000);
    expect(waitMs(undefined, { 'retry-after-ms': '0' })).toBe(0);
    expect(waitMs(undefined, { 'retry-after': '1.5' })).toBe(1500);
  });

  it('is nothing in an answer that puts nobody off', () => {
    expect(told({ 'retry-after': '3' }, 200, 'try again in 7s').waitMs).toBeUndefined();
  });
});
