/** Arrival order on a double-ended queue. */
import Denque from 'denque';
import { fewTombstones, type ItemQueue, type Queued } from './item-queue.js';

/** Members in the order of their sequence numbers, which nearly always is the order in which they are pushed. push, peek and shift O(1); discard O(1) amortized. */
export class FifoQueue<T extends Queued> implements ItemQueue<T> {
  private line = new Denque<T>();
  private tombstones = 0;

  push(member: T): void {
    const last = this.line.peekBack();
    if (last !== undefined && last.sequence > member.sequence) this.insert(member);
    else this.line.push(member);
  }

  /** Adds a member behind all others, whatever its number. */
  append(member: T): void {
    this.line.push(member);
  }

  peek(): T | undefined {
    let member = this.line.peekFront();
    while (member !== undefined && !member.isWaiting) {
      this.line.shift();
      this.tombstones--;
      member = this.line.peekFront();
    }
    return member;
  }

  /** The living member that came last. */
  last(): T | undefined {
    let member = this.line.peekBack();
    while (member !== undefined && !member.isWaiting) {
      this.line.pop();
      this.tombstones--;
      member = this.line.peekBack();
    }
    return member;
  }

  shift(): void {
    this.line.shift();
  }

  /** Takes out a member that no longer waits, most often the first. */
  remove(member: T): void {
    if (this.line.peekFront() === member) this.line.shift();
    else this.discard();
  }

  discard(): void {
    this.tombstones++;
    if (this.tombstones > fewTombstones && this.tombstones * 2 > this.line.length) {
      this.line = new Denque(this.members());
      this.tombstones = 0;
    }
  }

  /** For the rare member that came before others: O(those that came before it). */
  private insert(member: T): void {
    const before: T[] = [];
    for (let first = this.line.peekFront(); first !== undefined && first.sequence < member.sequence; first = this.line.peekFront()) {
      before.push(first);
      this.line.shift();
    }
    this.line.unshift(member);
    while (before.length > 0) this.line.unshift(before.pop() as T);
  }

  members(): T[] {
    return this.line.toArray().filter((member) => member.isWaiting);
  }
}
