import { expect } from 'vitest';

/** When to come back, told in seconds and in ms. A controller learns its rate on the real clock, so a slow machine waits longer. */
export function expectComeBack(headers: Readonly<Record<string, string | string[] | undefined>>): void {
  const ms = Number(headers['retry-after-ms']);
  expect(ms).toBeGreaterThanOrEqual(1_000);
  expect(headers['retry-after']).toBe(String(Math.ceil(ms / 1_000)));
}
