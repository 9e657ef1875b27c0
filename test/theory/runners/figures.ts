/** Jain's index, and where counters begin. */
import { expect, it } from 'vitest';
import { jainIndex } from '../../../src/base/jain-index.js';
import { Share, type ShareGroup } from '../../../src/tiers/2-fairness/by-cost/share.js';
import { VirtualCounters } from '../../../src/tiers/2-fairness/by-cost/virtual-counters.js';

export function jain({
  cases,
}: {
  readonly cases: readonly (readonly [values: readonly number[], index: number | null])[];
}): void {
  // Of nothing the formula says nothing; equal shares of nothing are equal here.
  it.each(cases)('of %j is %f', (values, index) => expect(jainIndex(values)).toBeCloseTo(index ?? 1, 8));
}

interface LiftCase {
  readonly name: string;
  readonly steps: readonly string[];
  readonly counters: Readonly<Record<string, number>>;
}

/** What may be said of a flow: the words, and what they do with a number in them. */
type Phrase = readonly [words: RegExp, act: (play: LiftPlay, share: Share, amount: number) => void];

const phrases: readonly Phrase[] = [
  [/^(?:charged|consumed) (\d+)$/, ({ order }, share, amount) => order.charge(share, amount)],
  [/^(?:settled|corrected) ([+-]?\d+)$/, ({ order }, share, amount) => order.correct(share, amount)],
  [/^refunded (\d+)$/, ({ order }, share, amount) => order.correct(share, -amount)],
  [/^(?:arrives|returns|queued)$/, (play, share) => play.activate(share, true)],
  // A state that is stated is entered as it is: nobody is lifted on the way to it.
  [
    /^queued at (\d+)$/,
    (play, share, amount) => {
      share.counter = amount;
      play.activate(share, false);
    },
  ],
  [
    /^(?:idle|in flight only) at (\d+)$/,
    (_, share, amount) => {
      share.counter = amount;
    },
  ],
  [/^(?:queue emptied|leaves)$/, (play, share) => play.deactivate(share)],
];

/** Does what the sentences of a case say, with the order that lifts as the paper does. */
class LiftPlay {
  readonly order = new VirtualCounters('vtc');
  private readonly shares = new Map<string, Share>();

  /** `A queued at 300, charged 20, C arrives`: a part without a name goes on about the flow before it. */
  play(step: string): void {
    if (step.endsWith(' (nothing queued)')) expect(this.order.size).toBe(0);
    let name: string | undefined;
    for (const part of step.replace(/ \(nothing queued\)$/, '').split(/,\s*/)) {
      const [, subject = name, counter, words = ''] = /^(?:([A-Z]\w*)(?:\((\d+)\))? )?(.*)$/.exec(part) ?? [];
      if (subject === undefined) throw new Error(`nobody knows whom "${step}" speaks of`);
      name = subject;
      const share = this.share(name);
      if (counter !== undefined) share.counter = Number(counter);
      this.say(share, words);
    }
  }

  counters(): Record<string, number> {
    return Object.fromEntries([...this.shares].map(([name, { counter }]) => [name, counter]));
  }

  private say(share: Share, words: string): void {
    for (const [pattern, act] of phrases) {
      const match = pattern.exec(words);
      if (match === null) continue;
      act(this, share, Number(match[1]));
      return;
    }
    throw new Error(`nobody knows the step "${words}"`);
  }

  activate(share: Share, isNew: boolean): void {
    if (share.isActive) return;
    this.order.activate(share, isNew);
    share.isActive = true;
  }

  deactivate(share: Share): void {
    share.isActive = false;
    this.order.deactivate(share);
  }

  private share(name: string): Share {
    let share = this.shares.get(name);
    if (share === undefined) {
      share = new Share(name, {} as ShareGroup);
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
