/** Answers of scripts: texts of finite numbers, and nothing else. */

/** Undefined if the answer has another length, or a part of it is no finite number. */
export function numbersOf(reply: unknown, length: number): number[] | undefined {
  if (!Array.isArray(reply) || reply.length !== length) return undefined;
  const numbers = reply.map(numberOf);
  return numbers.every(Number.isFinite) ? numbers : undefined;
}

/** Clients answer texts, some of them bytes. An empty text is no number, although `Number` takes it for 0. */
function numberOf(part: unknown): number {
  if (typeof part === 'number') return part;
  const text = typeof part === 'string' || part instanceof Uint8Array ? String(part) : '';
  return text.trim() === '' ? Number.NaN : Number(text);
}
