/** The survival curve of output lengths, by model. Invariant: an expected length is above the age it is asked for. */

/** Answers before a curve says something. */
const fewest = 8;
/** Above this all counts are halved, so that a curve follows what changes. */
const most = 1024;
const perDoubling = 4;
const buckets = 21 * perDoubling;
/** Models beyond this begin anew. */
const mostModels = 1000;

interface Curve {
  total: number;
  readonly counts: Float64Array;
  readonly tokens: Float64Array;
}

export class OutputLengths {
  private readonly curves = new Map<string, Curve>();

  /** An answer ended after so many tokens. */
  learn(model: string, tokens: number): void {
    const curve = this.curves.get(model) ?? this.begin(model);
    const bucket = Math.min(Math.floor(Math.log2(1 + tokens) * perDoubling), buckets - 1);
    curve.total++;
    curve.counts[bucket]! += 1;
    curve.tokens[bucket]! += tokens;
    if (curve.total <= most) return;
    curve.total /= 2;
    for (const figures of [curve.counts, curve.tokens]) figures.set(figures.map((value) => value / 2));
  }

  /** The mean length of answers that are longer than `age`; undefined while too few are known. O(buckets). */
  expected(model: string, age: number): number | undefined {
    const curve = this.curves.get(model);
    if (curve === undefined || curve.total < fewest) return undefined;
    let count = 0;
    let tokens = 0;
    for (let i = buckets - 1; i >= 0; i--) {
      const [here, taken] = [curve.counts[i]!, curve.tokens[i]!];
      if (here > 0 && taken <= age * here) break;
      count += here;
      tokens += taken;
    }
    // Longer than any: nothing is known but that long answers go on.
    return count === 0 ? age * 1.25 + 1 : tokens / count;
  }

  private begin(model: string): Curve {
    if (this.curves.size >= mostModels) this.curves.clear();
    const curve = { total: 0, counts: new Float64Array(buckets), tokens: new Float64Array(buckets) };
    this.curves.set(model, curve);
    return curve;
  }
}
