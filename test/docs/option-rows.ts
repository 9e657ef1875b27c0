/** Rows of option tables, and how they are written. */

export interface Row {
  readonly key: string;
  /** The words of the error that a wrong value gets. */
  readonly takes: string;
  readonly otherwise: string;
  readonly sentence: string;
}

/** The second column has them. */
const bounds = /[,;] (?:an integer |ms |bytes per second )?(?:from [01] up|above 0(?: and below 1)?|0…1)(?=[.;:,])/;

export function tableOf(rows: readonly Row[]): string {
  const cells = rows.map(({ key, takes, otherwise, sentence }) => [
    key,
    shortOf(takes),
    otherwise,
    sentence.replace(bounds, ''),
  ]);
  const lines = cells.map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
  return ['| key | takes | default | |', '|---|---|---|---|', ...lines].join('\n');
}

/** In fewer words than the error: the default shows how a duration or a size is written, and everybody knows ports. */
function shortOf(takes: string): string {
  return takes
    .replace(/, or a (duration|quantity) like "[^"]*"/, ', or a $1')
    .replace(/\bms above 0, or a duration/, 'a duration above 0')
    .replace('a function that answers at once', 'a synchronous function')
    .replace('a function that returns the saturation', 'a function')
    .replace(/, such as (\w+)\(\{[^}]*\}\)/, ', such as $1()')
    .replace(/^text that is not empty$/, 'text')
    .replace(/^an integer from [01] to 65535$/, 'port')
    .replace(/^a (size|path)(?: from 1 up,)? such as "[^"]*"$/, '$1')
    .replace(/^a duration from "0s" \(for ever\) up, such as "[^"]*"/, 'duration, "0s": for ever')
    .replace(/^a (duration above 0|quantity from 0 \(.*\) up), such as "[^"]*"$/, '$1')
    .replace('true or false', 'true, false')
    .replace(/^(?:one of|an?) /, '');
}

export function textOf(...sentences: readonly string[]): string {
  return sentences.filter(Boolean).join(' ');
}
