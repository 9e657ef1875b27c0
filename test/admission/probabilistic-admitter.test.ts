import { describe, expect, it } from 'vitest';
import { probabilisticAdmitter } from '../../src/admission/probabilistic-admitter.js';
import { seededRandom } from '../../src/base/seeded-random.js';
import { defaultRegistry } from '../../src/index.js';
import { admissionView } from '../support/pools.js';
import { refusalOf, sheddable, standard } from './support.js';

describe('probabilisticAdmitter', () => {
  it('rejects with probability k · saturation^power', () => {
    // kv 0.16 of 0.8 is a saturation of 0.2, and 300 · 0.2^5 is 0.096.
    const view = admissionView([{ kv: 0.16 }]);
    expect(refusalOf(probabilisticAdmitter({ random: () => 0.095 }).admit({}, sheddable, view)).reason).toBe(
      'saturation 0.20: 9.6 % of sheddable requests are rejected',
    );
    expect(probabilisticAdmitter({ random: () => 0.097 }).admit({}, sheddable, view)).toBe('admit');
  });

  it('admits at the probability itself: of the numbers from 0 to less than 1, that share is below it', () => {
    const at = (random: number) =>
      probabilisticAdmitter({ k: 1, power: 1, random: () => random }).admit({}, sheddable, half);
    const half = admissionView([{ kv: 0.4 }]);
    expect([at(0.5), at(0.499) === 'admit']).toEqual(['admit', false]);
  });

  it('rejects about that share of many', () => {
    const policy = probabilisticAdmitter({ random: seededRandom(7) });
    const view = admissionView([{ kv: 0.16 }]);
    const refused = Array.from({ length: 10_000 }, () => policy.admit({}, sheddable, view)).filter(
      (answer) => answer !== 'admit',
    );
    expect(refused.length / 10_000).toBeCloseTo(0.096, 2);
  });

  it('rejects all of them well before the pool is full', () => {
    const policy = probabilisticAdmitter({ random: () => 0.999_999 });
    expect(refusalOf(policy.admit({}, sheddable, admissionView([{ kv: 0.272 }])))).toBeDefined();
  });

  it('never touches priority 0 and more, nor asks for a random number for them', () => {
    const policy = probabilisticAdmitter({
      random: () => {
        throw new Error('not needed');
      },
    });
    expect(policy.admit({}, standard, admissionView([{ kv: 1 }]))).toBe('admit');
    expect(policy.admit({}, sheddable, admissionView([]))).toBe('admit');
  });

  it('takes an endpoint without a report for full', () => {
    expect(
      refusalOf(
        probabilisticAdmitter({ random: () => 0.99 }).admit({}, sheddable, admissionView([{ hasReported: false }])),
      ),
    ).toBeDefined();
  });

  it('needs a source of randomness, and thresholds above 0', () => {
    expect(() => probabilisticAdmitter({} as never)).toThrow(
      'random: expected a function that returns a number from 0 to less than 1; got nothing',
    );
    const wrong = { queueDepthThreshold: 0, kvCacheUtilThreshold: 0, power: 0, k: 0, random: Math.random };
    expect(() => probabilisticAdmitter(wrong)).toThrow('probabilisticAdmitter: 4 problems');
    expect(probabilisticAdmitter({ random: Math.random }).type).toBe('probabilistic-admitter');
  });

  it('made by a configuration file decides the same each time', () => {
    const decide = () => {
      const policy = defaultRegistry().create('probabilistic-admitter', { k: 1, power: 1 });
      if (!('admit' in policy)) throw new Error('expected an admission policy');
      return Array.from({ length: 50 }, () => policy.admit({}, sheddable, admissionView([{ kv: 0.4 }])) === 'admit');
    };
    expect(decide()).toEqual(decide());
    expect(new Set(decide()).size).toBe(2);
  });
});
