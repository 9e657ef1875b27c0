import { describe, expect, it } from 'vitest';
import { readTold } from '../../../src/gate/quotas/told-quotas.js';

const now = Date.parse('2025-06-01T12:00:00.000Z');

function told(headers: Record<string, string>, status = 200, body?: unknown): ReturnType<typeof readTold> {
  return readTold({ status, headers: new Headers(headers), body }, now);
}

const quota = { limit: undefined, remaining: undefined, resetInMs: undefined, perMs: undefined };

describe('the headers of an answer', () => {
  it('tell nothing where there are none', () => {
    expect(told({ 'content-type': 'application/json', 'retry-after': '3' })).toEqual({ quotas: [], waitMs: undefined, ignored: 0 });
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
    expect(told({ ratelimit: '"bytes";r=50;t=30', 'ratelimit-policy': '"bytes";q=9;w=60;qu="content-bytes"' }).quotas).toEqual([]);
  });

  it.each([
    ['retry-after-ms before all', { 'retry-after-ms': '1500', 'retry-after': '9' }, undefined, 1500],
    ['retry-after in seconds', { 'retry-after': '20' }, undefined, 20_000],
    ['retry-after as a date', { 'retry-after': 'Sun, 01 Jun 2025 12:00:10 GMT' }, undefined, 11_000],
    ["OpenAI's sentence", {}, '{"error":{"message":"Rate limit reached. Please try again in 1m6.5s. Visit …"}}', 66_500],
    ["Google's retryDelay", {}, '{"details":[{"@type":"…RetryInfo","retryDelay": "34.07s"}]}', 34_070],
    ['nothing', {}, '{"error":"busy"}', undefined],
    ['a body that is none', {}, { retryDelay: '3s' }, undefined],
  ])('tell a refused caller how long to wait: %s', (_, headers, body, waitMs) => {
    expect(told(headers as Record<string, string>, 429, body).waitMs).toBe(waitMs);
    expect(told(headers as Record<string, string>, 529, body).waitMs).toBe(waitMs);
  });

  it.each([
    ['a negative remaining', { 'x-ratelimit-limit-requests': '60', 'x-ratelimit-remaining-requests': '-1' }, 1],
    [
      'no numbers',
      { 'x-ratelimit-limit-tokens': 'NaN', 'x-ratelimit-remaining-tokens': 'Infinity', 'x-ratelimit-reset-tokens': 'soon' },
      3,
    ],
    ['a limit of 0', { 'x-ratelimit-limit-requests': '0' }, 1],
    ['more than 2^53', { 'x-ratelimit-limit-tokens': '9007199254740993' }, 1],
    ['an instant in 1970', { 'anthropic-ratelimit-requests-limit': '5', 'anthropic-ratelimit-requests-reset': '1970-01-01T00:00:00Z' }, 1],
    ['an instant in 2100', { 'anthropic-ratelimit-requests-limit': '5', 'anthropic-ratelimit-requests-reset': '2100-01-01T00:00:00Z' }, 1],
    ['a wait beyond a year', { 'retry-after': '40000000' }, 1],
    ['a wait that is negative', { 'retry-after': '-3' }, 1],
  ])('that cannot be right are left out and counted: %s', (_, headers, ignored) => {
    const answer = told(headers as Record<string, string>, 429);
    expect(answer.ignored).toBe(ignored);
    expect(answer.waitMs).toBeUndefined();
    for (const { remaining, resetInMs } of answer.quotas) expect([remaining, resetInMs]).toEqual([undefined, undefined]);
  });
});
