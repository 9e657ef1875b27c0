/**
 * Shares by a key, least first; equal keys by a tie number.
 *
 *               0
 *      1     2     3     4          4 children a node: half the levels of a binary heap, and a node's children are neighbours in memory
 *
 * The keys stand in arrays of their own, so that sifting does not visit the shares that it passes.
 * Invariant: `share.place` is its index here, and −1 for shares in no heap; a share is in one heap at a time.
 */
import type { Share } from './share.js';

const arity = 4;

export class ShareHeap {
  private readonly shares: Share[] = [];
  private readonly keys: number[] = [];
  private readonly ties: number[] = [];

  get size(): number {
    return this.shares.length;
  }

  get first(): Share | undefined {
    return this.shares[0];
  }

  /** The least key; NaN without shares. */
  get firstKey(): number {
    return this.keys.length > 0 ? (this.keys[0] as number) : Number.NaN;
  }

  /** O(log n). */
  push(share: Share, key: number, tie: number): void {
    this.rise(this.shares.length, share, key, tie);
  }

  /** O(log n). `share` must be in this heap. */
  update(share: Share, key: number, tie: number): void {
    const { place } = share;
    const before = this.keys[place] as number;
    if (key < before || (key === before && tie < (this.ties[place] as number))) this.rise(place, share, key, tie);
    else this.sink(place, share, key, tie);
  }

  /** O(log n). `share` must be in this heap. */
  remove(share: Share): void {
    const { place } = share;
    const last = this.shares.pop() as Share;
    const key = this.keys.pop() as number;
    const tie = this.ties.pop() as number;
    share.place = -1;
    if (last === share) return;
    const parent = (place - 1) >> 2;
    if (place > 0 && this.isBefore(key, tie, parent)) this.rise(place, last, key, tie);
    else this.sink(place, last, key, tie);
  }

  /** Takes the same amount off every key. O(n). */
  lower(amount: number): void {
    for (let i = 0; i < this.keys.length; i++) this.keys[i] = (this.keys[i] as number) - amount;
  }

  /** Removes and returns all. O(n). */
  clear(): Share[] {
    const all = this.shares.splice(0);
    this.keys.length = 0;
    this.ties.length = 0;
    for (const share of all) share.place = -1;
    return all;
  }

  private isBefore(key: number, tie: number, place: number): boolean {
    const other = this.keys[place] as number;
    return key < other || (key === other && tie < (this.ties[place] as number));
  }

  private rise(from: number, share: Share, key: number, tie: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 2;
      if (!this.isBefore(key, tie, parent)) break;
      this.move(parent, place);
      place = parent;
    }
    this.put(place, share, key, tie);
  }

  private sink(from: number, share: Share, key: number, tie: number): void {
    const { length } = this.shares;
    let place = from;
    for (;;) {
      const firstChild = place * arity + 1;
      if (firstChild >= length) break;
      const end = Math.min(firstChild + arity, length);
      let least = firstChild;
      for (let child = firstChild + 1; child < end; child++) {
        if (this.isBefore(this.keys[child] as number, this.ties[child] as number, least)) least = child;
      }
      if (this.isBefore(key, tie, least)) break;
      this.move(least, place);
      place = least;
    }
    this.put(place, share, key, tie);
  }

  private move(from: number, to: number): void {
    this.put(to, this.shares[from] as Share, this.keys[from] as number, this.ties[from] as number);
  }

  private put(place: number, share: Share, key: number, tie: number): void {
    this.shares[place] = share;
    this.keys[place] = key;
    this.ties[place] = tie;
    share.place = place;
  }
}
