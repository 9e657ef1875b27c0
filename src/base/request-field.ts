/** A field of the host's request that flow control itself does not read. */
export function requestField(request: unknown, name: string): unknown {
  return typeof request === 'object' && request !== null ? Reflect.get(request, name) : undefined;
}

/** Text that says something; undefined for all else. */
export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
