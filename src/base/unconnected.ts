/** Errors of connections that never came to be: the server has seen nothing of the request. */

/** Their codes, where the runtime tells: those of Node and of Deno. */
export const unconnectedCodes: readonly unknown[] = [
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
];
