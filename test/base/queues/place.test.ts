/** Who is next and how many are ahead, in both queues. */
import { describe, expect, it } from 'vitest';
import { FifoQueue } from '../../../src/base/queues/fifo-queue.js';
import { HeapQueue } from '../../../src/base/queues/heap-queue.js';
import type { ItemQueue } from '../../../src/base/queues/item-queue.js';
import { ScoredQueue } from '../../../src/base/queues/scored-queue.js';

interface Member {
  isWaiting: boolean;
  sequence: number;
}

const queues: [string, () => ItemQueue<Member>][] = [
  ['FifoQueue', () => new FifoQueue<Member>()],
  ['HeapQueue', () => new HeapQueue<Member>((a, b) => a.sequence - b.sequence)],
  ['ScoredQueue', () => new ScoredQueue<Member>({ lookahead: 4, overtakings: 2, score: () => 0, dispatched() {} })],
];

describe.each(queues)('%s', (_, make) => {
  function filled(size: number): { queue: ItemQueue<Member>; members: Member[] } {
    const queue = make();
    const members = Array.from({ length: size }, (_, sequence) => ({ isWaiting: true, sequence }));
    for (const member of members) queue.push(member);
    return { queue, members };
  }

  function drop(queue: ItemQueue<Member>, member: Member): void {
    member.isWaiting = false;
    queue.discard();
  }

  it('counts those ahead, the dead left out', () => {
    const { queue, members } = filled(10);
    expect(members.map((member) => queue.ahead(member, 100))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const index of [0, 4]) drop(queue, members[index]!);
    expect([1, 3, 5, 9].map((index) => queue.ahead(members[index]!, 100))).toEqual([0, 2, 3, 7]);
  });

  it('gives up when more would have to be looked at than it may', () => {
    const { queue, members } = filled(10);
    expect(queue.ahead(members[9]!, 5)).toBeUndefined();
  });

  it('does not count for one that does not stand in it', () => {
    const { queue } = filled(3);
    expect(queue.ahead({ isWaiting: true, sequence: 9 }, 2)).toBeUndefined();
  });

  it('names the leading ones, the dead left out', () => {
    const { queue, members } = filled(10);
    drop(queue, members[0]!);
    expect(queue.leading(3)[0]).toBeDefined();
    expect(queue.leading(3)).toHaveLength(3);
    expect(queue.leading(3)).not.toContain(members[0]);
    expect(queue.leading(99)).toHaveLength(9);
    expect(make().leading(3)).toEqual([]);
  });
});

it('a FifoQueue looks at no more than it may, and at one alone', () => {
  const queue = new FifoQueue<Member>();
  const [first, ...others] = Array.from({ length: 5 }, (_, sequence) => ({ isWaiting: true, sequence }));
  queue.push(first!);
  expect([queue.leading(3), queue.ahead(others[0]!, 9)]).toEqual([[first], undefined]);
  for (const member of others) queue.push(member);
  expect([3, 2].map((most) => queue.ahead(others[2]!, most))).toEqual([3, undefined]);
  expect(queue.ahead({ isWaiting: true, sequence: 9 }, 9)).toBeUndefined();
});

it('a FifoQueue names them in order', () => {
  const queue = new FifoQueue<Member>();
  for (let sequence = 0; sequence < 5; sequence++) queue.push({ isWaiting: true, sequence });
  expect(queue.leading(3).map(({ sequence }) => sequence)).toEqual([0, 1, 2]);
});
