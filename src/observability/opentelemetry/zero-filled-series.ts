/** A series once reported stays, as 0 when it is gone, because SDKs repeat the last value of one not observed. */
import type { Attributes } from '@opentelemetry/api';

export type Figure = readonly [value: number, of: Attributes];

/** Its callers keep the attributes few. */
export class ZeroFilledSeries {
  private readonly known = new Map<string, Attributes>();

  /** The figures, those with the same attributes added up, and 0 for every other row that was ever here. */
  with(figures: readonly Figure[]): Iterable<Figure> {
    const sums = new Map<string, number>();
    for (const [value, of] of figures) {
      const key = Object.values(of).join('\u0000');
      this.known.set(key, of);
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
    return [...this.known].map(([key, of]): Figure => [sums.get(key) ?? 0, of]);
  }
}
