import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ItemView } from '../../../../src/index.js';
import { type Charge, ChargeTable } from '../../../../src/tiers/2-fairness/by-cost/charge-table.js';
import { ShareTree } from '../../../../src/tiers/2-fairness/by-cost/share-tree.js';
import { VirtualCounters } from '../../../../src/tiers/2-fairness/by-cost/virtual-counters.js';
import { fakeItem } from '../../../support/fake-item.js';

const leaf = new ShareTree([() => new VirtualCounters('floor')]).leaf('acme');
const work = { promptTokens: 10, cachedPromptTokens: 2, completionTokens: 5, seatMs: 0 };

/** Sequences of which many fall on the same slot. */
const step = fc.record({
  isEnd: fc.boolean(),
  sequence: fc.oneof(
    fc.nat(20),
    fc.integer({ min: 0, max: 20 }).map((n) => n * 64),
  ),
});

describe('open charges', () => {
  it('are found by their request, and by no other, after any history', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const open = new ChargeTable();
        const model = new Map<number, { item: ItemView; charged: number }>();
        let charged = 0;
        for (const { isEnd, sequence } of steps) {
          const known = model.get(sequence);
          if (known === undefined) {
            const item = fakeItem({ sequence });
            open.add(item, leaf, 1, '', work, 0).charged = ++charged;
            model.set(sequence, { item, charged });
          } else if (isEnd) {
            const charge = open.get(known.item);
            if (charge !== undefined) open.remove(charge);
            model.delete(sequence);
            expect(open.get(known.item)).toBeUndefined();
          }
          expect(open.size).toBe(model.size);
          for (const each of model.values()) expect(open.get(each.item)?.charged).toBe(each.charged);
        }
      }),
    );
  });

  it('are not found by another request with the same arrival number', () => {
    const open = new ChargeTable();
    open.add(fakeItem({ sequence: 3 }), leaf, 1, '', work, 0);
    expect(open.get(fakeItem({ sequence: 3 }))).toBeUndefined();
  });

  it('begin anew when a record is used again', () => {
    const open = new ChargeTable();
    const first = open.add(fakeItem({ sequence: 1 }), leaf, 3, 'large', work, 5);
    first.charged = 40;
    first.isReported = true;
    first.ignoredTokens = 3;
    first.promptTokens = 11;
    first.cachedPromptTokens = 4;
    first.completionTokens = 9;
    open.remove(first);
    expect(first).toMatchObject({ item: undefined, leaf: undefined });
    const item = fakeItem({ sequence: 2 });
    expect(open.add(item, leaf, 1, '', { ...work, promptTokens: 7 }, 8)).toEqual({
      item,
      leaf,
      weight: 1,
      model: '',
      charged: 0,
      isReported: false,
      promptTokens: 0,
      cachedPromptTokens: -1,
      completionTokens: 0,
      ignoredTokens: 0,
      predictedPrompt: 7,
      predictedCached: 2,
      predictedCompletion: 5,
      dispatchedAtMs: 8,
    });
  });

  it('stand in a table that is half empty at least, and grows no sooner', () => {
    const open = new ChargeTable();
    const { capacity: atFirst } = open;
    for (let i = 0; i < 8; i++) open.add(fakeItem({ sequence: i }), leaf, 1, '', work, 0);
    const { capacity: whenHalfFull } = open;
    const items = Array.from({ length: 30 }, (_, i) => fakeItem({ sequence: 16 * i }));
    for (const item of items) open.add(item, leaf, 1, '', work, 0);
    expect([atFirst, whenHalfFull, open.capacity]).toEqual([16, 16, 128]);
    expect(items.every((item) => open.get(item)?.item === item)).toBe(true);
  });

  it('are moved nearer when one of the same slot ends, whichever it is', () => {
    for (let ended = 0; ended < 6; ended++) {
      const open = new ChargeTable();
      const items = [14, 30, 15, 31, 46, 0].map((sequence) => fakeItem({ sequence }));
      for (const item of items) open.add(item, leaf, 1, '', work, 0);
      open.remove(open.get(items[ended] as ItemView) as Charge);
      expect(items.map((item) => open.get(item)?.item)).toEqual(
        items.map((item, i) => (i === ended ? undefined : item)),
      );
    }
  });

  it('keep the records of those that ended for others, a thousand or so of them', () => {
    const open = new ChargeTable();
    const charges = Array.from({ length: 1030 }, (_, sequence) =>
      open.add(fakeItem({ sequence }), leaf, 1, '', work, 0),
    );
    for (const charge of charges) open.remove(charge);
    const again = Array.from({ length: 1030 }, (_, sequence) => open.add(fakeItem({ sequence }), leaf, 1, '', work, 0));
    expect(again.filter((charge) => charges.includes(charge))).toHaveLength(1024);
  });
});
