import { describe, expect, it } from 'vitest';
import { type Linked, LinkedList } from '../../../src/base/queues/linked-list.js';
import { Random } from '../../property/random.js';

class Bead implements Linked<Bead> {
  previous: Bead | undefined = undefined;
  next: Bead | undefined = undefined;
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

function names(list: LinkedList<Bead>): string {
  const forward = [...list].map(({ name }) => name).join('');
  let backward = '';
  for (let bead = list.last; bead !== undefined; bead = bead.previous) backward = bead.name + backward;
  expect(backward).toBe(forward);
  expect(list.size).toBe(forward.length);
  return forward;
}

describe('LinkedList', () => {
  it.each([
    ['the first', 0, 'bcd'],
    ['one in the middle', 1, 'acd'],
    ['the last', 3, 'abc'],
  ])('keeps the order when %s is removed', (_, index, rest) => {
    const list = new LinkedList<Bead>();
    const beads = ['a', 'b', 'c', 'd'].map((name) => new Bead(name));
    for (const bead of beads) list.push(bead);
    list.remove(beads[index] as Bead);
    expect(names(list)).toBe(rest);
    list.push(beads[index] as Bead);
    expect(names(list)).toBe(rest + 'abcd'[index]);
  });

  it('takes a member before all others, also where there is none', () => {
    const list = new LinkedList<Bead>();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => new Bead(name)) as [Bead, Bead, Bead];
    list.unshift(b);
    list.unshift(a);
    list.push(c);
    expect(names(list)).toBe('abc');
    list.remove(b);
    list.unshift(b);
    expect(names(list)).toBe('bac');
  });

  it('is empty again when the only member goes', () => {
    const list = new LinkedList<Bead>();
    const bead = new Bead('a');
    list.push(bead);
    list.remove(bead);
    expect([list.first, list.last, list.size]).toEqual([undefined, undefined, 0]);
  });

  it('takes members over from a list that was abandoned, whatever links they carry', () => {
    const abandoned = new LinkedList<Bead>();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => new Bead(name)) as [Bead, Bead, Bead];
    for (const bead of [a, b, c]) abandoned.push(bead);
    const outer = new LinkedList<Bead>();
    const inner = new LinkedList<Bead>();
    outer.push(a);
    inner.push(b);
    outer.push(c);
    expect(names(outer)).toBe('ac');
    expect(names(inner)).toBe('b');
    inner.remove(b);
    expect(names(inner)).toBe('');
    expect(names(outer)).toBe('ac');
  });

  it('rotates: the first goes behind all others', () => {
    const list = new LinkedList<Bead>();
    expect(list.rotate()).toBeUndefined();
    const beads = ['a', 'b', 'c'].map((name) => new Bead(name));
    for (const bead of beads) list.push(bead);
    expect([list.rotate(), [...list].map(({ name }) => name).join('')]).toEqual([beads[0], 'bca']);
  });

  it('does what an array does, through a long history', () => {
    const random = new Random(3);
    const list = new LinkedList<Bead>();
    let model: Bead[] = [];
    for (let i = 0; i < 2000; i++) {
      if (random.chance(0.52) || model.length === 0) {
        const bead = new Bead(String.fromCharCode(97 + random.int(26)));
        list.push(bead);
        model.push(bead);
      } else {
        const gone = random.pick(model);
        list.remove(gone);
        model = model.filter((bead) => bead !== gone);
      }
      expect([...list]).toEqual(model);
    }
  });
});
