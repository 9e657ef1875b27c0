/** Parts of frames: short names, and others that stand for fairness IDs where these must not be seen; bounded rows. */

/** What stands for a fairness ID. */
export type NameOf = (fairnessId: string) => string;

const longestName = 64;

/** Bounded however long a client made its name. */
export function shortenName(name: string): string {
  return name.length <= longestName ? name : `${name.slice(0, longestName - 1)}…`;
}

/** Rows of a table at most. */
const mostRows = 24;

/** All, or of too many the first by that order. */
export function mostNeedy<T>(all: readonly T[], order: (a: T, b: T) => number): readonly T[] {
  return all.length <= mostRows ? all : [...all].sort(order).slice(0, mostRows);
}

/** The figures of those names, as they are. */
export function pick<T, K extends keyof T>(from: T, ...names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as Pick<T, K>;
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
