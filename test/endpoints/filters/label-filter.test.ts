import { describe, expect, it } from 'vitest';
import type { LabelFilterOptions } from '../../../src/endpoints/filters/label-filter.js';
import { type EndpointFilter, type EndpointView, labelFilter, roleLabel } from '../../../src/index.js';
import { fakeItem } from '../../support/fake-item.js';
import { fakeEndpoint } from '../../support/fake-pool.js';

function endpoint(id: string, labels: Record<string, string> = {}): EndpointView {
  return fakeEndpoint(id, { labels });
}

const pool = [
  endpoint('a', { model: 'llama' }),
  endpoint('b', { model: 'llama-sql, qwen' }),
  endpoint('c', { model: '' }),
  endpoint('d'),
  endpoint('e', { model: 'qwen,llama' }),
];

/** The endpoints that a request may go to. */
function allowed<R>(filter: EndpointFilter<R>, request: R, endpoints: readonly EndpointView[] = pool): string {
  const requestClass = filter.classOf({ ...fakeItem(), request });
  const kept = requestClass === undefined ? endpoints : filter.keep(endpoints, requestClass);
  return kept.map(({ id }) => id).join('');
}

describe('labelFilter', () => {
  it('keeps the endpoints whose label, or one entry of it, equals the field of its name', () => {
    const filter = labelFilter({ label: 'model' });
    expect(allowed(filter, { model: 'llama' })).toBe('ae');
    expect(allowed(filter, { model: 'qwen' })).toBe('be');
    expect(allowed(filter, { model: 'Llama' })).toBe('');
    expect(allowed(filter, { model: 'llama-sql, qwen' })).toBe('');
  });

  it.each([undefined, {}, { model: undefined }, { model: '' }, { model: ['llama'] }, 'llama'])(
    'lets %j go anywhere',
    (request) => {
      expect(allowed(labelFilter({ label: 'model' }), request)).toBe('abcde');
    },
  );

  it('reads another field, or asks a function', () => {
    expect(allowed(labelFilter({ label: 'model', field: 'target' }), { model: 'qwen', target: 'llama' })).toBe('ae');
    const filter = labelFilter<{ body: { model?: string } }>({ label: 'model', of: ({ body }) => body.model });
    expect(allowed(filter, { body: { model: 'llama' } })).toBe('ae');
    expect(allowed(filter, { body: {} })).toBe('abcde');
  });

  it('keeps endpoints without the label where that is allowed, and not those with an empty one', () => {
    expect(allowed(labelFilter({ label: 'model', allowsNoLabel: true }), { model: 'llama' })).toBe('ade');
  });

  it('restricts every request to the valid values, and has one class for all', () => {
    const decoding = labelFilter({ label: roleLabel, validValues: ['decode', 'prefill-decode'], allowsNoLabel: true });
    const roles = ['prefill', 'decode', 'prefill-decode', 'encode'].map((role) =>
      endpoint(`${role} `, { [roleLabel]: role }),
    );
    expect(allowed(decoding, {}, [...roles, endpoint('none')])).toBe('decode prefill-decode none');
    expect(decoding.classOf(fakeItem())).toBe(decoding.classOf(fakeItem({ request: { model: 'llama' } })));
  });

  it.each<[LabelFilterOptions, string]>([
    [{} as never, 'labelFilter: label: expected the name of a label; got nothing'],
    [{ label: 'role', validValues: [] }, 'labelFilter: validValues: expected at least one entry; got an array of 0'],
    [
      { label: 'role', field: 'x', of: () => 'x' },
      'labelFilter: expected only one of "field", "validValues" and "of"; got an object with keys label, field, of',
    ],
  ])('refuses %j', (options, message) => {
    expect(() => labelFilter(options)).toThrow(message);
  });
});
