/** The first `count` of all that is offered, in order. */
export class TopN<T> {
  readonly members: T[] = [];
  readonly count: number;
  private readonly compare: (a: T, b: T) => number;

  constructor(count: number, compare: (a: T, b: T) => number) {
    this.count = count;
    this.compare = compare;
  }

  /** False when it is not among them. O(count), and O(1) for most. */
  offer(candidate: T): boolean {
    const { members, count, compare } = this;
    const last = members[members.length - 1];
    if (count === 0 || (members.length >= count && last !== undefined && compare(candidate, last) >= 0)) return false;
    let place = members.length;
    while (place > 0 && compare(candidate, members[place - 1] as T) < 0) place--;
    members.splice(place, 0, candidate);
    if (members.length > count) members.pop();
    return true;
  }
}
