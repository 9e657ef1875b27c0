/** What a host put into its request beside what flow control reads. */
export function requestField(request: unknown, name: string): unknown {
  return typeof request === 'object' && request !== null ? Reflect.get(request, name) : undefined;
}
