/** Whether the process says, by NODE_ENV, that it is one of development. False where there are no such words. */
export function isDevelopment(): boolean {
  const { process } = globalThis as { process?: { env?: Readonly<Record<string, string | undefined>> } };
  return process?.env?.NODE_ENV === 'development';
}
