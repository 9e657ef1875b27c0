/**
 * How much of something there was over time, made from spans that each have an amount. It gives the integral between
 * two instants in O(log n).
 *
 *     spans      ├──2──┤   ├─1─┤            changes at      a   b   c   d
 *                    ├────3────┤            amount after    2   5   3   …
 */
import { placesBefore } from '../../base/places-before.js';

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  readonly amount: number;
}

/** From an instant on there is so much more. */
interface Change {
  readonly atMs: number;
  readonly by: number;
}

/** There is the amount of each span from its beginning to its end. */
export function courseOf(spans: readonly Span[]): LoadCourse {
  return new LoadCourse(
    spans.flatMap(({ fromMs, toMs, amount }) => [
      { atMs: fromMs, by: amount },
      { atMs: toMs, by: -amount },
    ]),
  );
}

export class LoadCourse {
  /** Instants of changes in order, the amount from each on, and the integral up to it. */
  private readonly atMs: Float64Array;
  private readonly amounts: Float64Array;
  private readonly areas: Float64Array;

  constructor(given: readonly Change[]) {
    const changes = [...given].sort((a, b) => a.atMs - b.atMs);
    this.atMs = Float64Array.from(changes, ({ atMs }) => atMs);
    this.amounts = new Float64Array(changes.length);
    this.areas = new Float64Array(changes.length);
    let [amount, area] = [0, 0];
    for (const [index, { atMs, by }] of changes.entries()) {
      if (index > 0) area += amount * (atMs - (this.atMs[index - 1] ?? 0));
      amount += by;
      this.amounts[index] = amount;
      this.areas[index] = area;
    }
  }

  /** The most that there was at once. Spans that end when others begin do not overlap with them. */
  get peak(): number {
    return this.amounts.reduce(
      (most, amount, index) => (this.atMs[index + 1] === this.atMs[index] ? most : Math.max(most, amount)),
      0,
    );
  }

  /** The mean between two instants, the first before the second. */
  mean(fromMs: number, toMs: number): number {
    return (this.areaUntil(toMs) - this.areaUntil(fromMs)) / (toMs - fromMs);
  }

  /** What has come after one instant and up to another. */
  gained(afterMs: number, untilMs: number): number {
    return this.amountAt(untilMs) - this.amountAt(afterMs);
  }

  private amountAt(atMs: number): number {
    return this.amounts[lastUpTo(this.atMs, atMs)] ?? 0;
  }

  private areaUntil(untilMs: number): number {
    const index = lastUpTo(this.atMs, untilMs);
    if (index < 0) return 0;
    return (this.areas[index] ?? 0) + (this.amounts[index] ?? 0) * (untilMs - (this.atMs[index] ?? 0));
  }
}

/** The index of the last value that is not above `most`; -1 when there is none. */
function lastUpTo(values: Float64Array, most: number): number {
  return placesBefore(values.length, (place) => (values[place] ?? 0) <= most) - 1;
}
