/** Names as frames show them. */

const longestName = 64;

/** Bounded however long a client made its name. */
export function shortenName(name: string): string {
  return name.length <= longestName ? name : `${name.slice(0, longestName - 1)}…`;
}
