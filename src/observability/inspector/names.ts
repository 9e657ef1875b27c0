/** Names as frames show them; and names that stand for fairness IDs where these must not be seen. */

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
