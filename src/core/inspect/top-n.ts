/** The first `count` of all that is offered, in order; of equals those that came first. */
export class TopN<T> {
  readonly count: number;
  private kept: T[] = [];
  private readonly compare: (a: T, b: T) => number;

  constructor(count: number, compare: (a: T, b: T) => number) {
    this.count = count;
    this.compare = compare;
  }

  /** O(log count) on average. */
  offer(candidate: T): void {
    if (this.kept.push(candidate) > 2 * this.count + slack) this.kept = this.members;
  }

  get members(): T[] {
    return this.kept.sort(this.compare).slice(0, this.count);
  }
}

/** So that a small count is not sorted at every offer. */
const slack = 32;
