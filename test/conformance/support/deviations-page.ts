/** The lists of `test/conformance/README.md`, made from `deviations.json` and `not-compared.ts`. */
import { deviations } from './deviations.js';
import { notCompared } from './not-compared.js';

const begin = '<!-- made by npx vitest run test/conformance/page.test.ts -u -->';
const end = '<!-- end -->';

/** The page with its lists made anew; what stands around them is left alone. */
export function withLists(page: string): string {
  const start = page.indexOf(begin);
  const stop = page.indexOf(end);
  if (start < 0 || stop < start) throw new Error(`the page must hold ${begin} and ${end}`);
  return `${page.slice(0, start)}${begin}\n\n${lists()}\n\n${page.slice(stop)}`;
}

function lists(): string {
  return [
    '## Deviations',
    bullets(rowsByReason(deviations.map(({ reason, kind }) => [reason, code(kind)]))),
    '## Not compared',
    'Keys of vectors that play, which no runner looks at because there is nothing here to compare them with.',
    bullets(rowsByReason(uncompared())),
  ].join('\n\n');
}

/** A reason, and what it excuses; the conditions on the vectors stand in `deviations.json`. */
type Excuse = readonly [reason: string, vectors: string];

/** Each reason once, where it stands first, with all that it excuses. */
function rowsByReason(excuses: readonly Excuse[]): string[][] {
  const groups = new Map<string, string[]>();
  for (const [reason, vectors] of excuses) groups.set(reason, [...(groups.get(reason) ?? []), vectors]);
  return [...groups].map(([reason, vectors]) => [reason, [...new Set(vectors)].join(', ')]);
}

function uncompared(): Excuse[] {
  return Object.entries(notCompared).flatMap(([kind, keys]) =>
    Object.entries(keys).map(([key, reason]): Excuse => [reason, `${code(kind)}: ${code(key)}`]),
  );
}

function code(text: string): string {
  return `\`${text}\``;
}

function bullets(rows: readonly (readonly string[])[]): string {
  return rows.map(([reason, vectors]) => `* ${reason} ${vectors}`).join('\n');
}
