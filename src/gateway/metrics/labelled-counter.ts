/** Numbers by the values of a few labels: an increment costs one look into a map. */

/** Longer values are not kept apart: a thousand long names fill memory too. */
const longestValue = 256;

/**
 * Invariant: at most `most` rows. Beyond them, and for long values, the first label says `other`; the values of the
 * further labels are few by themselves.
 */
export class LabelledCounter {
  readonly labelNames: readonly string[];
  private readonly most: number;
  private readonly counted = new Map<string, { readonly labels: Readonly<Record<string, string>>; value: number }>();

  constructor(most: number, ...labelNames: string[]) {
    this.most = most;
    this.labelNames = labelNames;
  }

  /** True when the row is new. */
  add(by: number, first: string, second = ''): boolean {
    const row = this.counted.get(second === '' ? first : `${first}\u0000${second}`);
    if (row === undefined) return this.make(by, first, second);
    row.value += by;
    return false;
  }

  rows(): Iterable<{ readonly labels: Readonly<Record<string, string>>; readonly value: number }> {
    return this.counted.values();
  }

  private make(by: number, first: string, second: string): boolean {
    const isOneTooMany = this.counted.size >= this.most || first.length > longestValue;
    if (isOneTooMany && first !== 'other') return this.add(by, 'other', second);
    const [name = '', otherName] = this.labelNames;
    const labels = { [name]: first, ...(otherName === undefined ? {} : { [otherName]: second }) };
    this.counted.set(second === '' ? first : `${first}\u0000${second}`, { labels, value: by });
    return true;
  }
}
