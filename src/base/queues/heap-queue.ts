/** Any order on a binary heap. */
import TinyQueue from 'tinyqueue';
import type { ItemQueue, Queued } from './item-queue.js';

/** A priority queue: push, shift O(log n); peek, discard O(1) amortized. Tombstones: at most as many as living. */
export class HeapQueue<T extends Queued> implements ItemQueue<T> {
  tombstones = 0;
  private heap: TinyQueue<T>;
  private readonly compare: (a: T, b: T) => number;

  /** `compare` must not throw, and must break its own ties. */
  constructor(compare: (a: T, b: T) => number, members: T[] = []) {
    this.compare = compare;
    this.heap = new TinyQueue(members, compare);
  }

  get length(): number {
    return this.heap.length;
  }

  push(member: T): void {
    this.heap.push(member);
  }

  peek(): T | undefined {
    let member = this.heap.peek();
    while (member !== undefined && !member.isWaiting) {
      this.heap.pop();
      this.tombstones--;
      member = this.heap.peek();
    }
    return member;
  }

  shift(): void {
    this.heap.pop();
  }

  discard(): void {
    this.tombstones++;
    if (this.tombstones * 2 > this.heap.length) {
      this.heap = new TinyQueue(this.members(), this.compare);
      this.tombstones = 0;
    }
  }

  remove(): void {
    this.discard();
  }

  leading(count: number): T[] {
    const leading: T[] = [];
    for (const member of this.heap.data) {
      if (leading.length >= count) break;
      if (member.isWaiting) leading.push(member);
    }
    return leading;
  }

  ahead(member: T, most: number): number | undefined {
    if (this.heap.length > most) return undefined;
    return this.heap.data.filter((other) => other.isWaiting && this.compare(other, member) < 0).length;
  }

  members(): T[] {
    return this.heap.data.filter((member) => member.isWaiting);
  }
}
