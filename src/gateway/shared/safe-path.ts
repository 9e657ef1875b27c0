/** Which paths may be passed on. */

/** A slash, backslash or control character, encoded once or twice; a backslash; and `#`, which no request has. */
const ambiguous = /%(?:25)*(?:2f|5c|[01][\da-f]|7f)|[\\#]/i;

/** Segments that lead upwards: dots, encoded or not, up to the end or to parameters that servers may cut off. */
const upwards = /\/(?:\.|%(?:25)*2e){1,2}(?:[/;]|%(?:25)*3b|$)/i;

/** False for a path that a server could take for another one than the gateway did. */
export const isSafePath = (path: string): boolean => !ambiguous.test(path) && !upwards.test(path);

/** A safe path as the laxest server reads it: decoded, in small letters, without parameters and empty segments. */
export function asLaxServersRead(path: string): string {
  return path
    .replace(/%(?:25)*([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .toLowerCase()
    .replace(/;[^/]*/g, '')
    .replace(/\/+/g, '/')
    .replace(/\/$/, '');
}
