/** Names as frames show them: short, and others that stand for fairness IDs where these must not be seen. */

/** What stands for a fairness ID. */
export type NameOf = (fairnessId: string) => string;

const longestName = 64;

/** Bounded however long a client made its name. */
export function shortenName(name: string): string {
  return name.length <= longestName ? name : `${name.slice(0, longestName - 1)}…`;
}

/** Beyond this the numbering begins anew, so that names cannot be used to fill memory. */
const mostAliases = 10_000;

/** `flow 1`, `flow 2`, …, as they are shown first; the same name for the same ID while it is remembered. */
export function aliases(): NameOf {
  const numbers = new Map<string, number>();
  return (fairnessId) => {
    if (!numbers.has(fairnessId)) {
      if (numbers.size >= mostAliases) numbers.clear();
      numbers.set(fairnessId, numbers.size + 1);
    }
    return `flow ${numbers.get(fairnessId)}`;
  };
}
