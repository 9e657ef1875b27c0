/** Arrival order on a double-ended queue. */
import Denque from 'denque';
import { fewTombstones, type ItemQueue, type Queued } from './item-queue.js';

/** A FIFO. push, peek and shift O(1); discard O(1) amortized. */
export class FifoQueue<T extends Queued> implements ItemQueue<T> {
  private line = new Denque<T>();
  private tombstones = 0;

  push(member: T): void {
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

  discard(): void {
    this.tombstones++;
    if (this.tombstones > fewTombstones && this.tombstones * 2 > this.line.length) {
      this.line = new Denque(this.members());
      this.tombstones = 0;
    }
  }

  members(): T[] {
    return this.line.toArray().filter((member) => member.isWaiting);
  }
}
