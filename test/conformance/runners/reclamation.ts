/**
 * Seats for more important requests: how many are asked for, when, for whom, and that no more are taken than needed.
 */
import { expect } from 'vitest';
import { Reclamation } from '../../../src/eviction/reclamation.js';
import { concurrencyDetector, type UsageLimitPolicy } from '../../../src/index.js';
import { acceptAll, EvictionPlay } from '../support/eviction-play.js';
import { type Burst, minimumEvictions } from '../support/minimum-evictions.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';

/** Requests that one decision evicts at most, as in the reference's tests. */
const maxPerDecision = 2;

/** Decisions on a pool that loses whom it is told to. */
class Decisions {
  readonly reclamation: Reclamation<string>;
  readonly sizes: number[] = [];
  nowMs = 0;
  private inFlight: number;
  private evictable: number;
  private made = 0;

  constructor(
    { inFlight, evictable }: { inFlight: number; evictable: number },
    { graceMs = 100, timeoutMs = 5000 } = {},
  ) {
    this.inFlight = inFlight;
    this.evictable = evictable;
    this.reclamation = new Reclamation(() => ({ maxPerDecision, graceMs, timeoutMs }));
  }

  /** Whether or not the last decision is settled. */
  decide(saturation: number, ceiling: number): void {
    const { inFlight, evictable } = this;
    const size = this.reclamation.size({ inFlight, evictable, saturation, ceiling });
    if (size === 0) return;
    this.sizes.push(size);
    for (let victim = 0; victim < size; victim++)
      this.reclamation.issued(`req-${this.made++}`, saturation / inFlight, this.nowMs);
    this.inFlight -= size;
    this.evictable -= size;
  }
}

function ceilingFor(ceiling: number): UsageLimitPolicy {
  return { type: 'one-ceiling', computeLimits: (_saturation, _priorities, ceilings) => void ceilings.fill(ceiling) };
}

interface Pool {
  inFlight: number;
  evictable: number;
}

interface Size extends Pool {
  saturation: number;
  ceiling: number;
  pending: number;
  maxRevocationsPerDecision: number;
}

interface Trigger extends Pool {
  demandPriority: number;
  queued: number;
  saturation: number;
  ceiling: number;
  victimPriority: number | null;
  cycles?: number;
}

const poolKeys = ['inFlight', 'evictable'] as const;

export const reclamationRunners: Runners = {
  'reclaim.size': runner<Size, { evict: number | null }>(
    { input: [...poolKeys, 'saturation', 'ceiling', 'pending', 'maxRevocationsPerDecision'], expect: ['evict'] },
    ({ input: { pending, maxRevocationsPerDecision, ...demand }, expect: { evict } }) => {
      const settings = { maxPerDecision: maxRevocationsPerDecision, graceMs: 0, timeoutMs: 1 };
      const reclamation = new Reclamation<string>(() => settings);
      if (pending > 0) reclamation.issued('still leaving', pending, 0);
      expect(reclamation.size(demand)).toBe(evict ?? 0);
    },
  ),

  'reclaim.gate': runner<
    Pool & { graceMs: number; timeoutMs: number; steps: readonly string[] },
    { gates: readonly boolean[] }
  >({ input: [...poolKeys, 'graceMs', 'timeoutMs', 'steps'], expect: ['gates'] }, (vector) => {
    const decisions = new Decisions(vector.input, vector.input);
    const gates: boolean[] = [];
    for (const step of vector.input.steps) {
      const [verb, first = '', second] = step.split(' ');
      if (verb === 'gate') gates.push(decisions.reclamation.isSettled(decisions.nowMs));
      else if (verb === 'reclaim') decisions.decide(Number(first), Number(second));
      else if (verb === 'advance') decisions.nowMs += Number(first);
      else if (verb === 'confirm') decisions.reclamation.confirmed(first, decisions.nowMs);
      else throw unknownWord(vector, step);
    }
    expect(gates).toEqual(vector.expect.gates);
  }),

  'reclaim.pending': runner<
    Pool & { calls: readonly (readonly [saturation: number, ceiling: number])[] },
    { evictCalls: number[] }
  >({ input: [...poolKeys, 'calls'], expect: ['evictCalls'] }, ({ input, expect: { evictCalls } }) => {
    const decisions = new Decisions(input);
    for (const [saturation, ceiling] of input.calls) decisions.decide(saturation, ceiling);
    expect(decisions.sizes).toEqual(evictCalls);
  }),

  /** Whoever is not strictly below the bound stays, however full the pool is. */
  'reclaim.bound': runner<{ demandPriority: number }, { bound: number }>(
    { input: ['demandPriority'], expect: ['bound'] },
    ({ input: { demandPriority }, expect: { bound } }) => {
      const play = new EvictionPlay({ filter: acceptAll });
      play.trackAll([-1, 0, 1].map((step) => ({ id: String(step), priority: bound + step })));
      expect(play.ask(3, demandPriority).map(({ lease }) => lease?.priority)).toEqual([bound - 1]);
    },
  ),

  /** One cycle of the reference is one look at the gate. */
  'reclaim.trigger': runner<Trigger, { evictCalls: readonly number[] }>(
    {
      input: [...poolKeys, 'demandPriority', 'queued', 'saturation', 'ceiling', 'victimPriority', 'cycles'],
      expect: ['evictCalls'],
    },
    ({ input, expect: { evictCalls } }) => {
      const { inFlight, evictable, demandPriority, queued, saturation, ceiling, victimPriority, cycles = 1 } = input;
      const victim = victimPriority ?? -1;
      const play = new EvictionPlay({
        filter: { type: 'victims-only', accepts: ({ priority }) => priority === victim },
      });
      const bystander = Math.max(demandPriority, victim) + 1;
      for (let index = 0; index < inFlight; index++) {
        play.track({ id: `running-${index}`, priority: index < evictable ? victim : bystander });
      }
      const { rig } = play;
      rig.flow.reconfigure({ usageLimitPolicy: ceilingFor(ceiling) });
      rig.gate.saturationWhenClosed = saturation;
      const askedAfter = [0];
      rig.enqueueMany(queued, { priority: demandPriority });
      askedAfter.push(play.asked.length);
      for (let cycle = 1; cycle < cycles; cycle++) {
        rig.gate.open(0);
        askedAfter.push(play.asked.length);
      }
      const calls = askedAfter.slice(1).map((asked, index) => asked - (askedAfter[index] ?? 0));
      expect(calls.filter((victims) => victims > 0)).toEqual(evictCalls);
    },
  ),

  /**
   * The figures are those of the oracle; the controller admits as many, and evicts at most one decision more than the
   * fewest.
   */
  'eviction.analyticMinimum': runner<Burst, { minEvictions: number; admittable: number }>(
    { input: ['preload', 'highPriority', 'capacity', 'ceiling'], expect: ['minEvictions', 'admittable'] },
    ({ input, expect: expected }) => {
      const { preload, highPriority, capacity, ceiling } = input;
      expect(minimumEvictions(input)).toEqual(expected);
      const play = new EvictionPlay({ maxPerDecision });
      for (let index = 0; index < preload; index++) play.track({ id: `running-${index}`, priority: -1 });
      const saturationDetector = concurrencyDetector({ maxConcurrency: capacity });
      play.rig.flow.reconfigure({ saturationDetector, usageLimitPolicy: ceilingFor(ceiling) });
      const burst = play.rig.enqueueMany(highPriority, { priority: 100 });
      // Each victim that leaves may make room, or another one leave.
      for (let left = 0; left < play.asked.length; left++) play.untrack(play.asked[left]?.id ?? '');
      expect(burst.filter(({ state }) => state === 'Dispatched')).toHaveLength(expected.admittable);
      expect(play.asked.length).toBeGreaterThanOrEqual(expected.minEvictions);
      expect(play.asked.length).toBeLessThanOrEqual(expected.minEvictions + maxPerDecision);
    },
  ),
};
