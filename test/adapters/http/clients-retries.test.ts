/** How often the clients of OpenAI and Anthropic send a request that was dropped, and what they show of it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { toHttpResponse } from '../../../src/adapters/http/index.js';
import type { Drop } from '../../../src/index.js';
import { until } from '../../integration/support/until.js';

const drop: Drop = { type: 'RejectedCapacity', reason: 'refused', fairnessId: 'a', priority: 0, queuedMs: 0 };
const spent: Drop = { ...drop, reason: 'over-budget', policy: 'budgets', detail: 'the budget is spent' };

/** A server that drops every request; `attempts` counts them. */
async function dropping(given: Drop, more: Record<string, string> = {}) {
  const counted = { attempts: 0, url: '' };
  const server = createServer((req, res) => {
    counted.attempts += 1;
    const { status, headers, body } = toHttpResponse(given, { random: () => 0 });
    // The test must not wait as long as a client does.
    const soon = headers['retry-after-ms'] === '1000' ? { 'retry-after-ms': '1' } : {};
    req.resume().on('end', () => res.writeHead(status, { ...headers, ...soon, ...more }).end(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  counted.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return counted;
}

const messages = [{ role: 'user' as const, content: 'hello' }];
const clients: readonly [string, (url: string) => PromiseLike<unknown>][] = [
  [
    'openai',
    (url) => new OpenAI({ apiKey: 'k', baseURL: url, maxRetries: 2 }).chat.completions.create({ model: 'm', messages }),
  ],
  [
    'anthropic',
    (url) =>
      new Anthropic({ apiKey: 'k', baseURL: url, maxRetries: 2 }).messages.create({
        model: 'm',
        max_tokens: 9,
        messages,
      }),
  ],
];

describe.each(clients)('the client of %s', (_name, ask) => {
  it.each<[string, Drop, number]>([
    ['again, as often as it may, after a second', drop, 3],
    ['once, when its budget is used up until tomorrow', { ...spent, retryAfterMs: 43_200_000 }, 1],
    ['once, when no budget is large enough', spent, 1],
    ['again, when its budget fills within a second', { ...spent, retryAfterMs: 900 }, 3],
    ['once, when a quota has room in an hour', { ...drop, reason: 'over-quota', retryAfterMs: 3_600_000 }, 1],
    [
      'again, when the gateway shuts down and another one takes it',
      { ...drop, type: 'RejectedOther', reason: 'shutting-down' },
      3,
    ],
  ])('sends a request %s', async (_what, given, attempts) => {
    const server = await dropping(given);
    await expect(ask(server.url)).rejects.toMatchObject({ status: expect.any(Number) });
    expect(server.attempts).toBe(attempts);
  });

  it('shows why, and when to come back', async () => {
    const server = await dropping({ ...spent, retryAfterMs: 43_200_000 });
    const error: unknown = await Promise.resolve(ask(server.url)).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 429, message: expect.stringContaining('the budget is spent') });
    const [inAnHour, tomorrow] = [Date.now() / 1000 + 3_600, Date.now() / 1000 + 86_400];
    const { resets_at, code } = Reflect.get(Object(error), 'error').error ?? Reflect.get(Object(error), 'error');
    expect(code).toBe('ERR_FLOW_BUDGET');
    expect(resets_at).toBeGreaterThan(inAnHour);
    expect(resets_at).toBeLessThan(tomorrow);
  });
});

describe('without x-should-retry', () => {
  const tomorrow = { ...spent, retryAfterMs: 43_200_000 };

  it('the client of OpenAI asks three times in vain', async () => {
    const server = await dropping(tomorrow, { 'x-should-retry': '' });
    await expect(new OpenAI({ apiKey: 'k', baseURL: server.url }).models.list()).rejects.toMatchObject({ status: 429 });
    expect(server.attempts).toBe(3);
  });

  it('the client of Anthropic says nothing until tomorrow', async () => {
    const server = await dropping(tomorrow, { 'x-should-retry': '' });
    const waited = new AbortController();
    const anthropic = new Anthropic({ apiKey: 'k', baseURL: server.url });
    const answer = anthropic.models.list({}, { signal: waited.signal }).then(String, String);
    await until('it has asked', () => server.attempts === 1);
    expect(await Promise.race([answer, pause(1_000, 'it waits')])).toBe('it waits');
    waited.abort();
    expect(await answer).toContain('abort');
  });
});

it('nothing is said of retries where clients decide well', () => {
  expect(toHttpResponse({ ...spent, retryAfterMs: 59_000 }).headers).not.toHaveProperty('x-should-retry');
  expect(toHttpResponse(drop).headers).not.toHaveProperty('x-should-retry');
});
