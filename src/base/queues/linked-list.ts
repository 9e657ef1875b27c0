/**
 * A doubly linked list through the members themselves: O(1) removal from the middle, nothing allocated.
 *
 *     first ⇄ … ⇄ last        a member is in one list at a time; its links belong to that list
 *
 * Registers of running requests are lists. A Set or a Map that members enter and leave for ever makes a new table every
 * few members, and an old one keeps the next alive with all requests of its time, which short collections of the heap
 * cannot free then (`test/structural/garbage.test.ts`). A member that has left has no links.
 */

/** The links of a member. Written by the list alone. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
}

export class LinkedList<T extends Linked<T>> {
  first: T | undefined = undefined;
  last: T | undefined = undefined;
  size = 0;

  push(member: T): void {
    member.previous = this.last;
    member.next = undefined;
    if (this.last === undefined) this.first = member;
    else this.last.next = member;
    this.last = member;
    this.size++;
  }

  unshift(member: T): void {
    member.previous = undefined;
    member.next = this.first;
    if (this.first === undefined) this.last = member;
    else this.first.previous = member;
    this.first = member;
    this.size++;
  }

  /** `member` must be in this list. */
  remove(member: T): void {
    const { previous, next } = member;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.last = previous;
    else next.previous = previous;
    member.previous = undefined;
    member.next = undefined;
    this.size--;
  }

  /** Puts the first behind all others, and returns it. */
  rotate(): T | undefined {
    const { first } = this;
    if (first === undefined) return undefined;
    this.remove(first);
    this.push(first);
    return first;
  }

  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (let member = this.first; member !== undefined; member = member.next) yield member;
  }
}
