/**
 * Arrival order.
 *
 *     front │ early, backwards │ rest, whose first places are free        most flows have one waiting, and no arrays
 */
import { placesBefore } from '../places-before.js';
import { fewTombstones, type ItemQueue, type Queued } from './item-queue.js';

/** Free places that an array may keep, whatever its length. */
const fewFree = 32;

/** Members by sequence number. All O(1), discard amortized. Invariant: without `front` nothing is behind it. */
export class FifoQueue<T extends Queued> implements ItemQueue<T> {
  tombstones = 0;
  private front: T | undefined = undefined;
  /** Those that were first until a member came that is older; the last one goes next. */
  private early: T[] | undefined = undefined;
  private rest: (T | undefined)[] | undefined = undefined;
  /** The first places of `rest`, whose members have left. */
  private free = 0;

  get length(): number {
    return (this.front === undefined ? 0 : 1) + this.behind;
  }

  private get behind(): number {
    return (this.early?.length ?? 0) + (this.rest === undefined ? 0 : this.rest.length - this.free);
  }

  private at(place: number): T | undefined {
    const { early, rest, free } = this;
    if (early === undefined) return rest?.[free + place];
    return place < early.length ? early[early.length - 1 - place] : rest?.[free + place - early.length];
  }

  push(member: T): void {
    if (this.front === undefined) {
      this.front = member;
      return;
    }
    const last = this.at(this.behind - 1) ?? this.front;
    if (last.sequence > member.sequence) this.insert(member);
    else this.append(member);
  }

  /** Adds a member behind all others, whatever its number. */
  append(member: T): void {
    if (this.front === undefined) this.front = member;
    else if (this.rest === undefined) this.rest = [member];
    else this.rest.push(member);
  }

  peek(): T | undefined {
    while (this.front !== undefined && !this.front.isWaiting) {
      this.front = this.next();
      this.tombstones--;
    }
    return this.front;
  }

  last(): T | undefined {
    let member = this.at(this.behind - 1);
    while (member !== undefined && !member.isWaiting) {
      if (this.rest === undefined || this.rest.length === this.free) this.early?.shift();
      else this.rest.pop();
      this.tombstones--;
      member = this.at(this.behind - 1);
    }
    return member ?? this.peek();
  }

  *newestFirst(): Generator<T, void, undefined> {
    for (let i = this.behind - 1; i >= 0; i--) {
      const member = this.at(i);
      if (member?.isWaiting === true) yield member;
    }
    if (this.front?.isWaiting === true) yield this.front;
  }

  shift(): void {
    this.front = this.rest && this.next();
  }

  remove(member: T): void {
    if (this.front === member) this.front = this.rest && this.next();
    else this.discard();
  }

  discard(): void {
    this.tombstones++;
    if (this.tombstones > fewTombstones && this.tombstones > this.behind / 2) this.refill(this.members());
  }

  leading(count: number): T[] {
    const leading: T[] = [];
    for (let i = 0, member = this.front; member !== undefined && leading.length < count; member = this.at(i++))
      if (member.isWaiting) leading.push(member);
    return leading;
  }

  ahead({ sequence }: T, most: number): number | undefined {
    let living = 0;
    for (let i = 0, member = this.front; member !== undefined && i <= most; member = this.at(i++)) {
      if (member.sequence >= sequence) return living;
      if (member.isWaiting) living++;
    }
    return undefined;
  }

  members(): T[] {
    const { front, early = [], rest = [], free } = this;
    return [front, ...[...early].reverse(), ...rest.slice(free)].filter((member) => member?.isWaiting) as T[];
  }

  /** For the rare member that came before others: O(1) for one older than all, else it moves those behind it. */
  private insert(member: T): void {
    this.early ??= [];
    this.rest ??= [];
    const { front, early, rest, free } = this;
    const place = placesBefore(this.behind, (each) => (this.at(each) as T).sequence < member.sequence);
    if (front !== undefined && front.sequence > member.sequence) {
      early.push(front);
      this.front = member;
    } else if (place < early.length) early.splice(early.length - place, 0, member);
    else rest.splice(free + place - early.length, 0, member);
  }

  /** Takes the first behind the front. The array is made anew when most of it is free, which is O(1) amortized. */
  private next(): T | undefined {
    const { early, rest, free } = this;
    if (early !== undefined && early.length > 0) return early.pop();
    if (rest === undefined || free === rest.length) return undefined;
    const first = rest[free];
    rest[free] = undefined;
    this.free = free + 1;
    if (this.free >= fewFree && this.free * 2 > rest.length) {
      this.rest = rest.slice(this.free);
      this.free = 0;
    }
    return first;
  }

  private refill(members: T[]): void {
    this.tombstones = 0;
    this.front = members.shift();
    this.early = undefined;
    this.rest = members;
    this.free = 0;
  }
}
