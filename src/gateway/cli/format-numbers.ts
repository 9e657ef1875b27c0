export const quantity = (count: number): string => (count === Infinity ? 'any number of' : String(count));

const sizes = Object.entries({ GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10 });

export function bytes(count: number): string {
  if (count === Infinity) return 'any number of bytes';
  const [unit, size] = sizes.find(([, least]) => count >= least) ?? ['bytes', 1];
  return `${Number((count / size).toFixed(1))} ${unit}`;
}

export function ms(span: number): string {
  if (span === Infinity) return 'for ever';
  if (span >= 60_000 && span % 60_000 === 0) return `${span / 60_000} min`;
  return span >= 1_000 ? `${span / 1_000} s` : `${span} ms`;
}

/** `runs at most 32 requests and 200000 tokens at a time`. */
export function atATime({ maxRequests, maxTokens }: Readonly<Record<'maxRequests' | 'maxTokens', number>>): string {
  const parts = [maxRequests < Infinity && `${maxRequests} requests`, maxTokens < Infinity && `${maxTokens} tokens`];
  return `runs at most ${joined(' and ', parts)} at a time`;
}

/** The parts that there are, in one text. */
export function joined(by: string, parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => typeof part === 'string').join(by);
}
