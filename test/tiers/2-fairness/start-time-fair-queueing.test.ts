import { describe, expect, it } from 'vitest';
import { startTimeFairQueueing } from '../../../src/index.js';
import { byPrompt } from './by-cost/backlogged.js';
import { FakeBand, serveAll } from './by-cost/fake-band.js';

describe('startTimeFairQueueing', () => {
  it('gives no credit for idle time', () => {
    const band = new FakeBand(startTimeFairQueueing(byPrompt));
    for (let i = 0; i < 10; i++) band.add('a', { tokens: 100 });
    for (let i = 0; i < 5; i++) band.serve();
    for (let i = 0; i < 10; i++) band.add('late', { tokens: 100 });
    expect(serveAll(band)).toBe('late a late a late a late a late a late late late late late');
  });

  it('rejects what is no price', () => {
    expect(() => startTimeFairQueueing({ promptTokenPrice: 0 })).toThrowError(
      'startTimeFairQueueing: promptTokenPrice',
    );
  });
});
