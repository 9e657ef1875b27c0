import { describe, expect, it } from 'vitest';
import {
  leastAttainedService,
  rangeNormalize,
  serviceAt,
} from '../../../src/tiers/2-fairness/least-attained-service.js';
import { Program } from '../../../src/tiers/2-fairness/program-table.js';
import { turnOf, turnPriority } from '../../../src/tiers/2-fairness/turn-priority.js';
import type { FlowView } from '../../../src/types/index.js';
import { fakeItem } from '../../support/fake-item.js';

interface Waiting {
  readonly name: string;
  readonly atMs?: number;
  readonly sequence?: number;
  /** Nothing waits in it. */
  readonly isEmpty?: boolean;
  readonly program?: Partial<Program>;
}

function flowOf({ name, atMs = 0, sequence = 0, isEmpty = false }: Waiting): FlowView {
  const head = isEmpty ? undefined : fakeItem({ fairnessId: name, enqueuedAtMs: atMs, sequence });
  return { fairnessId: name, priority: 0, weight: 1, waiting: isEmpty ? 0 : 1, waitingBytes: 0, head };
}

function programOf(fairnessId: string, figures: Partial<Program> = {}): Program {
  return Object.assign(new Program(fairnessId), figures);
}

/** The fairness ID that goes next; `program` is known of those that have one. */
function picked(strategy: ReturnType<typeof turnPriority>, waiting: readonly Waiting[], nowMs = 0): string | undefined {
  const programs = new Map(waiting.map(({ name, program }) => [name, program && programOf(name, program)]));
  return strategy.pick(waiting.map(flowOf), ({ fairnessId }) => programs.get(fairnessId), nowMs)?.fairnessId;
}

describe('turnPriority', () => {
  const strategy = turnPriority({ timeWeight: 1, inactivityMs: 1000 });
  const deep = (dispatched: number) => ({ program: { dispatched, lastEndedAtMs: 0 } });

  it('lets the session with the most turns go, and whom it does not know at its first', () => {
    expect(
      picked(strategy, [
        { name: 'a', ...deep(2) },
        { name: 'b', ...deep(5) },
        { name: 'c', ...deep(4) },
        { name: 'new' },
      ]),
    ).toBe('b');
    expect(picked(strategy, [{ name: 'new' }, { name: 'a', ...deep(1) }])).toBe('a');
    expect(picked(strategy, [])).toBeUndefined();
  });

  it('leaves out flows of which nothing waits', () => {
    expect(picked(strategy, [{ name: 'a', isEmpty: true, ...deep(9) }, { name: 'b' }])).toBe('b');
  });

  it('adds what a second of waiting is worth, and nothing for a clock that went back', () => {
    const endless = turnPriority({ timeWeight: 1, inactivityMs: 0 });
    const pick = (oldAtMs: number) =>
      picked(
        endless,
        [
          { name: 'deep', atMs: 5000, ...deep(2) },
          { name: 'old', atMs: oldAtMs },
        ],
        5000,
      );
    // Two turns ahead are worth two seconds.
    expect([pick(3001), pick(2999)]).toEqual(['deep', 'old']);
    expect(
      picked(
        endless,
        [
          { name: 'future', atMs: 9000, ...deep(1) },
          { name: 'now', atMs: 5000 },
        ],
        5000,
      ),
    ).toBe('future');
  });

  it('lets of equals the one go that came first, by time and then by arrival, wherever it stands', () => {
    const flat = turnPriority({ timeWeight: 0, inactivityMs: 0 });
    const [early, late, later] = [
      { name: 'early', atMs: 1, sequence: 9 },
      { name: 'late', atMs: 2, sequence: 1 },
      { name: 'later', atMs: 2, sequence: 2 },
    ];
    for (const waiting of [
      [early, late, later],
      [later, late, early],
      [late, early, later],
    ]) {
      expect(picked(flat, waiting, 10)).toBe('early');
    }
    expect(picked(flat, [later, late], 10)).toBe('late');
    expect(picked(flat, [late, later], 10)).toBe('late');
    // Depth goes before arrival.
    expect(picked(flat, [{ ...late, ...deep(3) }, early], 10)).toBe('late');
  });

  it('counts turns from the last pause that was longer than the inactivity', () => {
    const ended = (lastEndedAtMs: number, inFlight = 0) => programOf('s', { dispatched: 7, lastEndedAtMs, inFlight });
    expect([turnOf(ended(0), 1000, 1000), turnOf(ended(0), 1001, 1000)]).toEqual([8, 1]);
    expect(turnOf(ended(0, 1), 5000, 1000)).toBe(8);
    expect(turnOf(ended(0), 1e9, 0)).toBe(8);
    expect(turnOf(undefined, 0, 1000)).toBe(1);
  });

  it.each(['default-flow', '\u0000overflow-7'])('gives no depth to %j, which many share', (fairnessId) => {
    expect(turnOf(programOf(fairnessId, { dispatched: 7, lastEndedAtMs: 0 }), 0, 1000)).toBe(1);
  });

  it('gives depth to a name that only ends like a shared one', () => {
    expect(turnOf(programOf('mine\u0000', { dispatched: 7, lastEndedAtMs: 0 }), 0, 1000)).toBe(8);
  });

  it('begins to count anew with the first request after a pause', () => {
    const program = programOf('s', { dispatched: 7, lastEndedAtMs: 0 });
    strategy.dispatching?.(program, fakeItem({ enqueuedAtMs: 1000 }));
    expect(program.dispatched).toBe(7);
    strategy.dispatching?.(program, fakeItem({ enqueuedAtMs: 1001 }));
    expect(program.dispatched).toBe(0);
  });
});

describe('leastAttainedService', () => {
  const served = (service: number) => ({ program: { service, serviceAtMs: 0 } });
  const byService = leastAttainedService({ weightService: 1, weightHeadWait: 0, halfLifeMs: 0 });
  const byWait = leastAttainedService({ weightService: 0, weightHeadWait: 1, halfLifeMs: 0 });

  it('lets the one go that received least, and whom it does not know before all', () => {
    expect(
      picked(byService, [
        { name: 'a', ...served(5) },
        { name: 'b', ...served(3) },
        { name: 'c', ...served(9) },
      ]),
    ).toBe('b');
    expect(picked(byService, [{ name: 'b', ...served(3) }, { name: 'new' }])).toBe('new');
    expect(picked(byService, [])).toBeUndefined();
  });

  it('lets the one go that has waited longest, in whole milliseconds', () => {
    expect(
      picked(
        byWait,
        [
          { name: 'a', atMs: 7 },
          { name: 'b', atMs: 2 },
          { name: 'c', atMs: 4 },
        ],
        10,
      ),
    ).toBe('b');
    // 8.2 and 8.9 ms are the same.
    expect(
      picked(
        byWait,
        [
          { name: 'b', atMs: 1.1, sequence: 2 },
          { name: 'a', atMs: 1.8, sequence: 1 },
        ],
        10,
      ),
    ).toBe('a');
  });

  it('weighs both by where they lie between the least and the most of those that wait', () => {
    const mixed = leastAttainedService({ weightService: 0.6, weightHeadWait: 0.5, halfLifeMs: 0 });
    // Scores: 0.6 · 0 + 0.5 · 1, 0.6 · 1 + 0.5 · 0, and 0.6 · ½ + 0.5 · ¾.
    const waiting = [
      { name: 'old', atMs: 0, ...served(200) },
      { name: 'light', atMs: 400, ...served(100) },
      { name: 'both', atMs: 100, ...served(150) },
    ];
    expect(picked(mixed, waiting, 400)).toBe('both');
    expect(picked(mixed, waiting.slice(0, 2), 400)).toBe('light');
    expect([rangeNormalize(15, 10, 20), rangeNormalize(10, 10, 20), rangeNormalize(3, 3, 3)]).toEqual([0.5, 0, 0.5]);
  });

  it('leaves out flows of which nothing waits', () => {
    expect(
      picked(byService, [
        { name: 'a', isEmpty: true },
        { name: 'b', ...served(1) },
      ]),
    ).toBe('b');
  });

  it('lets of equals the one go that came first, wherever it stands, and never for less than the best score', () => {
    const [first, second] = [
      { name: 'first', sequence: 1 },
      { name: 'second', sequence: 2 },
    ];
    expect([picked(byService, [first, second]), picked(byService, [second, first])]).toEqual(['first', 'first']);
    expect(
      picked(byService, [
        { ...second, ...served(1) },
        { ...first, ...served(2) },
      ]),
    ).toBe('second');
  });

  it('ages service with its half-life, once for each instant', () => {
    const program = programOf('a', { service: 800, serviceAtMs: 0 });
    expect([serviceAt(program, 100, 100), serviceAt(program, 100, 100), serviceAt(program, 300, 100)]).toEqual([
      400, 400, 100,
    ]);
    expect([serviceAt(program, 200, 100), program.serviceAtMs]).toEqual([100, 300]);
    expect(serviceAt(program, 1e9, 0)).toBe(100);
  });

  it('charges what is left of the service by then, and never goes below nothing', () => {
    const halving = leastAttainedService({ weightService: 1, weightHeadWait: 0, halfLifeMs: 100 });
    const program = programOf('a', { service: 800, serviceAtMs: 0 });
    halving.charge?.(program, 50, 100);
    expect(program.service).toBe(450);
    halving.charge?.(program, -1000, 100);
    expect(program.service).toBe(0);
  });
});
