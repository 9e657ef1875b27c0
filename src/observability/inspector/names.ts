/**
 * Names and figures as frames show them: short, figures null where there is none; and names that stand for fairness IDs
 * where these must not be seen.
 */

const longestName = 64;

/** Bounded however long a client made its name. */
export function shortenName(name: string): string {
  return name.length <= longestName ? name : `${name.slice(0, longestName - 1)}…`;
}

/** Beyond this the numbering begins anew, so that names cannot be used to fill memory. */
const mostAliases = 10_000;

/** `flow 1`, `flow 2`, …, as they are shown first; the same name for the same ID while it is remembered. */
export class Aliases {
  private readonly numbers = new Map<string, number>();

  of(fairnessId: string): string {
    let number = this.numbers.get(fairnessId);
    if (number === undefined) {
      if (this.numbers.size >= mostAliases) this.numbers.clear();
      number = this.numbers.size + 1;
      this.numbers.set(fairnessId, number);
    }
    return `flow ${number}`;
  }
}

export function rounded(figure: number, digits = 1): number {
  return Number(figure.toFixed(digits));
}

export function orNull(figure: number | undefined): number | null {
  return figure === undefined ? null : rounded(figure);
}

/** Null: unlimited. */
export function limitOrNull(limit: number): number | null {
  return limit === Number.POSITIVE_INFINITY ? null : limit;
}
