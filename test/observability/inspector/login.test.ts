import { describe, expect, it } from 'vitest';
import { basicLogin, type InspectorRequest } from '../../../src/observability/inspector/index.js';
import { ManualClock } from '../../../src/testing/index.js';

function login() {
  const clock = new ManualClock();
  const authorize = basicLogin({ password: 'sesame', clock });
  const ask = (password: string | undefined, address?: string): Promise<boolean | Response> => {
    const headers: Record<string, string> = {};
    if (password !== undefined) headers.authorization = `Basic ${btoa(`ops:${password}`)}`;
    const request: InspectorRequest = { method: 'GET', url: '/', headers, address };
    return authorize(request);
  };
  const statusOf = async (...given: Parameters<typeof ask>): Promise<number | true> => {
    const answer = await ask(...given);
    return answer instanceof Response ? answer.status : (answer as true);
  };
  return { clock, ask, statusOf };
}

async function times<T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let index = 0; index < count; index++) results.push(await work(index));
  return results;
}

describe('the password of the inspector', () => {
  it('can be wrong ten times in a row from one address, and then once in six seconds', async () => {
    const { clock, ask, statusOf } = login();
    expect(new Set(await times(10, () => statusOf('wrong', '10.0.0.1')))).toEqual(new Set([401]));
    const answer = (await ask('sesame', '10.0.0.1')) as Response;
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '6']);
    expect(await statusOf('sesame', '10.0.0.2')).toBe(true);
    clock.advance(6_000);
    expect(await statusOf('wrong', '10.0.0.1')).toBe(401);
    expect(await statusOf('wrong', '10.0.0.1')).toBe(429);
    clock.advance(60_000);
    expect(await statusOf('sesame', '10.0.0.1')).toBe(true);
  });

  it('is not compared more often when many tries come at the same time', async () => {
    const { statusOf } = login();
    const statuses = await Promise.all(Array.from({ length: 50 }, () => statusOf('wrong', '10.0.0.1')));
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
  });

  it('can be wrong a hundred times from all addresses, and then five times in a second', async () => {
    const { clock, statusOf } = login();
    const statuses = await times(200, (index) => statusOf('wrong', `10.0.0.${index}`));
    expect(statuses.filter((status) => status === 401)).toHaveLength(100);
    clock.advance(1_000);
    const later = await times(20, (index) => statusOf('wrong', `10.0.1.${index}`));
    expect(later.filter((status) => status === 401)).toHaveLength(5);
  });

  it('counts the addresses of one IPv6 network as one', async () => {
    const { statusOf } = login();
    await times(10, (index) => statusOf('wrong', `2001:db8:0:1::${index}`));
    expect(await statusOf('sesame', '2001:db8:0:1:a:b:c:d')).toBe(429);
    expect(await statusOf('sesame', '2001:db8:0:2::1')).toBe(true);
  });

  it('may be right, or not be there, as often as pages ask', async () => {
    const { statusOf } = login();
    expect(new Set(await times(300, () => statusOf('sesame', '10.0.0.1')))).toEqual(new Set([true]));
    expect(new Set(await times(300, () => statusOf(undefined, '10.0.0.1')))).toEqual(new Set([401]));
    expect(await statusOf('sesame', '10.0.0.1')).toBe(true);
  });

  it('is bounded for hosts that know no address, too', async () => {
    const { statusOf } = login();
    const statuses = await times(20, () => statusOf('wrong'));
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
  });
});
