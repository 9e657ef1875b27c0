/**
 * One queue: its order, removal from anywhere in it, and its counts. It is one flow of a controller whose gate is
 * closed.
 */
import { expect } from 'vitest';
import { FlowConfigError, fcfs, type ItemView, type OrderingPolicy, overviewOf } from '../../../src/index.js';
import { Rig, Ticket } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';
import type { Vector } from '../support/vectors.js';

interface Item {
  readonly id: string;
  readonly bytes: number;
  readonly enqueueMs: number;
}

const comparisons: Readonly<Record<string, (a: ItemView, b: ItemView) => number>> = {
  enqueueTimeAsc: (a, b) => a.enqueuedAtMs - b.enqueuedAtMs,
  enqueueTimeDesc: (a, b) => b.enqueuedAtMs - a.enqueuedAtMs,
  bytesAsc: (a, b) => a.byteSize - b.byteSize,
  bytesDesc: (a, b) => b.byteSize - a.byteSize,
};

const predicates: Readonly<Record<string, (item: Item) => boolean>> = {
  oddBytes: ({ bytes }) => bytes % 2 === 1,
  evenBytes: ({ bytes }) => bytes % 2 === 0,
  never: () => false,
  always: () => true,
  all: () => true,
};

/** The arrival order has a queue of its own, so it is played in both. */
function orderingsFor(vector: Vector, order: string): OrderingPolicy[] {
  const compare = comparisons[order];
  if (compare === undefined) throw unknownWord(vector, order);
  const byComparison: OrderingPolicy = { type: order, compare };
  return order === 'enqueueTimeAsc' ? [byComparison, fcfs()] : [byComparison];
}

class FilledQueue {
  readonly rig: Rig;
  readonly tickets: Map<string, Ticket> = new Map();

  constructor(
    items: readonly Item[],
    ordering: OrderingPolicy = fcfs(),
    abortOf: (item: Item) => AbortController | undefined = () => undefined,
  ) {
    const startMs = Math.min(0, ...items.map(({ enqueueMs }) => enqueueMs));
    this.rig = new Rig({ bands: [{ priority: 0, ordering }], defaultRequestTtl: 0 }, { startMs });
    for (const item of [...items].sort((a, b) => a.enqueueMs - b.enqueueMs)) {
      this.rig.advanceTo(item.enqueueMs);
      this.tickets.set(item.id, this.rig.enqueue({ byteSize: item.bytes, abort: abortOf(item) }, item.id));
    }
  }

  /** Length and bytes, after checking that flow, band and controller agree. */
  counts(): { length: number; bytes: number } {
    const { waiting, waitingBytes } = this.rig.flow.stats();
    const [band] = overviewOf(this.rig.flow, { flows: 'all' }).bands;
    expect([band?.waiting, band?.waitingBytes]).toEqual([waiting, waitingBytes]);
    return { length: waiting, bytes: waitingBytes };
  }

  drain(): string[] {
    const before = this.rig.dispatched.length;
    this.rig.gate.open();
    return this.rig.dispatched.slice(before).map(({ id }) => id);
  }
}

/** What may be done with a wrong handle, as near as a caller can come to it. */
const wrongRemovals: readonly (readonly [handle: RegExp, remove: (queue: FilledQueue) => void])[] = [
  [
    /null|nil|foreign type/,
    ({ rig }) => {
      const wrong = Object.assign(new Ticket('wrong', {}), { signal: null });
      expect(() => rig.flow.tryEnqueue(wrong, { fairnessId: 'flow' })).toThrow(FlowConfigError);
    },
  ],
  [/another queue/, ({ rig }) => rig.enqueue({ fairnessId: 'other', priority: -1 }).abort.abort()],
  [
    /invalidated|removed|stale/,
    ({ rig }) => {
      const { abort } = rig.enqueue();
      abort.abort();
      abort.abort();
    },
  ],
];

const three: readonly Item[] = ['a', 'b', 'c'].map((id, index) => ({ id, bytes: 10, enqueueMs: index }));

/** What a second removal is told in the reference; here it does nothing. */
const alreadyGone = ['ErrInvalidQueueItemHandle', 'ErrQueueItemNotFound'];

export const queueRunners: Runners = {
  'queue.order': runner<{ order: string; items: readonly Item[] }, { drain: readonly string[]; totalBytes: number }>(
    { input: ['order', 'items'], expect: ['drain', 'totalBytes'] },
    (vector) => {
      for (const ordering of orderingsFor(vector, vector.input.order)) {
        const queue = new FilledQueue(vector.input.items, ordering);
        expect(queue.counts()).toEqual({ length: vector.input.items.length, bytes: vector.expect.totalBytes });
        expect(queue.drain(), ordering.type).toEqual(vector.expect.drain);
        expect(queue.counts()).toEqual({ length: 0, bytes: 0 });
      }
    },
  ),

  'queue.remove': runner<
    { items: readonly Item[]; remove: readonly string[] },
    { results: readonly string[]; length: number; bytes: number }
  >(
    { input: ['items', 'remove'], expect: ['results', 'length', 'bytes'] },
    ({ input, expect: { results, ...counts } }) => {
      const queue = new FilledQueue(input.items);
      const removed = input.remove.map((id) => {
        const before = queue.rig.dropped.length;
        queue.tickets.get(id)?.abort.abort();
        return queue.rig.dropped.slice(before).map((ticket) => ticket.id);
      });
      expect(removed).toEqual(results.map((result) => (alreadyGone.includes(result) ? [] : [result])));
      expect(queue.counts()).toEqual(counts);
    },
  ),

  'queue.removeError': runner<{ handle: string }, { lengthUnchanged: boolean; bytesUnchanged: boolean }>(
    { input: ['handle'], expect: ['lengthUnchanged', 'bytesUnchanged'] },
    (vector) => {
      const removal = wrongRemovals.find(([handle]) => handle.test(String(vector.input.handle)));
      if (removal === undefined) throw unknownWord(vector, vector.input.handle);
      const queue = new FilledQueue(three);
      const before = queue.counts();
      removal[1](queue);
      const after = queue.counts();
      const unchanged = {
        lengthUnchanged: after.length === before.length,
        bytesUnchanged: after.bytes === before.bytes,
      };
      expect(unchanged).toEqual(vector.expect);
      expect(queue.drain()).toEqual(three.map(({ id }) => id));
    },
  ),

  /** One signal, shared by all that the predicate names. */
  'queue.cleanup': runner<
    { items: readonly Item[]; predicate: string },
    { removed: readonly string[]; length: number; bytes: number; drain?: readonly string[] }
  >({ input: ['items', 'predicate'], expect: ['removed', 'length', 'bytes', 'drain'] }, (vector) => {
    const matches = predicates[vector.input.predicate];
    if (matches === undefined) throw unknownWord(vector, vector.input.predicate);
    const { removed, drain, ...counts } = vector.expect;
    const abort = new AbortController();
    const queue = new FilledQueue(vector.input.items, fcfs(), (item) => (matches(item) ? abort : undefined));
    abort.abort();
    expect(queue.rig.dropped.map(({ id }) => id).sort()).toEqual([...removed].sort());
    expect(queue.counts()).toEqual(counts);
    const survivors = vector.input.items.filter((item) => !matches(item)).map(({ id }) => id);
    expect(queue.drain()).toEqual(drain ?? survivors);
  }),

  'queue.drain': runner<
    { items: readonly Item[]; drains: number },
    { counts: readonly number[]; length: number; bytes: number }
  >(
    { input: ['items', 'drains'], expect: ['counts', 'length', 'bytes'] },
    async ({ input, expect: { counts, ...left } }) => {
      const queue = new FilledQueue(input.items);
      const drained: number[] = [];
      for (let round = 0; round < input.drains; round++) {
        const before = queue.rig.dropped.length;
        await queue.rig.flow.close();
        drained.push(queue.rig.dropped.length - before);
      }
      expect(drained).toEqual(counts);
      expect(queue.counts()).toEqual(left);
    },
  ),

  'queue.bookedBytes': runner<{ add: number; sizeReportedLater: number; op: string }, { bytes: number }>(
    { input: ['add', 'sizeReportedLater', 'op'], expect: ['bytes'] },
    (vector) => {
      const { add, sizeReportedLater, op } = vector.input;
      const queue = new FilledQueue([{ id: 'a', bytes: add, enqueueMs: 0 }]);
      const ticket = queue.tickets.get('a') as Ticket;
      expect(queue.counts().bytes).toBe(add);
      ticket.byteSize = sizeReportedLater;
      if (op === 'remove' || op === 'cleanup') ticket.abort.abort();
      else if (op === 'drain') void queue.rig.flow.close();
      else if (op === 'dispatch') queue.drain();
      else throw unknownWord(vector, op);
      expect(queue.counts().bytes).toBe(vector.expect.bytes);
    },
  ),
};
