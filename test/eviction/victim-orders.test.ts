import { describe, expect, it } from 'vitest';
import { largestFootprint, leastProgress, priorityThenTime } from '../../src/eviction/victims.js';
import { defaultRegistry, type EvictionOrdering } from '../../src/index.js';

interface Running {
  readonly name: string;
  readonly priority?: number;
  readonly dispatchedAtMs?: number;
  readonly tokens?: number;
  readonly done?: readonly [promptTokens: number, completionTokens: number];
}

/** The names, the first victim first. */
function orderOf({ compare }: EvictionOrdering, running: readonly Running[]): string {
  const views = running.map(
    ({ name, priority = -1, dispatchedAtMs = 0, tokens = 0, done: [promptTokens, completionTokens] = [0, 0] }) => {
      return {
        fairnessId: name,
        priority,
        dispatchedAtMs,
        tokens,
        usage: { promptTokens, completionTokens },
        hasAnswer: false,
        endpoint: undefined,
      };
    },
  );
  return views
    .sort(compare)
    .map(({ fairnessId }) => fairnessId)
    .join(' ');
}

const orders = [priorityThenTime, leastProgress, largestFootprint];

describe('every order', () => {
  it.each(orders)('begins with the lowest priority (%#)', (make) => {
    const running = [
      { name: 'high', priority: -1, dispatchedAtMs: 9, tokens: 9 },
      { name: 'low', priority: -5, dispatchedAtMs: 1, tokens: 1, done: [5, 5] as const },
      { name: 'lower', priority: -7 },
    ];
    expect(orderOf(make(), running)).toBe('lower low high');
  });

  it.each(orders)('goes on with the newest of equals (%#)', (make) => {
    expect(
      orderOf(make(), [{ name: 'old' }, { name: 'new', dispatchedAtMs: 2 }, { name: 'middle', dispatchedAtMs: 1 }]),
    ).toBe('new middle old');
  });

  it.each(orders)('is known to configuration files by its type (%#)', (make) => {
    const { type } = make();
    expect(type).toMatch(/-eviction-order-policy$/);
    expect(defaultRegistry().create(type, {}).type).toBe(type);
  });
});

it('leastProgress spares those that have done most, prompts and completions together', () => {
  const running = [
    { name: 'much', dispatchedAtMs: 9, done: [100, 10] as const },
    { name: 'little', dispatchedAtMs: 1, done: [0, 20] as const },
    { name: 'some', dispatchedAtMs: 5, done: [10, 80] as const },
  ];
  expect(orderOf(leastProgress(), running)).toBe('little some much');
});

it('largestFootprint begins with the most tokens booked', () => {
  expect(
    orderOf(largestFootprint(), [
      { name: 'small', tokens: 10, dispatchedAtMs: 9 },
      { name: 'large', tokens: 500 },
    ]),
  ).toBe('large small');
});
