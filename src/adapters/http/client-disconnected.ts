/** The reason with which `lease.signal` aborts when the client has left. */

/**
 * An AbortError, as upstream calls expect. Handlers that let it through should not be logged as failed, and Koa heeds
 * `expose`.
 */
export function clientDisconnected(): DOMException {
  return Object.assign(new DOMException('The client left', 'AbortError'), { status: 499, expose: true });
}
