/** `headgate check` of files whose bands name groups of servers. */
import { describe, expect, it } from 'vitest';
import { checkSource } from '../../../src/gateway/cli/check-source.js';

const bands =
  '[{ priority: 100, endpoints: [own, { group: paid, after: 200ms }] }, { priority: -10, endpoints: [own] }]';

function check(priorityBands: string, more = '', detector = 'concurrency-detector') {
  const { faults, warnings, effective } = checkSource(`
listen: { port: 8080 }
upstreams:
- { id: gpu, url: "http://gpu", labels: { group: own } }
- { id: provider, url: "http://provider", labels: { group: paid }, metrics: none }
plugins: [{ type: ${detector} }]
flowControl: { saturationDetector: { pluginRef: ${detector} }, priorityBands: ${priorityBands}${more} }
`);
  const told = faults.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`);
  return { faults: told, warnings, effective };
}

const all = ', defaultPriorityBand: { endpoints: [own] }';

describe('groups of servers in a file', () => {
  it('stand in the settings in effect', () => {
    const { faults, effective } = check(bands, all);
    expect(faults).toEqual([]);
    const entries = effective.find(({ section }) => section === 'Priority bands')?.entries;
    expect(Object.fromEntries(entries ?? [])).toMatchObject({
      100: expect.stringMatching(/; own, then paid after 200 ms$/),
      '-10': expect.stringMatching(/; own$/),
    });
  });

  it.each([
    [
      '[{ priority: 1, endpoints: [own, piad] }]',
      'flowControl.priorityBands[0].endpoints[1]: expected one of the groups own, paid (label group of an upstream) (did you mean "paid"?); got "piad"',
    ],
    [
      '[{ priority: 1, endpoints: [] }]',
      'flowControl.priorityBands[0].endpoints: expected at least one group of endpoints; got an empty list',
    ],
    [
      '[{ priority: 1, endpoints: [{ group: own, after: 1s }] }]',
      'flowControl.priorityBands[0].endpoints[0].after: expected no after, because the first group is used at once; got "1s" (string)',
    ],
    [
      '[{ priority: 1, endpoints: [own, { group: paid, after: 1 }] }]',
      'flowControl.priorityBands[0].endpoints[1].after: expected a duration from "0s" up, such as "200ms"; got 1 (number)',
    ],
    [
      '[{ priority: 1, endpoints: [own, { grop: paid }] }]',
      'flowControl.priorityBands[0].endpoints[1].group: expected the name of a group of endpoints; got nothing',
    ],
  ])('%s is a fault', (priorityBands, fault) => {
    expect(check(priorityBands).faults).toContain(fault);
  });

  it('are warned of where a band names none while others do, or where servers of a group tell nothing', () => {
    expect(check(bands).warnings).toContain(
      'bands without endpoints may use every server, although others name groups: 0, any other, other negative ones',
    );
    expect(check(bands, all).warnings.join()).not.toContain('although others name groups');
    expect(check(bands, all, 'utilization-detector').warnings).toContain(
      'group paid gets nothing: its servers have no metrics, which utilization-detector needs',
    );
  });
});
