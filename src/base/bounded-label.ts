/** Keeps the values of one label few, whatever clients send. */
export const otherLabel = 'other';

/** Longer values are never kept apart: a thousand long names fill memory too. */
const longestValue = 256;

/** The first `max` values stand for ever, the rest is `other`; pinned ones take no place. Source: llm-d-router. */
export class BoundedLabel {
  private readonly admitted = new Set<string>();
  private readonly pinned: ReadonlySet<string>;
  private readonly max: number;

  constructor(max: number, pinned: Iterable<string> = []) {
    this.max = max;
    this.pinned = new Set(pinned);
  }

  /** True when no other value will be kept apart. */
  get isFull(): boolean {
    return this.admitted.size >= this.max;
  }

  /** The values that are kept apart so far, and the pinned ones. */
  *kept(): Generator<string, void, undefined> {
    for (const value of this.pinned) yield value;
    for (const value of this.admitted) if (!this.pinned.has(value)) yield value;
  }

  of(value: string): string {
    if (value === '' || value === otherLabel || this.admitted.has(value) || this.pinned.has(value)) return value;
    if (this.admitted.size >= this.max || value.length > longestValue) return otherLabel;
    // Flows that many fairness IDs share have names that no fairness ID can have by HTTP.
    if (value.charCodeAt(0) === 0) return otherLabel;
    this.admitted.add(value);
    return value;
  }
}
