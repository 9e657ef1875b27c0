import { describe, expect, it } from 'vitest';
import { closest } from '../../../src/base/faults/did-you-mean.js';

const inCode = [
  'bands',
  'defaultBand',
  'fairness',
  'usageLimitPolicy',
  'endpointFilters',
  'recheckIntervalMs',
  'constraints',
];
const inFiles = [
  'priorityBands',
  'defaultPriorityBand',
  'fairnessPolicyRef',
  'usageLimitPolicyPluginRef',
  'endpointFilterPluginRefs',
  'recheckInterval',
  'constraintPluginRefs',
];

describe('the name that was meant', () => {
  it.each(inCode.map((name, index) => [name, inFiles[index] as string]))(
    'is the other spelling where %s and %s are taken for one another',
    (code, file) => {
      expect(closest(code, inFiles)).toBe(file);
      expect(closest(file, inCode)).toBe(code);
    },
  );

  it('may be written with hyphens and underscores', () => {
    expect(closest('default-band', inCode)).toBe('defaultBand');
    expect(closest('usage_limit_policy', inFiles)).toBe('usageLimitPolicyPluginRef');
  });

  it('is none for a word that only has the ending of a name', () => {
    expect(closest('policy', ['ms', 'refs'])).toBeUndefined();
  });
});
