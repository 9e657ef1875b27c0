/** The colours of flows. */

const tintCount = 12;
const tints = new Map<string, number>();

/** Forgets the colours of flows that are not shown any more, so that those that are can have one each. */
export function keepTints(shown: readonly string[]): void {
  if (tints.size < 4 * tintCount) return;
  const kept = new Set(shown);
  for (const name of tints.keys()) if (!kept.has(name)) tints.delete(name);
}

/** The same colour for the same flow wherever it stands, and one that the fewest others have. */
export function tintOf(name: string): string {
  let tint = tints.get(name);
  if (tint === undefined) {
    const uses = new Array<number>(tintCount).fill(0);
    for (const used of tints.values()) uses[used] = (uses[used] ?? 0) + 1;
    tint = uses.indexOf(Math.min(...uses));
    tints.set(name, tint);
  }
  return `t${tint}`;
}
