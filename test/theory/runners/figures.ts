/** Jain's index, and where counters begin. */
import { expect, it } from 'vitest';
import { jainIndex } from '../../../src/base/jain-index.js';
import { Share, type Siblings } from '../../../src/tiers/2-fairness/by-cost/share.js';
import { VirtualCounters } from '../../../src/tiers/2-fairness/by-cost/virtual-counters.js';

export function jain({ cases }: { readonly cases: readonly (readonly [values: readonly number[], index: number | null])[] }): void {
  // Of nothing the formula says nothing; equal shares of nothing are equal here.
  it.each(cases)('of %j is %f', (values, index) => expect(jainIndex(values)).toBeCloseTo(index ?? 1, 8));
}

interface LiftCase {
  readonly name: string;
  readonly steps: readonly string[];
  readonly counters: Readonly<Record<string, number>>;
}

/** Does what the sentences of a case say, with the order that lifts as the paper does. */
class LiftPlay {
  private readonly order = new VirtualCounters('vtc');
  private readonly shares = new Map<string, Share>();

  play(step: string): void {
    let name = '';
    for (const part of step.replace(/\(nothing queued\)/, '').split(/,\s*/)) {
      const match = /^(?:([A-Z])(?:\((\d+)\))? )?(.*?)\s*$/.exec(part);
      name = match?.[1] ?? name;
      const share = this.share(name);
      if (match?.[2] !== undefined) share.counter = Number(match[2]);
      this.say(share, match?.[3] ?? '');
    }
  }

  counters(): Record<string, number> {
    return Object.fromEntries([...this.shares].map(([name, { counter }]) => [name, counter]));
  }

  private say(share: Share, words: string): void {
    const amount = Number(/\d+/.exec(words)?.[0] ?? 0);
    if (words.startsWith('charged')) this.order.charge(share, amount);
    else if (words === 'queue emptied') this.deactivate(share);
    else if (words === 'arrives') this.activate(share);
    else if (words.startsWith('queued')) {
      if (amount > 0) share.counter = amount;
      this.activate(share);
    } else if (/^(idle|in flight only) at/.test(words)) share.counter = amount;
    else throw new Error(`nobody knows the step "${words}"`);
  }

  private activate(share: Share): void {
    this.order.activate(share, true);
    share.isActive = true;
  }

  private deactivate(share: Share): void {
    share.isActive = false;
    this.order.deactivate(share);
  }

  private share(name: string): Share {
    let share = this.shares.get(name);
    if (share === undefined) {
      share = new Share(name, {} as Siblings);
      this.shares.set(name, share);
    }
    return share;
  }
}

export function lift({ cases }: { readonly cases: readonly LiftCase[] }): void {
  it.each(cases)('$name', ({ steps, counters }) => {
    const play = new LiftPlay();
    for (const step of steps) play.play(step);
    expect(play.counters()).toEqual(counters);
  });
}
