import { describe, expect, it } from 'vitest';
import {
  dynamoBody,
  dynamoContract,
  isOverloadRefusal,
  refusalWaitMs,
  toHttpResponse,
} from '../../../src/adapters/http/index.js';
import { drops } from './drops.js';

const overloaded = 'Server overloaded: worker at capacity';

describe('isOverloadRefusal', () => {
  it.each([429, 503, 529])('takes %d for overload, with a body or without', (status) => {
    expect(isOverloadRefusal({ status })).toBe(true);
    expect(isOverloadRefusal({ status, body: '<html>Service Unavailable</html>' })).toBe(true);
  });

  it.each([200, 206, 400, 404, 500, 502, 504])('takes %d alone for something else', (status) => {
    expect(isOverloadRefusal({ status })).toBe(false);
  });

  it.each([
    overloaded,
    `\n${overloaded}`,
    JSON.stringify(overloaded),
    JSON.stringify({ message: overloaded, type: 'internal', code: 500 }),
    JSON.stringify({ error: overloaded }),
    JSON.stringify({ error: { message: overloaded, type: 'internal' } }),
  ])('finds the message of an overloaded worker under any error status: %s', (body) => {
    expect([400, 429, 500].map((status) => isOverloadRefusal({ status, body }))).toEqual([true, true, true]);
  });

  it('tells a worker that is gone from one that has too much to do', () => {
    expect(isOverloadRefusal({ status: 503, body: 'Server unavailable: draining' })).toBe(false);
    expect(
      isOverloadRefusal({ status: 503, body: JSON.stringify({ error: { message: 'Server unavailable: draining' } }) }),
    ).toBe(false);
  });

  it('looks at the beginning of the message only, and not at what a model wrote', () => {
    expect(isOverloadRefusal({ status: 500, body: `internal error; upstream said: ${overloaded}` })).toBe(false);
    expect(isOverloadRefusal({ status: 200, body: overloaded })).toBe(false);
  });

  it.each(['{"message":', 'null', '[]', '{"message":7}', '{"error":{}}'])('makes nothing of the body %s', (body) => {
    expect([isOverloadRefusal({ status: 500, body }), isOverloadRefusal({ status: 529, body })]).toEqual([false, true]);
  });

  it.each([503, 529])('knows what a front end of the Dynamo contract answers with %d', (status) => {
    const answer = toHttpResponse(drops.overloaded, { contract: dynamoContract(status), body: dynamoBody });
    expect(isOverloadRefusal(answer)).toBe(true);
  });
});

describe('refusalWaitMs', () => {
  it.each([
    [{ 'retry-after-ms': '250', 'retry-after': '1' }, 250],
    [{ 'retry-after': '20' }, 20_000],
    [{ 'retry-after': 'Sat, 21 Nov 2026 10:00:20 GMT', date: 'Sat, 21 Nov 2026 10:00:00 GMT' }, 20_000],
    [{ 'retry-after': '86400' }, 3_600_000],
    [{ 'retry-after': '0' }, 1],
    [{ 'retry-after': '-1' }, undefined],
    [{}, undefined],
  ])('reads %j', (headers, expected) => {
    expect(refusalWaitMs(headers)).toBe(expected);
  });

  it('counts a date from the time of day that it is given', () => {
    expect(
      refusalWaitMs({ 'retry-after': 'Sat, 21 Nov 2026 10:00:20 GMT' }, () => Date.UTC(2026, 10, 21, 10, 0, 15)),
    ).toBe(5000);
  });
});
