import { describe, expect, it } from 'vitest';
import { FifoQueue } from '../../../src/base/queues/fifo-queue.js';
import { HeapQueue } from '../../../src/base/queues/heap-queue.js';
import { fewTombstones, type ItemQueue } from '../../../src/base/queues/item-queue.js';
import { ScoredQueue } from '../../../src/base/queues/scored-queue.js';
import { Random } from '../../property/random.js';

interface Member {
  readonly sequence: number;
  readonly rank: number;
  isWaiting: boolean;
}

function byRank(a: Member, b: Member): number {
  return a.rank - b.rank || a.sequence - b.sequence;
}

function bySequence(a: Member, b: Member): number {
  return a.sequence - b.sequence;
}

/** A queue by scores that are all the same. */
function unscored(): ScoredQueue<Member> {
  return new ScoredQueue<Member>({ lookahead: 4, overtakings: 2, score: () => 0, dispatched() {} });
}

function discard(queue: ItemQueue<Member>, member: Member): void {
  member.isWaiting = false;
  queue.discard();
}

describe.each([
  ['FifoQueue', () => new FifoQueue<Member>(), bySequence],
  ['HeapQueue', () => new HeapQueue<Member>(byRank), byRank],
  ['ScoredQueue', unscored, bySequence],
] as const)('%s', (_, make, order) => {
  function filled(count: number): { queue: ItemQueue<Member>; members: Member[] } {
    const random = new Random(count);
    const queue = make();
    const members = Array.from({ length: count }, (_, sequence) => ({
      sequence,
      rank: random.int(20),
      isWaiting: true,
    }));
    for (const member of members) queue.push(member);
    return { queue, members };
  }

  it('is empty at first', () => {
    const queue = make();
    expect(queue.peek()).toBeUndefined();
    expect(queue.members()).toEqual([]);
  });

  it('gives its members in order', () => {
    const { queue, members } = filled(100);
    const got: Member[] = [];
    for (let next = queue.peek(); next !== undefined; next = queue.peek()) {
      got.push(next);
      queue.shift();
    }
    expect(got).toEqual(members.sort(order));
  });

  it('skips what was discarded, wherever it stood', () => {
    for (const share of [0.1, 0.5, 0.9]) {
      const { queue, members } = filled(200);
      const random = new Random(share * 10);
      for (const member of members) if (random.chance(share)) discard(queue, member);
      const living = members.filter(({ isWaiting }) => isWaiting);
      expect(queue.members().sort(order)).toEqual([...living].sort(order));
      expect(queue.peek()).toBe(living.sort(order)[0]);
    }
  });

  it('is rebuilt when the dead outnumber the living, so that they hold no memory', () => {
    const { queue, members } = filled(10_000);
    // From the back of the order: none of them surfaces.
    const backwards = [...members].sort(order).reverse();
    for (const [index, member] of backwards.slice(0, 9_990).entries()) {
      discard(queue, member);
      const living = 10_000 - index - 1;
      expect(queue.length).toBeLessThanOrEqual(Math.max(2 * living, living + fewTombstones));
    }
    expect(queue.members()).toHaveLength(10);
    expect(queue.peek()).toBe(backwards[9_999]);
  });

  it('ends empty when all are discarded, and starts anew', () => {
    const { queue, members } = filled(fewTombstones * 3);
    for (const member of members) discard(queue, member);
    expect(queue.peek()).toBeUndefined();
    expect(queue.length).toBe(0);
    const late = { sequence: 1e6, rank: 3, isWaiting: true };
    queue.push(late);
    expect(queue.peek()).toBe(late);
  });

  it('goes on with the next when the first leaves in another way than by its turn', () => {
    const { queue, members } = filled(20);
    const [first, second] = [...members].sort(order) as [Member, Member];
    first.isWaiting = false;
    queue.remove(first);
    expect(queue.peek()).toBe(second);
    expect([queue.length, queue.tombstones]).toEqual([19, 0]);
  });

  it('does what a sorted array does, through a long history', () => {
    const random = new Random(17);
    const queue = make();
    let model: Member[] = [];
    for (let sequence = 0; sequence < 6000; sequence++) {
      const phase = Math.floor(sequence / 500) % 3;
      if (random.chance([0.7, 0.45, 0.3][phase] as number)) {
        const member = { sequence, rank: random.int(50), isWaiting: true };
        queue.push(member);
        model.push(member);
      } else if (random.chance(0.4)) {
        const [next] = [...model].sort(order);
        expect(queue.peek()).toBe(next);
        if (next === undefined) continue;
        queue.shift();
        next.isWaiting = false;
        model = model.filter((member) => member !== next);
      } else if (model.length > 0) {
        const gone = random.pick(model);
        discard(queue, gone);
        model = model.filter((member) => member !== gone);
      }
      if (sequence % 50 === 0) expect(queue.members().sort(order)).toEqual([...model].sort(order));
      expect(queue.tombstones).toBe(queue.length - model.length);
    }
    expect(queue.peek()).toBe([...model].sort(order)[0]);
  });
});

describe('FifoQueue', () => {
  it('has no newest while it is empty', () => {
    expect([...new FifoQueue<Member>().newestFirst()]).toEqual([]);
  });

  it('lets the first leave without a trace, and others as tombstones', () => {
    const queue = new FifoQueue<Member>();
    const [a, b, c] = [0, 1, 2].map((sequence) => ({ sequence, rank: 0, isWaiting: true })) as [Member, Member, Member];
    for (const member of [a, b, c]) queue.push(member);
    b.isWaiting = false;
    queue.remove(b);
    expect([queue.length, queue.tombstones]).toEqual([3, 1]);
    a.isWaiting = false;
    queue.remove(a);
    expect([queue.length, queue.tombstones]).toEqual([2, 1]);
    expect(queue.peek()).toBe(c);
  });

  it('puts a member that comes late where its arrival belongs, and knows the last, through a long history', () => {
    const random = new Random(6);
    const queue = new FifoQueue<Member>();
    const late: Member[] = [];
    let model: Member[] = [];
    for (let sequence = 0; sequence < 2000; sequence++) {
      const member = { sequence, rank: 0, isWaiting: true };
      if (random.chance(0.1)) late.push(member);
      else model.push(member);
      if (model.at(-1) === member) queue.push(member);
      if (late.length > 0 && random.chance(0.15)) {
        const [comes] = late.splice(random.int(late.length), 1) as [Member];
        queue.push(comes);
        model = [...model, comes].sort((a, b) => a.sequence - b.sequence);
      }
      expect(queue.last()).toBe(model.at(-1));
      const gone = random.chance(0.3) ? model.at(-1) : random.pick(model);
      if (random.chance(0.9) && gone !== undefined) {
        discard(queue, gone);
        model = model.filter((other) => other !== gone);
      }
      expect(queue.peek()).toBe(model[0]);
      expect(queue.tombstones).toBe(queue.length - model.length);
      expect([...queue.newestFirst()]).toEqual([...model].reverse());
    }
    expect(queue.members()).toEqual(model);
    expect(model.length).toBeGreaterThan(50);
  });
});

describe('HeapQueue', () => {
  it('survives a comparator without any order', () => {
    const random = new Random(5);
    const queue = new HeapQueue<Member>(() => random.next() - 0.5);
    const members = Array.from({ length: 300 }, (_, sequence) => ({ sequence, rank: 0, isWaiting: true }));
    for (const member of members) queue.push(member);
    for (const member of members.slice(0, 200)) discard(queue, member);
    const got = new Set<Member>();
    for (let next = queue.peek(); next !== undefined; next = queue.peek()) {
      expect(next.isWaiting).toBe(true);
      got.add(next);
      queue.shift();
    }
    expect(got.size).toBe(100);
  });

  it('takes members along', () => {
    const members = [3, 1, 2].map((rank, sequence) => ({ sequence, rank, isWaiting: true }));
    expect(new HeapQueue<Member>(byRank, members).peek()).toMatchObject({ rank: 1 });
  });
});

describe('a queue is rebuilt', () => {
  function filled(queue: ItemQueue<Member>, count: number): Member[] {
    const members = Array.from({ length: count }, (_, sequence) => ({ sequence, rank: sequence, isWaiting: true }));
    for (const member of members) queue.push(member);
    return members;
  }

  it('FifoQueue: when more than a few, and more than half of what stands behind the first, are dead', () => {
    const queue = new FifoQueue<Member>();
    const count = fewTombstones * 4 + 1;
    const members = filled(queue, count);
    const half = (count - 1) / 2;
    for (let i = 1; i <= half; i++) discard(queue, members[i] as Member);
    expect(queue.length).toBe(count);
    discard(queue, members[half + 1] as Member);
    expect(queue.length).toBe(count - half - 1);
    expect(queue.members()).toHaveLength(count - half - 1);
  });

  it('FifoQueue: never for a few', () => {
    const queue = new FifoQueue<Member>();
    const members = filled(queue, fewTombstones + 2);
    for (let i = 1; i <= fewTombstones; i++) discard(queue, members[i] as Member);
    expect(queue.length).toBe(fewTombstones + 2);
    discard(queue, members[fewTombstones + 1] as Member);
    expect(queue.length).toBe(1);
  });

  it('HeapQueue: when more than half of it are dead', () => {
    const queue = new HeapQueue<Member>(byRank);
    const members = filled(queue, 10);
    for (let i = 5; i < 10; i++) discard(queue, members[i] as Member);
    expect(queue.length).toBe(10);
    discard(queue, members[4] as Member);
    expect(queue.length).toBe(4);
    // The count of the dead begins anew.
    discard(queue, members[3] as Member);
    discard(queue, members[2] as Member);
    expect(queue.length).toBe(4);
  });

  it('HeapQueue: counts the dead that it met on the way as gone', () => {
    const queue = new HeapQueue<Member>(byRank);
    const members = filled(queue, 10);
    for (let i = 0; i < 4; i++) discard(queue, members[i] as Member);
    expect(queue.peek()).toBe(members[4]);
    expect(queue.length).toBe(6);
    for (let i = 7; i < 10; i++) discard(queue, members[i] as Member);
    expect(queue.length).toBe(6);
  });

  it('FifoQueue: counts the dead that it met on the way as gone, from either end', () => {
    const queue = new FifoQueue<Member>();
    const count = fewTombstones * 2 + 2;
    const members = filled(queue, count);
    for (let i = 0; i < fewTombstones; i++) discard(queue, members[i] as Member);
    expect(queue.peek()).toBe(members[fewTombstones]);
    for (let i = 0; i < fewTombstones; i++) discard(queue, members[count - 1 - i] as Member);
    expect(queue.last()).toBe(members[fewTombstones + 1]);
    expect(queue.length).toBe(2);
  });
});

describe('HeapQueue.ahead', () => {
  it('counts the living that go before, up to a length that it may look through', () => {
    const queue = new HeapQueue<Member>(byRank);
    const members = Array.from({ length: 5 }, (_, sequence) => ({ sequence, rank: sequence, isWaiting: true }));
    for (const member of members) queue.push(member);
    discard(queue, members[1] as Member);
    expect(queue.ahead(members[3] as Member, 5)).toBe(2);
    expect(queue.ahead(members[0] as Member, 5)).toBe(0);
    expect(queue.ahead(members[3] as Member, 4)).toBeUndefined();
  });
});
