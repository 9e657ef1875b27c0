/** What fuzz targets share. */

/** The input without its first byte, whole and in pieces of the size that this byte says. */
export function inPieces(input: Buffer): { readonly whole: Buffer; readonly pieces: readonly Buffer[] } {
  const whole = input.subarray(1);
  const size = 1 + ((input[0] ?? 0) % 32);
  const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, i) =>
    whole.subarray(i * size, (i + 1) * size),
  );
  return { whole, pieces };
}

export function same(what: string, got: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
}

/** What `read` returns, or the name of the error that it may throw. */
export function orName<T>(read: () => T, mayThrow: (error: unknown) => boolean): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && mayThrow(error)) return error.name;
    throw error;
  }
}
