/** Steps in the order in which they can be played: time and arrival numbers only run forward here. */

/** The same steps; those of one kind that follow each other are sorted by `key`. */
export function sortRuns<S extends { readonly op: string }>(
  steps: readonly S[],
  op: string,
  key: (step: S) => number,
): S[] {
  const sorted: S[] = [];
  let run: S[] = [];
  const finish = (): void => {
    sorted.push(...run.sort((a, b) => key(a) - key(b)));
    run = [];
  };
  for (const step of steps) {
    if (step.op === op) run.push(step);
    else {
      finish();
      sorted.push(step);
    }
  }
  finish();
  return sorted;
}
