/** A field of the host's request that flow control itself does not read. */
export function requestField(request: unknown, name: string): unknown {
  return typeof request === 'object' && request !== null ? Reflect.get(request, name) : undefined;
}
