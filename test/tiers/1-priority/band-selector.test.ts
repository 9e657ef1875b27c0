import { describe, expect, it } from 'vitest';
import { type BandOrder, fifoOrder, strictOrder } from '../../../src/tiers/1-priority/band-order.js';
import { BandSelector } from '../../../src/tiers/1-priority/band-selector.js';
import type { BandRegistry } from '../../../src/tiers/band-registry.js';
import type { Flow } from '../../../src/tiers/flow.js';
import type { PriorityBand } from '../../../src/tiers/priority-band.js';

/** A flow that is held back stands for its class. */
interface HeldFlow {
  readonly requestClass: string;
  readonly head: string;
}

class FakeBand {
  ready = 1;
  settings = { holdsFlows: true };
  heldFlows: HeldFlow[] = [];
  /** Classes whose first flow is out already. */
  readonly out = new Set<string>();
  readonly letInSoFar: string[] = [];
  readonly priority: number;

  constructor(priority: number) {
    this.priority = priority;
  }

  readonly aside = {
    heldClasses: () =>
      this.heldFlows.map(({ requestClass, head }) => ({
        requestClass,
        flows: { size: 1 },
        firsts: () => [{ requestClass, head, isHeld: !this.out.has(requestClass) }],
      })),
    waiting: { held: 0 },
  };

  setAside({ requestClass, head }: HeldFlow): void {
    this.heldFlows.push({ requestClass, head });
    this.aside.waiting.held++;
  }

  letIn({ requestClass }: { readonly requestClass: string }): void {
    this.letInSoFar.push(requestClass);
    this.heldFlows = this.heldFlows.filter((flow) => flow.requestClass !== requestClass);
    this.aside.waiting.held--;
  }
}

/**
 * The selector over three bands that wait, with a gate and endpoints that do as they are told, and what both were
 * asked.
 */
function make(order: BandOrder = strictOrder) {
  const [high, middle, low] = [new FakeBand(10), new FakeBand(0), new FakeBand(-5)];
  const bands = [high, middle, low];
  let waiting = bands;
  let due: FakeBand | undefined;
  const shares = { isUsed: false, due: () => due as unknown as PriorityBand | undefined };
  const registry = {
    shares,
    all: () => bands,
    allWaiting: () => waiting,
    get highestWaiting() {
      return waiting[0];
    },
  } as unknown as BandRegistry;
  const asked: unknown[] = [];
  const closed = new Set<number>();
  let readAtMs: number | undefined;
  const gate = {
    judgesApart: false,
    saturation: 0.25,
    read(nowMs: number) {
      readAtMs = nowMs;
      return true;
    },
    judge({ priority }: PriorityBand) {
      asked.push([priority, readAtMs]);
      return !closed.has(priority);
    },
    isOpenFor: ({ priority }: PriorityBand) => !closed.has(priority),
  };
  const full = new Set<string>();
  const unserved = new Set<string>();
  const looks: unknown[] = [];
  const places = {
    judgesRequests: false,
    hasRoom(requestClass: string | undefined, band: PriorityBand, nowMs: number, item?: unknown) {
      looks.push([requestClass, band.priority, nowMs, item]);
      return !full.has(requestClass as string);
    },
    isServed: (requestClass: string | undefined) => !unserved.has(requestClass as string),
  };
  const selector = new BandSelector(registry, gate, places, order);
  return {
    ...{ high, middle, low, gate, closed, asked, places, full, unserved, looks, selector, shares },
    letWait: (...some: FakeBand[]) => {
      waiting = some;
    },
    makeDue: (band: FakeBand) => {
      shares.isUsed = true;
      due = band;
    },
    holdBack: (band: FakeBand, requestClass: string) =>
      selector.holdBack({ band, requestClass, head: `first of ${requestClass}` } as unknown as Flow),
    next: (floor = Number.NEGATIVE_INFINITY) => selector.next(7, floor)?.priority,
  };
}

/** Puts the lowest of the open bands first, and keeps what it was given. */
function lowestFirst() {
  const given: unknown[] = [];
  const priorityOf = ({ priority }: PriorityBand): number => priority;
  const order: BandOrder = {
    needsOldest: false,
    choose(open, all, saturation) {
      given.push([open.map(priorityOf), all.map(priorityOf), saturation]);
      if (open.length === 0) throw new Error('an order chooses among one band or more');
      return open.at(-1) as PriorityBand;
    },
  };
  return { order, given };
}

describe('under strict priority', () => {
  it('the highest band that waits goes while the gate is open for it, and no other while it is closed', () => {
    const { next, closed, asked } = make();
    expect([next(), asked]).toEqual([10, [[10, 7]]]);
    closed.add(10);
    expect(next()).toBeUndefined();
  });

  it('the gate is not read when nothing waits above the floor', () => {
    const { next, letWait, asked } = make();
    expect(next(10)).toBeUndefined();
    letWait();
    expect(next()).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('the selector is plain, until shares or another order decide', () => {
    const { selector, shares } = make();
    expect([selector.isPlain, selector.isStrict]).toEqual([true, true]);
    shares.isUsed = true;
    selector.configure(strictOrder);
    expect([selector.isPlain, selector.isStrict]).toEqual([false, false]);
    shares.isUsed = false;
    selector.configure(fifoOrder);
    expect([selector.isPlain, selector.isStrict]).toEqual([false, false]);
    selector.configure(strictOrder);
    expect([selector.isPlain, selector.isStrict]).toEqual([true, true]);
    expect(make(fifoOrder).selector.isPlain).toBe(false);
  });
});

describe('under another order', () => {
  it('the order chooses among the open bands, and is told all bands and the saturation', () => {
    const { order, given } = lowestFirst();
    const { next } = make(order);
    expect(next()).toBe(-5);
    expect(given).toEqual([[[10, 0, -5], [10, 0, -5], 0.25]]);
  });

  it('bands at the floor and below, bands with nothing ready and bands whose gate is closed do not compete', () => {
    const { order, given } = lowestFirst();
    const { next, middle, closed } = make(order);
    expect(next(-5)).toBe(0);
    middle.ready = 0;
    expect(next(-5)).toBe(10);
    closed.add(-5);
    expect(next()).toBe(10);
    expect(given.map((told) => (told as unknown[])[0])).toEqual([[10, 0], [10], [10]]);
  });

  it('closed for the highest is closed for all, unless bands are judged apart', () => {
    const { next, closed, gate } = make(lowestFirst().order);
    closed.add(10);
    expect(next()).toBeUndefined();
    gate.judgesApart = true;
    expect(next()).toBe(-5);
    for (const priority of [0, -5]) closed.add(priority);
    expect(next()).toBeUndefined();
  });

  it('a band that is due by its share goes before the choice of the order', () => {
    const { order, given } = lowestFirst();
    const { next, makeDue, middle } = make(order);
    makeDue(middle);
    expect([next(), given]).toEqual([0, []]);
  });
});

describe('a flow whose first request has nowhere to go', () => {
  it('is held back where its band lets others pass, and not otherwise', () => {
    const { selector, holdBack, middle, high } = make();
    middle.settings.holdsFlows = false;
    expect([holdBack(middle, 'a'), middle.aside.waiting.held, selector.isPlain]).toEqual([false, 0, true]);
    expect([holdBack(high, 'a'), high.aside.waiting.held, selector.isPlain]).toEqual([true, 1, false]);
    selector.configure(strictOrder);
    expect(selector.isPlain).toBe(false);
  });

  it('lets the band below go when its own has nothing else ready', () => {
    const { selector, holdBack, high, full, next } = make();
    full.add('a');
    holdBack(high, 'a');
    high.ready = 0;
    expect([selector.highestReady?.priority, next()]).toEqual([0, 0]);
    high.ready = 2;
    expect([selector.highestReady?.priority, next()]).toEqual([10, 10]);
  });

  it('is let out once there is room for its class, or no endpoint serves it any more', () => {
    const { holdBack, high, full, unserved, next, selector, looks } = make();
    for (const name of ['a', 'b', 'c']) {
      full.add(name);
      holdBack(high, name);
    }
    next();
    expect([high.letInSoFar, selector.isPlain]).toEqual([[], false]);
    expect(looks[0]).toEqual(['a', 10, 7, undefined]);
    full.delete('b');
    next();
    expect(high.letInSoFar).toEqual(['b']);
    unserved.add('c');
    next();
    expect([high.letInSoFar, selector.isPlain]).toEqual([['b', 'c'], false]);
    full.delete('a');
    next();
    expect([high.letInSoFar, selector.isPlain]).toEqual([['b', 'c', 'a'], true]);
  });

  it('waits while the first of its class is out already', () => {
    const { holdBack, high, next, looks } = make();
    holdBack(high, 'a');
    high.out.add('a');
    next();
    expect([high.letInSoFar, looks]).toEqual([[], []]);
    high.out.delete('a');
    next();
    expect(high.letInSoFar).toEqual(['a']);
  });

  it('is judged by its first request where the class alone does not tell', () => {
    const { holdBack, high, places, looks, next } = make();
    places.judgesRequests = true;
    holdBack(high, 'a');
    next();
    expect(looks).toEqual([['a', 10, 7, 'first of a']]);
  });

  it('leaves the selector as it was once nothing is held: not plain where another order decides', () => {
    const { holdBack, high, next, selector } = make(fifoOrder);
    holdBack(high, 'a');
    next();
    expect([high.letInSoFar, selector.isPlain]).toEqual([['a'], false]);
  });

  it('of one band does not keep another band from letting out its own', () => {
    const { holdBack, high, low, full, next } = make();
    full.add('a');
    holdBack(high, 'a');
    holdBack(low, 'b');
    next();
    expect([high.letInSoFar, low.letInSoFar]).toEqual([[], ['b']]);
  });
});
