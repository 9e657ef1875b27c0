/**
 * Running requests that may be evicted: who they are, in which order they go, how they are told, and what their client
 * sees.
 */
import { expect } from 'vitest';
import { droppedReasonHeader } from '../../../src/base/headers/header-names.js';
import type { SeatLease } from '../../../src/core/engine/seats.js';
import {
  defaultRegistry,
  type EvictionFilter,
  type EvictionOrdering,
  FlowEvictedError,
  priorityThenTime,
  sheddableOnly,
  sloClasses,
} from '../../../src/index.js';
import type { InFlightView } from '../../../src/types/index.js';
import { acceptAll, EvictionPlay, type Running } from '../support/eviction-play.js';
import { flatRunner, withKeys } from '../support/flat-vectors.js';
import type { Ticket } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import { sortRuns } from '../support/step-runs.js';
import type { Vector } from '../support/vectors.js';
import { llmDResponse } from './http.js';

interface Counts {
  inFlight: number;
  evictable: number;
}

function countsOf({ inFlight, evictable }: EvictionPlay): Counts {
  return { inFlight, evictable };
}

function idsOf(tickets: readonly Ticket[]): string[] {
  return tickets.map(({ id }) => id);
}

function earliestOf(requests: readonly Running[]): number {
  return Math.min(0, ...requests.map(({ dispatchMs = 0 }) => dispatchMs));
}

function filterOf(vector: Vector, name: string): EvictionFilter {
  if (name === 'acceptAll') return acceptAll;
  if (name === 'priority<0') return sheddableOnly();
  throw unknownWord(vector, name);
}

function viewOf({ priority, dispatchMs = 0 }: { priority: number; dispatchMs?: number }): InFlightView {
  const usage = { promptTokens: 0, completionTokens: 0 };
  return {
    fairnessId: 'flow',
    priority,
    dispatchedAtMs: dispatchMs,
    tokens: 0,
    usage,
    hasAnswer: false,
    endpoint: undefined,
  };
}

interface QueueScript {
  filter: string;
  track: readonly Running[];
  untrack: readonly string[];
}

const queueScript = runner<QueueScript, Counts & { popOrder: readonly string[] | null; afterPop: Counts | null }>(
  { input: ['filter', 'track', 'untrack'], expect: ['inFlight', 'evictable', 'popOrder', 'afterPop'] },
  (vector) => {
    const { filter, track, untrack } = vector.input;
    const { popOrder, afterPop, ...counts } = vector.expect;
    const play = new EvictionPlay({ filter: filterOf(vector, filter) });
    play.trackAll(track);
    for (const id of untrack) play.untrack(id);
    expect(countsOf(play)).toEqual(counts);
    if (popOrder !== null) expect(idsOf(play.pop(track.length))).toEqual(popOrder);
    if (afterPop !== null) expect(countsOf(play)).toEqual(afterPop);
  },
);

const queueBounds = runner<
  { steps: readonly string[] },
  { sizes: readonly (number | null)[]; evictableAfter: number; inFlightAfter: number }
>({ input: ['steps'], expect: ['sizes', 'evictableAfter', 'inFlightAfter'] }, (vector) => {
  const play = new EvictionPlay({ filter: acceptAll });
  const sizes = vector.input.steps.map((step) => {
    const [verb, count = ''] = step.split(' ');
    if (verb === 'popN') return play.pop(Number(count)).length;
    if (verb !== 'track') throw unknownWord(vector, step);
    for (let index = 0; index < Number(count); index++) play.track({ id: `running-${index}`, priority: -1 });
    return null;
  });
  const { sizes: expected, evictableAfter, inFlightAfter } = vector.expect;
  expect(sizes).toEqual(expected);
  expect(countsOf(play)).toEqual({ inFlight: inFlightAfter, evictable: evictableAfter });
});

interface Peek {
  track: readonly Running[];
  mutatePeeked?: object;
}

/** Whoever orders the running requests gets a look at them, and cannot change them. */
const queuePeek = runner<Peek, { peek: string | null; evictable: number; priorityAfterMutation?: number }>(
  { input: ['track', 'mutatePeeked'], expect: ['peek', 'evictable', 'priorityAfterMutation'] },
  ({ input: { track, mutatePeeked }, expect: expected }) => {
    const order = priorityThenTime();
    const meddling: EvictionOrdering = {
      type: 'meddling',
      compare(a, b) {
        for (const view of [a, b])
          for (const [key, value] of Object.entries(mutatePeeked ?? {})) Reflect.set(view, key, value);
        return order.compare(a, b);
      },
    };
    const play = new EvictionPlay({ filter: acceptAll, ordering: meddling });
    play.trackAll(track);
    expect(play.evictable).toBe(expected.evictable);
    const [victim] = play.ask(1);
    expect(victim?.id ?? null).toBe(expected.peek);
    if (expected.priorityAfterMutation !== undefined)
      expect(victim?.lease?.priority).toBe(expected.priorityAfterMutation);
  },
);

interface EvictorScript {
  track: readonly Running[];
  /** Cannot happen here: every lease has its signal. */
  signalFails?: boolean;
  evictN?: number;
  bound?: number;
  endOfStream?: readonly string[];
  cancelContext?: boolean;
  untrack?: readonly string[];
}

interface EvictorResult extends Counts {
  evicted: readonly string[];
  /** Evicted requests of which it was seen that they have left. */
  notifications: number;
  channelRegistered: boolean;
  victimPriority: number | null;
  victimPriorityWhenEmpty: number | null;
}

const evictorScript = runner<EvictorScript, Partial<EvictorResult>>(
  {
    input: ['track', 'signalFails', 'evictN', 'bound', 'endOfStream', 'cancelContext', 'untrack'],
    expect: [
      'evicted',
      'inFlight',
      'evictable',
      'notifications',
      'channelRegistered',
      'victimPriority',
      'victimPriorityWhenEmpty',
    ],
  },
  ({ input: { track, evictN = 0, bound, endOfStream, cancelContext, untrack = [] }, expect: expected }) => {
    const play = new EvictionPlay({ filter: acceptAll });
    const found: Partial<EvictorResult> = {};
    if (expected.victimPriorityWhenEmpty !== undefined)
      found.victimPriorityWhenEmpty = play.ask(1)[0]?.lease?.priority ?? null;
    play.trackAll(track);
    for (const id of untrack) play.untrack(id);
    found.notifications = 0;
    play.rig.flow.on('released', ({ lease }) => {
      if (lease.isEvicted) found.notifications = (found.notifications ?? 0) + 1;
    });
    const victims = play.ask(evictN, bound);
    found.evicted = idsOf(victims);
    for (const name of endOfStream ?? found.evicted) {
      const others = track.filter(({ id }) => !found.evicted?.includes(id));
      play.untrack({ evicted: victims[0]?.id, other: others[0]?.id }[name] ?? name);
    }
    // A client that leaves ends its request.
    if (cancelContext === true) for (const { id } of track) play.untrack(id);
    Object.assign(found, countsOf(play));
    const isTold = play.ask(1).length > 0;
    found.channelRegistered = isTold;
    found.victimPriority = play.asked.at(-1)?.lease?.priority ?? null;
    expect(found).toMatchObject(expected);
  },
);

/** Told twice, a request is told once: signals do not fire again. */
function tellRepeatedly(times: number): { errors: number; signals: number } {
  const lease = new EvictionPlay().track({ id: 'victim', priority: -1 }).lease as SeatLease;
  const told = { errors: 0, signals: 0 };
  lease.signal.addEventListener('abort', () => told.signals++);
  for (let turn = 0; turn < times; turn++) {
    try {
      lease.abort(new FlowEvictedError());
    } catch {
      told.errors++;
    }
  }
  return told;
}

const signal = runner<
  { evicts?: number; steps?: readonly string[] },
  { errors?: number; newChannelSignalled?: boolean }
>({ input: ['evicts', 'steps'], expect: ['errors', 'newChannelSignalled'] }, (vector) => {
  const { evicts, steps = [] } = vector.input;
  const { errors, newChannelSignalled } = vector.expect;
  if (evicts !== undefined) expect(tellRepeatedly(evicts)).toEqual({ errors, signals: Math.min(evicts, 1) });
  const play = new EvictionPlay();
  let latest: Ticket | undefined;
  for (const step of steps) {
    if (step === 'cleanup') play.untrack('victim');
    else if (step === 'evict' || step === 'evict with a new channel') {
      latest = play.track({ id: 'victim', priority: -1 });
      play.ask(1);
    } else throw unknownWord(vector, step);
  }
  if (newChannelSignalled !== undefined) expect(latest?.lease?.signal.aborted).toBe(newChannelSignalled);
});

interface TrackerStep {
  op: string;
  id?: string | null;
  class?: string;
  /** A microsecond of the vector is a millisecond here, so that instants stay whole. */
  dispatchTimeUs?: number;
  instance?: string;
  len?: number;
}

interface Tracker {
  config: { priorities?: Readonly<Record<string, number>> };
  steps: readonly TrackerStep[];
}

const trackerKeys = ['op', 'id', 'class', 'dispatchTimeUs', 'instance', 'len'] as const;

const tracker = flatRunner<Tracker>(['config', 'steps'], (vector) => {
  const { config, steps } = vector.input;
  const classes = sloClasses({ overrides: withKeys(config, 'priorities').priorities });
  const play = new EvictionPlay();
  for (const step of sortRuns(steps, 'track', ({ dispatchTimeUs = 0 }) => dispatchTimeUs)) {
    const { op, id, class: sloClass, dispatchTimeUs = 0, instance = '', len } = withKeys(step, ...trackerKeys);
    if (op === 'track') {
      play.rig.advanceTo(dispatchTimeUs);
      const { lease } = play.track({ id: id ?? '', priority: classes.priorityOf(sloClass) });
      if (play.rig.pool.get(instance) === undefined) play.rig.pool.add(instance);
      lease?.bind(instance);
    } else if (op === 'untrack') play.untrack(id ?? '');
    else if (op === 'len') expect(play.evictable).toBe(len);
    else if (op === 'pop') {
      const [victim] = play.pop(1);
      expect({ id: victim?.id ?? null, instance: victim?.lease?.endpoint?.id ?? '' }).toEqual({ id, instance });
    } else throw unknownWord(vector, op);
  }
});

interface Response {
  status: number;
  headers: Readonly<Record<string, string>>;
}

export const evictionRunners: Runners = {
  'evictionQueue.script': queueScript,
  'evictionQueue.bounds': queueBounds,
  'evictionQueue.peek': queuePeek,
  'requestEvictor.script': evictorScript,
  'evictor.signal': signal,
  'eviction-tracker': tracker,

  'evictionQueue.order': runner<{ track: readonly Running[] }, { popOrder: readonly string[] }>(
    { input: ['track'], expect: ['popOrder'] },
    ({ input: { track }, expect: { popOrder } }) => {
      const play = new EvictionPlay({ filter: acceptAll }, earliestOf(track));
      play.trackAll(track);
      expect(idsOf(play.pop(track.length))).toEqual(popOrder);
    },
  ),

  'evictionFilter.accept': runner<{ type: string; priority: number }, { accept: boolean }>(
    { input: ['type', 'priority'], expect: ['accept'] },
    ({ input: { type, priority }, expect: { accept } }) => {
      const filter = defaultRegistry().create(type) as EvictionFilter;
      expect(filter.accepts(viewOf({ priority }))).toBe(accept);
    },
  ),

  'evictionOrder.less': runner<{ type: string; a: Omit<Running, 'id'>; b: Omit<Running, 'id'> }, { less: boolean }>(
    { input: ['type', 'a', 'b'], expect: ['less'] },
    ({ input: { type, a, b }, expect: { less } }) => {
      const order = defaultRegistry().create(type) as EvictionOrdering;
      expect(order.compare(viewOf(a), viewOf(b)) < 0).toBe(less);
    },
  ),

  /**
   * There is one reason to evict a request that runs, so that the response names it whatever the reference was given.
   */
  'errors.evictResponse': runner<{ reason?: string | null }, Response>(
    { input: ['reason'], expect: ['status', 'headers'] },
    (vector) => {
      const { status, headers } = llmDResponse({
        type: 'EvictedOther',
        reason: 'evicted',
        fairnessId: 'tenant',
        priority: -1,
        queuedMs: 0,
      });
      const names = Object.entries(headers).filter(([name]) => name === droppedReasonHeader);
      const { status: expectedStatus = status, headers: expectedHeaders = {} } = vector.expect;
      expect({ status, headers: Object.fromEntries(names) }).toEqual({
        status: expectedStatus,
        headers: expectedHeaders,
      });
    },
  ),
};
