/**
 * Arrival order.
 *
 *     front │ rest: denque        most flows have one request waiting: a deque is made for the second
 */
import Denque from 'denque';
import { fewTombstones, type ItemQueue, type Queued } from './item-queue.js';

/** How many of `line` came before `member`. O(log n). */
function placeOf<T extends Queued>({ sequence }: T, line: Denque<T>): number {
  let low = 0;
  let high = line.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((line.peekAt(middle) as T).sequence < sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Members in the order of their sequence numbers, which nearly always is the order in which they are pushed. push,
 * peek, shift and remove of the first O(1); discard O(1) amortized. Invariant: `front` is undefined only when `rest` is
 * empty.
 */
export class FifoQueue<T extends Queued> implements ItemQueue<T> {
  tombstones = 0;
  private front: T | undefined = undefined;
  private rest: Denque<T> | undefined = undefined;

  get length(): number {
    return (this.front === undefined ? 0 : 1) + (this.rest?.length ?? 0);
  }

  push(member: T): void {
    if (this.front === undefined) {
      this.front = member;
      return;
    }
    const last = this.rest?.peekBack() ?? this.front;
    if (last.sequence > member.sequence) this.insert(member);
    else this.append(member);
  }

  /** Adds a member behind all others, whatever its number. */
  append(member: T): void {
    if (this.front === undefined) this.front = member;
    else if (this.rest === undefined) this.rest = new Denque([member]);
    else this.rest.push(member);
  }

  peek(): T | undefined {
    while (this.front !== undefined && !this.front.isWaiting) {
      this.front = this.rest?.shift();
      this.tombstones--;
    }
    return this.front;
  }

  /** The living member that came last. */
  last(): T | undefined {
    let member = this.rest?.peekBack();
    while (member !== undefined && !member.isWaiting) {
      this.rest?.pop();
      this.tombstones--;
      member = this.rest?.peekBack();
    }
    return member ?? this.peek();
  }

  *newestFirst(): Generator<T, void, undefined> {
    for (let i = (this.rest?.length ?? 0) - 1; i >= 0; i--) {
      const member = this.rest?.peekAt(i) as T;
      if (member.isWaiting) yield member;
    }
    if (this.front?.isWaiting === true) yield this.front;
  }

  shift(): void {
    this.front = this.rest?.shift();
  }

  remove(member: T): void {
    if (this.front === member) this.front = this.rest?.shift();
    else this.discard();
  }

  discard(): void {
    this.tombstones++;
    if (this.tombstones > fewTombstones && this.tombstones > (this.rest?.length ?? 0) / 2) this.refill(this.members());
  }

  leading(count: number): T[] {
    const leading: T[] = [];
    for (
      let i = 0, member = this.front;
      member !== undefined && leading.length < count;
      member = this.rest?.peekAt(i++)
    ) {
      if (member.isWaiting) leading.push(member);
    }
    return leading;
  }

  ahead({ sequence }: T, most: number): number | undefined {
    let living = 0;
    for (let i = 0, member = this.front; member !== undefined && i <= most; member = this.rest?.peekAt(i++)) {
      if (member.sequence >= sequence) return living;
      if (member.isWaiting) living++;
    }
    return undefined;
  }

  members(): T[] {
    const all = this.front === undefined ? [] : [this.front, ...(this.rest?.toArray() ?? [])];
    return all.filter((member) => member.isWaiting);
  }

  /** For the rare member that came before others. Moves those ahead of it or those behind, whichever are fewer. */
  private insert(member: T): void {
    this.rest ??= new Denque();
    const { front, rest } = this;
    if (front === undefined || front.sequence < member.sequence) {
      rest.splice(placeOf(member, rest), 0, member);
      return;
    }
    rest.unshift(front);
    this.front = member;
  }

  private refill(members: T[]): void {
    this.tombstones = 0;
    this.front = members.shift();
    this.rest = new Denque(members);
  }
}
