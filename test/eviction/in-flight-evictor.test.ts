import { describe, expect, it } from 'vitest';
import type { EvictorSettings } from '../../src/eviction/eviction-policy.js';
import { type Candidate, type Gauge, InFlightEvictor } from '../../src/eviction/in-flight-evictor.js';
import { priorityThenTime, sheddableOnly } from '../../src/index.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';

interface Running {
  readonly fairnessId: string;
  readonly priority: number;
  readonly dispatchedAtMs: number;
  readonly tokens: number;
  readonly usage: { readonly promptTokens: number; readonly completionTokens: number };
  readonly hasAnswer: boolean;
  readonly endpoint: undefined;
  candidacy: Candidate<Running> | undefined;
}

function running(priority: number, dispatchedAtMs = 0): Running {
  const usage = { promptTokens: 0, completionTokens: 0 };
  const rest = { tokens: 0, usage, hasAnswer: false, endpoint: undefined, candidacy: undefined };
  return { fairnessId: 'batch', priority, dispatchedAtMs, ...rest };
}

function band(priority: number, ceiling = 1): PriorityBand {
  return { priority, ceiling } as PriorityBand;
}

/** A pool that reads so for every band, or by band. */
function gauge(reading: number | undefined | ((priority: number) => number | undefined), kept?: number[][]): Gauge {
  return {
    readingFor({ priority }) {
      const saturation = typeof reading === 'function' ? reading(priority) : reading;
      return { saturation: saturation ?? 1, isFailing: saturation === undefined };
    },
    reserve: kept && { add: (...each) => void kept.push(each) },
  };
}

function make(changes: Partial<EvictorSettings> = {}) {
  const faults: string[] = [];
  const defaults = {
    filter: sheddableOnly(),
    ordering: priorityThenTime(),
    maxPerDecision: 8,
    graceMs: 0,
    timeoutMs: 1000,
  };
  const evictor = new InFlightEvictor<Running>(
    { ...defaults, ...changes },
    { pluginFailed: (kind, type, error) => faults.push(`${kind} ${type}: ${error}`) },
  );
  const track = (...all: readonly Running[]): void => {
    for (const each of all) evictor.track(each);
  };
  return { evictor, faults, track, defaults };
}

describe('who may be evicted', () => {
  it('is decided by the filter, once, at the dispatch', () => {
    const { evictor } = make();
    expect([evictor.track(running(-1)), evictor.track(running(0))]).toEqual([true, false]);
    expect(evictor.victims([band(5)], gauge(1), 2, 0).map(({ priority }) => priority)).toEqual([-1]);
  });

  it.each([['yes'], [1], [undefined]])('is nobody of whom the filter answers %j, which is reported', (answer) => {
    const filter = { type: 'odd', accepts: () => answer as unknown as boolean };
    const { evictor, faults } = make({ filter });
    expect(evictor.track(running(-1))).toBe(false);
    expect(faults).toEqual([
      expect.stringContaining('evictionFilter odd: TypeError: accepts must return true or false'),
    ]);
  });

  it('is decided by the new filter after a change, for what is dispatched from then on', () => {
    const { evictor, track, defaults } = make();
    const before = running(-1);
    track(before);
    evictor.configure({ ...defaults, filter: { type: 'nobody', accepts: () => false } });
    track(running(-1));
    expect(evictor.victims([band(5)], gauge(3), 1, 0)).toEqual([before]);
  });
});

describe('victims', () => {
  it('are of a lower priority than the band that they leave for, and the lowest of all first', () => {
    const { evictor, faults, track } = make();
    const [low, middle] = [running(-9), running(-5)];
    track(low, middle, running(-4), running(-3));
    expect(evictor.victims([band(-4)], gauge(40), 4, 0)).toEqual([low, middle]);
    expect(faults).toEqual([]);
  });

  it('are found below the band, whatever else runs', () => {
    for (const order of [
      [-9, -2],
      [-2, -9],
    ]) {
      const { evictor, track } = make();
      track(...order.map((priority) => running(priority)));
      expect(evictor.victims([band(-5)], gauge(1), 2, 0).map(({ priority }) => priority)).toEqual([-9]);
    }
  });

  it('are the newest where the order fails, and nobody where the filter does', () => {
    const broken = (): never => {
      throw new Error('broken');
    };
    const { evictor, faults, track, defaults } = make({ ordering: { type: 'order', compare: broken } });
    track(running(-1, 1), running(-1, 2));
    expect(evictor.victims([band(0)], gauge(1), 2, 0).map(({ dispatchedAtMs }) => dispatchedAtMs)).toEqual([2]);
    evictor.configure({
      ...defaults,
      filter: { type: 'filter', accepts: broken },
      ordering: { type: 'later', compare: broken },
    });
    expect(evictor.track(running(-1))).toBe(false);
    expect(faults).toEqual(['evictionOrdering order: Error: broken', 'evictionFilter filter: Error: broken']);
    const odd = make();
    odd.track(running(-1, 1), running(-1, 2));
    odd.evictor.configure({ ...defaults, ordering: { type: 'later', compare: broken } });
    odd.evictor.victims([band(0)], gauge(1), 2, 0);
    expect(odd.faults).toEqual(['evictionOrdering later: Error: broken']);
  });

  it('are the newest where the order says nothing', () => {
    const { evictor, track } = make({ maxPerDecision: 2, ordering: { type: 'none', compare: () => 0 } });
    const all = [1, 2, 3].map((atMs) => running(-1, atMs));
    track(...all);
    expect(evictor.victims([band(0)], gauge(1.8), 3, 0)).toEqual([all[2], all[1]]);
  });

  it.each([['first'], [Number.NaN]])('are the newest where the order answers %j, which is reported', (order) => {
    const { evictor, faults, track } = make({ ordering: { type: 'odd', compare: () => order as number } });
    const all = [1, 2].map((atMs) => running(-1, atMs));
    track(...all);
    expect(evictor.victims([band(0)], gauge(1), 2, 0)).toEqual([all[1]]);
    expect(faults[0]).toContain('evictionOrdering odd: TypeError: compare must return a number');
  });

  it('leave for the highest band that saturation holds back', () => {
    const kept: number[][] = [];
    const { evictor, track } = make();
    track(running(-9), running(-9));
    const waiting = [band(9, 2), band(7, 0), band(6, -1), band(5, 1), band(3, 0.2)];
    expect(evictor.victims(waiting, gauge(1, kept), 2, 40)).toHaveLength(1);
    expect(kept).toEqual([[5, 0.5, 40]]);
  });

  it('leave for no band whose saturation nobody knows', () => {
    const { evictor, track } = make();
    track(running(-9));
    expect(evictor.victims([band(9), band(5)], gauge(undefined), 1, 0)).toEqual([]);
    expect(
      evictor.victims(
        [band(9), band(5)],
        gauge((priority) => (priority === 5 ? 1 : undefined)),
        1,
        0,
      ),
    ).toHaveLength(1);
  });

  it('are none when nothing runs that a waiting band stands above', () => {
    const { evictor, track } = make();
    expect(evictor.victims([band(9)], gauge(1), 1, 0)).toEqual([]);
    track(running(-5));
    expect(evictor.victims([band(-5)], gauge(1), 1, 0)).toEqual([]);
    expect(evictor.victims([], gauge(1), 1, 0)).toEqual([]);
  });

  it('are evicted once, and none that has ended', () => {
    const { evictor, track } = make();
    const [victim, ended] = [running(-1, 1), running(-1, 2)];
    track(victim, ended);
    expect(evictor.untrack(ended, 0)).toBe(false);
    expect(evictor.victims([band(5)], gauge(2), 1, 0)).toEqual([victim]);
    // Until it has left nobody is asked; afterwards nobody is left.
    expect(evictor.settlesAtMs).toBe(1000);
    const late = running(-1, 3);
    track(late);
    expect(evictor.victims([band(5)], gauge(9), 1, 5)).toEqual([]);
    expect(evictor.untrack(victim, 10)).toBe(true);
    expect(evictor.victims([band(5)], gauge(2), 1, 10)).toEqual([late]);
    evictor.untrack(late, 11);
    expect(evictor.victims([band(5)], gauge(2), 1, 11)).toEqual([]);
  });

  it('are remembered by priority, also beyond a hundred priorities that came and went', () => {
    const { evictor, track } = make();
    const kept = running(-2);
    track(kept);
    for (let priority = -3; priority > -200; priority--) {
      const brief = running(priority);
      track(brief);
      evictor.untrack(brief, 0);
    }
    expect(evictor.evictable.size).toBeLessThanOrEqual(64);
    expect(evictor.victims([band(5)], gauge(9), 1, 0)).toEqual([kept]);
  });

  it('are those of the evictor that saw their dispatch: another one loses nobody by their end', () => {
    const [before, now] = [make(), make()];
    const [old, own] = [running(-1), running(-1)];
    before.track(old);
    now.track(own);
    expect(now.evictor.untrack(old, 0)).toBe(false);
    expect(now.evictor.victims([band(5)], gauge(9), 2, 0)).toEqual([own]);
  });

  it('are as many as the changed settings allow', () => {
    const { evictor, track, defaults } = make({ maxPerDecision: 1 });
    track(running(-1), running(-1), running(-1));
    evictor.configure({ ...defaults, maxPerDecision: 2 });
    expect(evictor.victims([band(5)], gauge(9), 3, 0)).toHaveLength(2);
  });
});

describe('the figures', () => {
  it('are what the band lacks that lacks most, and what is coming', () => {
    const { evictor, track } = make();
    track(running(-1));
    expect(evictor.figures([], gauge(1))).toEqual({ target: 0, pending: 0 });
    expect(evictor.figures([band(5, 0.5), band(1, 0.25), band(0, 2)], gauge(1))).toEqual({ target: 0.75, pending: 0 });
    expect(evictor.figures([band(5, 0.5)], gauge(undefined))).toEqual({ target: 0, pending: 0 });
    evictor.victims([band(5)], gauge(1), 4, 0);
    expect(evictor.figures([], gauge(1))).toEqual({ target: 0, pending: 0.25 });
  });
});
