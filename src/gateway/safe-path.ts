/** Which paths may be passed on. */

/**
 * An encoded slash, backslash or control character, encoded once or twice; a backslash, and the mark of a fragment,
 * which no request has.
 */
const ambiguous = /%(?:25)*(?:2f|5c|[01][\da-f]|7f)|[\\#]/i;

/**
 * Segments that lead upwards: dots, encoded or not, up to the end of the segment, or to parameters that servers may cut
 * off.
 */
const upwards = /\/(?:\.|%(?:25)*2e){1,2}(?:[/;]|%(?:25)*3b|$)/i;

/** False for a path that a server could take for another one than the gateway did. */
export function isSafePath(path: string): boolean {
  return !ambiguous.test(path) && !upwards.test(path);
}
