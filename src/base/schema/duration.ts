/** Spans of time as people write them, in Go's notation: `'60s'`, `'1m30s'`, `'1.5h'`, `'200ms'`. */

/** A span of time: ms as a number, or Go's notation (`'60s'`, `'1m30s'`, `'200ms'`). */
export type Duration = number | string;

const notation = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/;
const part = /(\d*)\.?(\d*)([a-zµμ]+)/g;

/** Nobody means a longer text as a duration. */
const longestText = 60;

const nanosecondsOf: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n, // U+00B5, the micro sign
  μs: 1_000n, // U+03BC, the letter mu
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

/** The longest span that Go's 64 bits of nanoseconds hold: 292 years. */
const mostNanoseconds = 2n ** 63n - 1n;

/** Milliseconds, maybe negative; NaN for none. Text needs units. As in Go: no digits below 1 ns, at most 292 years. */
export function parseDuration(value: number | string): number {
  if (typeof value === 'number') return value + 0;
  const match = value.length <= longestText ? notation.exec(value) : null;
  if (match === null) return NaN;
  let nanoseconds = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of (match[2] ?? '').matchAll(part))
    nanoseconds += (BigInt(whole + fraction) * (nanosecondsOf[unit] ?? 0n)) / 10n ** BigInt(fraction.length);
  if (nanoseconds > mostNanoseconds) return NaN;
  const ms = Number(nanoseconds) / 1e6;
  return match[1] === '-' && ms > 0 ? -ms : ms;
}
