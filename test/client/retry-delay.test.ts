import { describe, expect, it } from 'vitest';
import { toHttpResponse } from '../../src/adapters/http/index.js';
import { type RetryPolicy, retryDelayMs } from '../../src/client/index.js';
import { type DropName, drops } from '../adapters/http/drops.js';

const policy: RetryPolicy = { rejected: (attempt) => 10 ** attempt, evicted: (attempt) => 5 * 10 ** attempt };

function delay(status: number, reason?: string, retryAfter?: string, attempt = 0): number | undefined {
  const headers = { 'x-llm-d-request-dropped-reason': reason, 'retry-after': retryAfter };
  return retryDelayMs({ status, headers }, attempt, policy);
}

describe('retryDelayMs', () => {
  it.each([200, 204, 301, 400, 401, 404, 408, 409, 499, 500, 502, 504])(
    'retries no %d, whatever its headers say',
    (status) => {
      expect(delay(status, 'rejected-saturated', '1')).toBeUndefined();
    },
  );

  it.each([429, 503, 529])('retries %d, with a reason or without', (status) => {
    expect(delay(status)).toBe(1);
    expect(delay(status, 'rejected-saturated')).toBe(1);
  });

  it('is more patient after an eviction', () => {
    expect([delay(429, 'evicted-priority'), delay(429, 'evicted'), delay(429, 'evictedly')]).toEqual([5, 5, 1]);
  });

  it('is by default at least as patient after an eviction at every attempt', () => {
    const longest = (reason: string, attempt: number): number | undefined =>
      retryDelayMs({ status: 429, headers: { 'x-llm-d-request-dropped-reason': reason } }, attempt, {
        random: () => 0.99,
      });
    for (let attempt = 0; attempt < 12; attempt++) {
      expect(longest('evicted-priority', attempt)).toBeGreaterThan(
        longest('rejected-saturated', attempt) ?? Number.NaN,
      );
    }
  });

  it('counts attempts', () => {
    expect([0, 1, 2].map((attempt) => delay(429, undefined, undefined, attempt))).toEqual([1, 10, 100]);
  });

  it('adds the back-off to what Retry-After says, so that nobody comes early and not all come at once', () => {
    expect(delay(429, 'rejected-saturated', '3', 1)).toBe(3010);
  });

  it('leaves a Retry-After beyond the bound to the caller', () => {
    const told = (seconds: string): number | undefined =>
      retryDelayMs({ status: 429, headers: { 'retry-after': seconds } }, 0, {
        random: () => 0,
        maxRetryAfterMs: 30_000,
      });
    expect([told('30'), told('31')]).toEqual([30_000, undefined]);
  });

  it('reads the time of day that it is given', () => {
    const headers = { 'retry-after': 'Sat, 21 Nov 2026 10:00:20 GMT' };
    const nowEpochMs = () => Date.UTC(2026, 10, 21, 10, 0, 15);
    expect(retryDelayMs({ status: 503, headers }, 0, { random: () => 0, nowEpochMs })).toBe(5000);
  });

  it.each<[DropName, 'gateway-api' | 'llm-d' | 'dynamo', boolean]>([
    ['capacity', 'gateway-api', true],
    ['capacity', 'llm-d', true],
    ['overloaded', 'dynamo', true],
    ['ttl', 'gateway-api', true],
    ['noEndpointsEvicted', 'llm-d', true],
    ['shutdownRejected', 'llm-d', true],
    ['shutdownRejected', 'gateway-api', false],
    ['internal', 'llm-d', false],
  ])('meets the server: the drop %s under the contract %s', (name, contract, isRetried) => {
    const response = toHttpResponse(drops[name], { contract });
    expect(retryDelayMs(response, 0) !== undefined).toBe(isRetried);
  });
});
