import { describe, expect, it } from 'vitest';
import { EndpointPool, subsetHint } from '../../../src/index.js';
import { fakeItem } from '../../support/fake-item.js';

const pool = new EndpointPool();
for (const id of ['10.0.0.1:8000', '10.0.0.2:8000', '10.0.0.3:8000']) pool.add(id);

const filter = subsetHint();

function classOf(endpointSubset: unknown): string | undefined {
  return filter.classOf(fakeItem({ request: { byteSize: 1, endpointSubset } }));
}

function kept(endpointSubset: unknown): string[] {
  return filter.keep(pool.endpoints, classOf(endpointSubset) ?? 'unrestricted').map(({ id }) => id);
}

describe('subsetHint', () => {
  it.each([
    ['a list', ['10.0.0.3:8000', '10.0.0.1:8000']],
    ['a text', '10.0.0.3, 10.0.0.1:9'],
    ['a list with entries that are no text', [null, '10.0.0.1', 7, '10.0.0.3']],
  ])('keeps the endpoints that %s names, in the order of the pool', (_, hint) => {
    expect(kept(hint)).toEqual(['10.0.0.1:8000', '10.0.0.3:8000']);
  });

  it('restricts nothing without a hint, and tells that from a hint without addresses, which allows nothing', () => {
    for (const none of [undefined, null, 7, {}]) expect(classOf(none)).toBeUndefined();
    for (const empty of [[], '', ' , ', [null]]) {
      expect(classOf(empty)).toBe('');
      expect(kept(empty)).toEqual([]);
    }
  });

  it('has one class for the same addresses in any order and form, and leaves the hint alone', () => {
    const hint = Object.freeze(['10.0.0.2:1', '10.0.0.1:1']);
    expect(classOf(hint)).toBe(classOf('10.0.0.1:1,10.0.0.2:1'));
    expect(classOf(hint)).not.toBe(classOf('10.0.0.1:1'));
  });

  it('finds the hint by a function', () => {
    const byMetadata = subsetHint<{ metadata: Record<string, string> }>({ of: ({ metadata }) => metadata.subset });
    const request = { metadata: { subset: '10.0.0.2' } };
    expect(byMetadata.classOf({ ...fakeItem(), request })).toBe('10.0.0.2');
    expect(() => subsetHint({ of: 'endpointSubset' as never })).toThrow(
      'of: expected a function of the request; got "endpointSubset"',
    );
  });
});
