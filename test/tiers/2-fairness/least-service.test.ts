import { describe, expect, it } from 'vitest';
import { leastService } from '../../../src/index.js';
import { byPrompt } from './by-cost/backlogged.js';
import { FakeBand, serveAll } from './by-cost/fake-band.js';

describe('leastService', () => {
  it('lets a flow make up for the time in which it was idle', () => {
    const band = new FakeBand(leastService(byPrompt));
    for (let i = 0; i < 8; i++) band.add('a', { tokens: 100 });
    for (let i = 0; i < 4; i++) band.serve();
    for (let i = 0; i < 6; i++) band.add('late', { tokens: 100 });
    expect(serveAll(band)).toBe('late late late late a late a late a a');
  });

  it('rejects what is no price', () => {
    expect(() => leastService({ promptTokenPrice: 0 })).toThrowError('leastService: promptTokenPrice');
  });
});
