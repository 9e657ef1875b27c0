/** Errors of connections that never came to be: the server has seen nothing of the request. */

/** Their codes, where the runtime tells: those of Node and of Deno. */
const codes: readonly unknown[] = [
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** By its own code, or its cause's; of several addresses none was reached. */
export function isUnconnected(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isUnconnected);
  const { code, cause }: { code?: unknown; cause?: unknown } = Object(error);
  return codes.includes(code) || (cause !== undefined && isUnconnected(cause));
}
