/** Counts and sizes as people write them, read exactly, without binary rounding: `'1k'`, `'10Gi'`, `'2e3'`. */

/** A count or a size: an integer from 0 up, Infinity for unlimited, or a Kubernetes quantity (`'1k'`, `'10Gi'`). */
export type Quantity = number | string;

const notation = /^([+-]?)(\d+\.?\d*|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?$/;

/** Nobody means a longer text as a quantity. */
const longestText = 40;

/** Suffix → base and exponent. */
const suffixes = /* @__PURE__ */ new Map<string, readonly [base: bigint, exponent: number]>([
  ...[...'num'].map((suffix, index) => [suffix, [10n, 3 * index - 9]] as const),
  ...[...'kMGTPE'].map((suffix, index) => [suffix, [10n, 3 * index + 3]] as const),
  ...[...'KMGTPE'].map((letter, index) => [`${letter}i`, [2n, 10 * index + 10]] as const),
]);

/** A quantity of Kubernetes, an integer rounded away from zero; NaN for none. Maybe negative, or not a safe integer. */
export function parseQuantity(value: number | string): number {
  if (typeof value === 'number') return Number.isInteger(value) || value === Infinity ? value + 0 : NaN;
  const match = value.length <= longestText ? notation.exec(value) : null;
  if (match === null) return NaN;
  const [, sign, digits = '', suffix = '', exponentText = '0'] = match;
  const [whole = '', fraction = ''] = digits.split('.');
  const [base, exponent] = suffixes.get(suffix) ?? [10n, Number(exponentText)];
  const numerator = BigInt(whole + fraction) * base ** BigInt(Math.max(exponent, 0));
  const denominator = 10n ** BigInt(fraction.length) * base ** BigInt(Math.max(-exponent, 0));
  const magnitude = Math.min(Number((numerator + denominator - 1n) / denominator), Number.MAX_VALUE);
  return sign === '-' && magnitude > 0 ? -magnitude : magnitude;
}
