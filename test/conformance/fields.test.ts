import { describe, expect, it } from 'vitest';
import { Fields } from './support/fields.js';
import { runner } from './support/runner.js';
import type { Vector } from './support/vectors.js';

const vectorOf = (items: readonly object[]): Vector => ({
  ...{ id: 'x-1', kind: 'x', name: '', tolerance: undefined, raw: {} },
  input: { items },
  expect: { order: ['a'] },
});

describe('fields that nobody reads', () => {
  const run = runner<{ items: readonly { id: string; bytes?: number }[] }, { order: readonly string[] }>(
    { input: ['items'], expect: ['order'] },
    ({ input: { items }, expect: { order } }) => {
      const found = items.filter(({ bytes }) => bytes !== 0).map(({ id }) => id);
      expect(found).toEqual(order);
    },
  );

  it('are named with their kind, however deep they stand', async () => {
    const fields = new Fields();
    await run(fields.watch(vectorOf([{ id: 'a', hidden: { deep: 1 } }])));
    expect(fields.unread()).toEqual(['x input.items[].hidden']);
  });

  it('are none when another vector of the kind has them read', async () => {
    const fields = new Fields();
    const silent = fields.watch(vectorOf([{ id: 'a', bytes: 1 }]));
    expect(fields.unread()).toEqual(['x input.items', 'x expect.order']);
    await run(silent);
    await run(fields.watch(vectorOf([{ id: 'b', bytes: 0 }, { id: 'a' }])));
    expect(fields.unread()).toEqual([]);
  });
});
