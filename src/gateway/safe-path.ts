/** Which paths may be passed on. */

/**
 * False for a path that a server could take for another one than the gateway did: with segments that lead upwards, written out or
 * percent-encoded, with an encoded slash, backslash or NUL, or with a backslash.
 */
export function isSafePath(path: string): boolean {
  return !/%2f|%5c|%00|\\|\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path);
}
