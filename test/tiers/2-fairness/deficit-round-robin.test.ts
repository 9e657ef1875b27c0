import { describe, expect, it } from 'vitest';
import { deficitRoundRobin, type FlowFairnessPolicy } from '../../../src/index.js';
import { cpuMsOf } from '../../support/cpu-time.js';
import { byPrompt } from './by-cost/backlogged.js';
import { FakeBand, usage } from './by-cost/fake-band.js';

function serve(band: FakeBand, count: number): string {
  return Array.from({ length: count }, () => band.serve()?.flow.fairnessId ?? '-').join(' ');
}

function make(quantum?: number): FlowFairnessPolicy {
  return deficitRoundRobin({ ...byPrompt, quantum });
}

describe('deficitRoundRobin', () => {
  it('lets a flow go on until its quantum is used up, and by the request that exceeds it', () => {
    const band = new FakeBand(make(25));
    for (let i = 0; i < 6; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 10 });
    expect(serve(band, 12)).toBe('a a a b b b a a b b a b');
  });

  it('passes the turn on without a second quantum when the last request of the turn is cancelled', () => {
    const band = new FakeBand(make(100));
    for (let i = 0; i < 2; i++) for (const name of ['a', 'b', 'c']) band.add(name, { tokens: 10 });
    expect(serve(band, 1)).toBe('a');
    band.cancel('a', 0);
    expect(serve(band, 1)).toBe('b');
    band.add('a', { tokens: 10 });
    expect(serve(band, 4)).toBe('b c c a');
  });

  it('keeps what a flow owes, and not what it has left, when it falls idle', () => {
    const band = new FakeBand(make(100));
    band.add('a', { tokens: 250 });
    band.add('b', { tokens: 10 });
    band.add('b', { tokens: 10 });
    expect(serve(band, 2)).toBe('a b');
    for (let i = 0; i < 2; i++) band.add('a', { tokens: 100 });
    for (let i = 0; i < 30; i++) band.add('b', { tokens: 10 });
    // b has 90 left of this round and 100 of the next, before a has paid what it owes.
    expect(serve(band, 20)).toBe(`${'b '.repeat(19)}a`);
  });

  it('does not loop for costs that are a million times the quantum', () => {
    const band = new FakeBand(make(1));
    for (let i = 0; i < 100; i++) for (const name of ['a', 'b', 'c']) band.add(name, { tokens: 1e9 });
    const spentMs = cpuMsOf(() => expect(serve(band, 6)).toBe('a b c a b c'));
    // Walking through the rounds would take minutes.
    expect(spentMs).toBeLessThan(3000);
  });

  it('serves flows by weight', () => {
    const band = new FakeBand(make(10), { weights: { a: 3 } });
    for (let i = 0; i < 20; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 10 });
    expect(serve(band, 8)).toBe('a a a b a a a b');
  });

  it('puts a misprediction right, while the flow waits and after it has left', () => {
    const band = new FakeBand(make(10));
    for (let i = 0; i < 4; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 10 });
    const first = band.serve();
    if (first === undefined) throw new Error('nothing was served');
    band.settle(first, usage(40));
    expect(serve(band, 5)).toBe('b b b b a');
  });

  it('finds a quantum that pays for every request, whatever the unit', () => {
    for (const unit of [0.001, 1, 1e6]) {
      const band = new FakeBand(make());
      for (let i = 0; i < 3000; i++) for (const name of ['a', 'b']) band.add(name, { tokens: unit * (name === 'a' ? 1 : 4) });
      const received = { a: 0, b: 0 };
      for (let i = 0; i < 2500; i++) {
        const served = band.serve();
        if (served !== undefined) received[served.flow.fairnessId as 'a' | 'b'] += served.item.tokens;
      }
      expect(Math.abs(received.a - received.b)).toBeLessThanOrEqual(12 * Math.max(unit, 1));
    }
  });

  it('refuses a quantum that pays for nothing', () => {
    for (const quantum of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => make(quantum)).toThrowError('deficitRoundRobin: quantum');
  });
});
