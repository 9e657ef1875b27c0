import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/base/seeded-random.js';

describe('seededRandom', () => {
  it('gives numbers from 0 to less than 1, evenly, and others for another seed', () => {
    const random = seededRandom(1);
    const numbers = Array.from({ length: 10_000 }, random);
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...numbers)).toBeLessThan(1);
    expect(numbers.reduce((sum, each) => sum + each) / numbers.length).toBeCloseTo(0.5, 1);
    expect(seededRandom(2)()).not.toBe(seededRandom(1)());
  });
});
