import { describe, expect, it } from 'vitest';
import type { ItemView } from '../../../src/index.js';
import { earliestHead } from '../../../src/tiers/2-fairness/earliest-head.js';
import { Random } from '../../property/random.js';
import { FakeBand } from './by-cost/fake-band.js';

/** Least tokens first, then by arrival. */
function byTokens(a: ItemView, b: ItemView): number {
  return a.tokens - b.tokens || a.sequence - b.sequence;
}

function make(): FakeBand {
  return new FakeBand(earliestHead('by-tokens', byTokens));
}

/** The flow's own queue in the same order, so that its head is its first. */
function add(band: FakeBand, name: string, tokens: number): void {
  band.add(name, { tokens });
  band.flow(name).queue.sort(byTokens);
  band.selector.itemAdded?.(band.flow(name), band.flow(name).head as ItemView);
}

const next = (band: FakeBand): string | undefined => band.selector.pick(0)?.fairnessId;

describe('earliestHead', () => {
  it('picks nobody while nothing waits', () => {
    expect(next(make())).toBeUndefined();
    expect(earliestHead('by-tokens', byTokens).type).toBe('by-tokens');
  });

  it('picks the flow whose first request comes first, and of equals the one that came first', () => {
    const band = make();
    for (const [name, tokens] of [
      ['a', 5],
      ['b', 3],
      ['c', 3],
    ] as const) {
      add(band, name, tokens);
    }
    expect([1, 2, 3].map(() => band.serve()?.flow.fairnessId)).toEqual(['b', 'c', 'a']);
    expect(next(band)).toBeUndefined();
  });

  it('looks anew at a flow that got another first request, or lost its first', () => {
    const band = make();
    add(band, 'a', 5);
    add(band, 'b', 3);
    add(band, 'a', 1);
    expect(next(band)).toBe('a');
    band.cancel('a', 0);
    expect(next(band)).toBe('b');
    add(band, 'b', 9);
    band.serve();
    expect(next(band)).toBe('a');
  });

  it('leaves out a flow that is held back until it is let out', () => {
    const band = make();
    add(band, 'a', 1);
    add(band, 'b', 2);
    band.hold('a');
    expect(next(band)).toBe('b');
    add(band, 'a', 0);
    expect(next(band)).toBe('b');
    band.releaseHeld('a');
    expect(next(band)).toBe('a');
  });

  it('takes no notice of flows that never wait', () => {
    const band = make();
    band.pass('a');
    band.selector.flowDeactivated?.(band.flow('a'));
    expect(next(band)).toBeUndefined();
  });

  it('picks what a sorted list of heads says, through a long history', () => {
    const random = new Random(4);
    const band = make();
    for (let step = 0; step < 2000; step++) {
      const name = `f${random.int(6)}`;
      const flow = band.flow(name);
      const dice = random.next();
      if (dice < 0.5) add(band, name, random.int(20));
      else if (dice < 0.7) band.serve();
      else if (dice < 0.8 && flow.waiting > 0) band.cancel(name, random.int(flow.waiting));
      else if (dice < 0.9) band.hold(name);
      else band.releaseHeld(name);
      const heads = [...band.activeFlows()].map(({ head }) => head as ItemView).sort(byTokens);
      expect(next(band)).toBe(heads[0]?.fairnessId);
    }
  });
});
