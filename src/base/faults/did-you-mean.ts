/** Letters to insert, delete, replace or swap with their neighbour to make `b` of `a`. O(|a|·|b|). */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Infinity;
  for (let row = 1; row <= a.length; row++) {
    const distances = [row];
    rows.push(distances);
    for (let column = 1; column <= b.length; column++) {
      const isSwap = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      distances.push(
        Math.min(
          at(row - 1, column) + 1,
          at(row, column - 1) + 1,
          at(row - 1, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1),
          isSwap ? at(row - 2, column - 2) + 1 : Infinity,
        ),
      );
    }
  }
  return at(a.length, b.length);
}

/** The candidate that `word` was probably meant to be: letter case aside, at most one letter in four is wrong. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > 60) return undefined;
  const lower = word.toLowerCase();
  let best: string | undefined;
  let fewest = word.length < 3 ? 1 : Math.max(2, Math.floor(word.length / 4) + 1);
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= fewest) continue;
    const distance = editDistance(lower, candidate.toLowerCase());
    if (distance < fewest) {
      fewest = distance;
      best = candidate;
    }
  }
  return best;
}

/** What the names of an option in code and in files have in common: `fairness` and `fairnessPolicyRef`. */
function coreOf(name: string): string {
  const lower = name.toLowerCase().replaceAll(/[-_]|(?<=.)priority|^priority(?=.)/g, '');
  return lower.replace(/(?<=.)(?:policy)?(?:(?:plugin)?refs?)?$|(?<=.)ms$/, '').replace(/s$/, '');
}

/** Another spelling of `word`, else the nearest, else "max" before it, else the only one that begins with it. */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const best =
    candidates.find((candidate) => word.length <= 60 && coreOf(candidate) === coreOf(word)) ??
    nearest(word, candidates) ??
    candidates.find((candidate) => candidate.toLowerCase() === `max${word.toLowerCase()}`);
  if (best !== undefined || word.length < 3 || word.length > 60) return best;
  const lower = word.toLowerCase();
  const beginnings = candidates.filter((candidate) => candidate.toLowerCase().startsWith(lower));
  return beginnings.length === 1 ? beginnings[0] : undefined;
}

export function didYouMean(word: string, candidates: readonly string[]): string {
  const suggestion = closest(word, candidates);
  return suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`;
}

export function expectedWord(word: unknown, words: readonly string[]): string {
  const known = words.map((each) => `"${each}"`).join(', ');
  return `one of ${known}${typeof word === 'string' ? didYouMean(word, words) : ''}`;
}
