/** What concerns one connection and not what is behind it: a relay keeps it to itself. */

/** Source: RFC 9110, section 7.6.1, and its predecessors. `trailer` is among them because relays pass no trailers. */
export const hopByHop: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** The names in a `Connection` header, which concern this connection too. */
export function namedByConnection(connection: string): string[] {
  return connection.toLowerCase().split(/[\s,]+/);
}
