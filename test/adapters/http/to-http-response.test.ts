import OpenAI, { RateLimitError } from 'openai';
import { describe, expect, it } from 'vitest';
import { type ErrorResponseOptions, toHttpResponse } from '../../../src/adapters/http/index.js';
import type { Drop } from '../../../src/index.js';
import { type DropName, drops } from './drops.js';

const respond = (drop: Drop, options: ErrorResponseOptions = {}) =>
  toHttpResponse(drop, { random: () => 0, ...options });
const problem = (drop: Drop, options?: ErrorResponseOptions) => JSON.parse(respond(drop, options).body);

type Row = readonly [drop: DropName, status: number, droppedReason: string | undefined, hasRetryAfter: boolean];

const gatewayApi: readonly Row[] = [
  ['capacity', 429, 'rejected-saturated', true],
  ['globalBytes', 429, 'rejected-saturated', true],
  ['flowRequests', 429, 'rejected-saturated', true],
  ['maxBands', 429, 'rejected-saturated', true],
  ['refused', 429, 'rejected-saturated', true],
  ['overloaded', 503, 'rejected-saturated', true],
  ['displaced', 429, 'rejected-saturated', true],
  ['noEndpointsRejected', 503, 'rejected-no-endpoints', true],
  ['noEndpointsAtAll', 503, 'rejected-no-endpoints', true],
  ['noEndpointsEvicted', 503, 'rejected-no-endpoints', true],
  ['ttl', 503, 'rejected-ttl-expired', true],
  ['infeasible', 503, 'rejected-infeasible', true],
  ['gone', 503, 'rejected-context-cancelled', false],
  ['shutdownRejected', 500, undefined, false],
  ['shutdownEvicted', 500, undefined, false],
  ['goneBefore', 503, 'rejected-context-cancelled', false],
  ['expiredBefore', 503, 'rejected-ttl-expired', true],
  ['goneOther', 503, 'rejected-context-cancelled', false],
  ['internal', 500, undefined, false],
];

const llmD: readonly Row[] = [
  ['capacity', 429, 'rejected-saturated', true],
  ['globalBytes', 429, 'rejected-saturated', true],
  ['maxBands', 429, 'rejected-saturated', true],
  ['refused', 429, 'rejected-saturated', true],
  ['overloaded', 429, 'rejected-saturated', true],
  ['displaced', 429, 'rejected-saturated', true],
  ['noEndpointsRejected', 503, 'rejected-no-endpoints', true],
  ['noEndpointsEvicted', 503, 'rejected-no-endpoints', true],
  ['ttl', 429, 'rejected-ttl-expired', true],
  ['infeasible', 503, 'rejected-infeasible', true],
  ['gone', 503, 'rejected-context-cancelled', false],
  ['shutdownRejected', 503, 'rejected-shutting-down', true],
  ['shutdownEvicted', 503, 'rejected-shutting-down', true],
  ['goneBefore', 503, 'rejected-context-cancelled', false],
  ['expiredBefore', 429, 'rejected-ttl-expired', true],
  ['goneOther', 503, 'rejected-context-cancelled', false],
  ['internal', 500, undefined, false],
];

function checkRow([name, status, droppedReason, hasRetryAfter]: Row, contract: 'gateway-api' | 'llm-d'): void {
  const response = respond(drops[name], { contract });
  expect(response.status).toBe(status);
  expect(response.headers['x-llm-d-request-dropped-reason']).toBe(droppedReason);
  expect('retry-after' in response.headers).toBe(hasRetryAfter);
  expect('retry-after-ms' in response.headers).toBe(hasRetryAfter);
}

describe('error contracts', () => {
  it.each(gatewayApi)('gateway-api: %s is %d', (...row) => checkRow(row, 'gateway-api'));
  it.each(llmD)('llm-d: %s is %d', (...row) => checkRow(row, 'llm-d'));

  it('gateway-api is the default', () => {
    expect(respond(drops.ttl).status).toBe(503);
  });

  it.each([
    [true, 429, 'rejected-ttl-expired'],
    [false, 503, 'rejected-no-endpoints'],
  ])('llm-d looks at the pool when the TTL expired: endpoints %s, status %d', (hasEndpoints, status, reason) => {
    const response = respond(drops.ttl, { contract: 'llm-d', hasEndpoints: () => hasEndpoints });
    expect(response).toMatchObject({ status, headers: { 'x-llm-d-request-dropped-reason': reason } });
    expect(respond(drops.ttl, { hasEndpoints: () => hasEndpoints }).status).toBe(503);
  });

  it('a function decides for itself', () => {
    const contract = (drop: Drop) => ({
      status: drop.type === 'RejectedCapacity' ? 529 : 418,
      droppedReason: `mine-${drop.reason}`,
    });
    const response = respond(drops.capacity, { contract });
    expect(response.status).toBe(529);
    expect(response.headers['x-llm-d-request-dropped-reason']).toBe('mine-band-max-requests');
    expect(response.headers['retry-after']).toBe('3');
    expect(problem(drops.capacity, { contract }).status).toBe(529);
    expect(problem(drops.ttl, { contract })).toMatchObject({ type: 'about:blank', status: 418 });
    expect(respond(drops.ttl, { contract }).headers).not.toHaveProperty('retry-after');
  });
});

describe('headers', () => {
  it.each([
    ['rounds up', 2_300, 30, 0, '3'],
    ['at least one second', 1, 30, 0, '1'],
    ['one second when nothing was measured', undefined, 30, 0, '1'],
    ['one second for an estimate of zero', 0, 30, 0, '1'],
    ['capped', 3_600_000, 30, 0, '30'],
    ['capped where told', 3_600_000, 5, 0, '5'],
    ['jitter adds up to a fifth', 20_000, 30, 0.999, '24'],
    ['jitter adds to the cap as well', 3_600_000, 30, 0.999, '36'],
    ['jitter keeps whole seconds', 20_000, 30, 0.3, '21'],
    ['a fraction of a cap is dropped', 3_600_000, 2.5, 0, '2'],
  ])('retry-after: %s', (_, retryAfterMs, maxRetryAfterSeconds, random, expected) => {
    const drop: Drop = { ...drops.capacity, retryAfterMs };
    expect(respond(drop, { maxRetryAfterSeconds, random: () => random }).headers['retry-after']).toBe(expected);
  });

  it.each([
    ['as precise as the estimate', 2_300, 30, 0, '2300'],
    ['at least one second', 1, 30, 0, '1000'],
    ['one second when nothing was measured', undefined, 30, 0, '1000'],
    ['capped', 3_600_000, 30, 0, '30000'],
    ['jitter adds up to a fifth', 20_000, 30, 0.5, '22000'],
    ['jitter adds up to a second at least', 1_500, 30, 0.5, '2000'],
  ])('retry-after-ms: %s', (_, retryAfterMs, maxRetryAfterSeconds, random, expected) => {
    const drop: Drop = { ...drops.capacity, retryAfterMs };
    expect(respond(drop, { maxRetryAfterSeconds, random: () => random }).headers['retry-after-ms']).toBe(expected);
  });

  it.each(['gateway-api', 'llm-d', 'dynamo', () => ({ status: 529 })] as const)(
    'retry-after-ms is in contract %s',
    (contract) => {
      expect(respond(drops.capacity, { contract }).headers).toMatchObject({
        'retry-after': '3',
        'retry-after-ms': '2300',
      });
    },
  );

  it.each([
    [1, [1, 2]],
    [2, [2, 3]],
    [6, [6, 7, 8]],
    [10, [10, 11, 12]],
  ])('retry-after of %d seconds is spread evenly over whole seconds', (seconds, expected) => {
    const drop: Drop = { ...drops.capacity, retryAfterMs: seconds * 1000 };
    const draws = Array.from({ length: 60 }, (_, i) =>
      Number(respond(drop, { random: () => i / 60 }).headers['retry-after']),
    );
    const counts = new Map<number, number>();
    for (const value of draws) counts.set(value, (counts.get(value) ?? 0) + 1);
    expect([...counts]).toEqual(expected.map((value) => [value, 60 / expected.length]));
  });

  it('retry-after is jittered without being asked', () => {
    const drop: Drop = { ...drops.capacity, retryAfterMs: 30_000 };
    const seconds = Array.from({ length: 200 }, () => Number(toHttpResponse(drop).headers['retry-after']));
    expect(new Set(seconds).size).toBeGreaterThan(3);
    expect(seconds.every((value) => Number.isInteger(value) && value >= 30 && value <= 36)).toBe(true);
  });

  it.each([
    [0, '0'],
    [0.4, '0'],
    [0.999, '0'],
    [1_234.9, '1234'],
  ])('%d ms in the queue read %s', (queuedMs, expected) => {
    expect(respond({ ...drops.ttl, queuedMs }).headers['x-llm-d-flow-queue-duration-ms']).toBe(expected);
  });

  it('drops must not be cached', () => {
    expect(respond(drops.capacity).headers['cache-control']).toBe('no-store');
  });
});

describe('problem body', () => {
  it('has the members of RFC 9457 and what flow control knows', () => {
    expect(respond(drops.capacity).headers['content-type']).toBe('application/problem+json');
    expect(problem(drops.capacity)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Too many requests are waiting',
      status: 429,
      detail: 'At most 500 requests of priority 100 may wait, and 500 are waiting.',
      code: 'ERR_FLOW_SATURATED',
      outcome: 'RejectedCapacity',
      reason: 'band-max-requests',
      priority: 100,
      error: {
        message: 'At most 500 requests of priority 100 may wait, and 500 are waiting.',
        type: 'rate_limit_error',
        param: null,
        code: 'ERR_FLOW_SATURATED',
      },
    });
  });

  it.each<[DropName, code: string, type: string, detail: string]>([
    [
      'globalBytes',
      'ERR_FLOW_SATURATED',
      'quota-exceeded',
      'Requests that wait may hold at most 1000 bytes; they hold 990, and this one does not fit.',
    ],
    [
      'flowRequests',
      'ERR_FLOW_SATURATED',
      'quota-exceeded',
      'At most 5 requests of this flow may wait, and 5 are waiting.',
    ],
    ['refused', 'ERR_FLOW_SATURATED', 'quota-exceeded', 'The request was rejected: the budget of 5 requests is spent.'],
    [
      'overloaded',
      'ERR_FLOW_OVERLOADED',
      'temporary-reduced-capacity',
      'The request was rejected: every worker is busy.',
    ],
    [
      'displaced',
      'ERR_FLOW_SATURATED',
      'quota-exceeded',
      'The queue was full, and a request of higher priority took its place.',
    ],
    ['noEndpointsAtAll', 'ERR_FLOW_NO_ENDPOINTS', 'temporary-reduced-capacity', 'No model server is available.'],
    ['maxBands', 'ERR_FLOW_SATURATED', 'quota-exceeded', 'The gateway takes no more requests of priority 100 now.'],
    [
      'noEndpointsRejected',
      'ERR_FLOW_NO_ENDPOINTS',
      'temporary-reduced-capacity',
      'No model server is available, and no more requests may wait. At most 500 requests of priority 100 may wait, and 500 are waiting.',
    ],
    [
      'noEndpointsEvicted',
      'ERR_FLOW_NO_ENDPOINTS',
      'temporary-reduced-capacity',
      'No model server is available; the request waited 60.0 s for one.',
    ],
    [
      'ttl',
      'ERR_FLOW_TTL_EXPIRED',
      'temporary-reduced-capacity',
      'The request waited 60.0 s for its turn, as long as it may.',
    ],
    ['gone', 'ERR_FLOW_CANCELLED', 'temporary-reduced-capacity', 'The client left after 1.2 s in the queue.'],
    ['shutdownRejected', 'ERR_FLOW_SHUTTING_DOWN', 'about:blank', 'The gateway is shutting down.'],
    ['internal', 'ERR_FLOW_INTERNAL', 'about:blank', 'Flow control could not handle the request.'],
  ])('%s', (name, code, type, detail) => {
    const body = problem(drops[name]);
    expect(body).toMatchObject({ code, detail });
    expect(body.type).toContain(type);
  });

  it.each(Object.keys(drops) as DropName[])('%s does not tell the fairness ID', (name) => {
    for (const body of ['problem', 'openai'] as const)
      expect(JSON.stringify(respond(drops[name], { body }))).not.toContain('secret-tenant');
  });
});

describe('other bodies', () => {
  it('openai: the error object', () => {
    const response = respond(drops.capacity, { body: 'openai' });
    expect(response.headers['content-type']).toBe('application/json');
    expect(JSON.parse(response.body)).toEqual({
      error: {
        message: 'At most 500 requests of priority 100 may wait, and 500 are waiting.',
        type: 'rate_limit_error',
        param: null,
        code: 'ERR_FLOW_SATURATED',
      },
    });
    expect(problem(drops.ttl, { body: 'openai' }).error.type).toBe('server_error');
  });

  it('openai: the openai client understands it', async () => {
    const { status, headers, body } = respond(drops.capacity, { body: 'openai' });
    const client = new OpenAI({
      apiKey: 'none',
      maxRetries: 0,
      fetch: async () => new Response(body, { status, headers }),
    });
    const error: unknown = await client.models.list().then(
      () => undefined,
      (reason) => reason,
    );
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ status: 429, code: 'ERR_FLOW_SATURATED', type: 'rate_limit_error', param: null });
    expect((error as Error).message).toContain('At most 500 requests');
    expect((error as RateLimitError).headers?.get('retry-after')).toBe('3');
  });

  it.each([
    ['contract', { contract: () => ({ status: Number.NaN }) }],
    ['contract', { contract: () => ({ status: 101 }) }],
    ['contract', { contract: () => ({ status: 429, droppedReason: 'a\r\nb' }) }],
    ['body', { body: () => ({ contentType: '', body: '' }) }],
    ['body', { body: () => ({ contentType: 'text/plain', body: 5 as never }) }],
  ])('a function of the host that answers what cannot be sent is an error that names it: %s', (path, options) => {
    expect(() => toHttpResponse(drops.capacity, options)).toThrow(`${path}: expected`);
  });

  it.each([[Number.NaN], [-1], [1], [undefined as never]])('a random source that answers %s spreads nobody', (draw) => {
    const answer = (random: () => number) => toHttpResponse(drops.capacity, { random }).headers;
    expect(answer(() => draw)).toEqual(answer(() => 0));
  });

  it('a function writes its own', () => {
    const response = respond(drops.ttl, {
      body: ({ detail, status }, drop) => ({ contentType: 'text/plain', body: `${status} ${drop.type} ${detail}` }),
    });
    expect(response.headers['content-type']).toBe('text/plain');
    expect(response.body).toBe('503 EvictedTTL The request waited 60.0 s for its turn, as long as it may.');
  });
});
