import { FlowConfigError } from '../../src/index.js';

/** The paths of the problems that a call is refused for. */
export function pathsOf(call: () => unknown): string[] {
  try {
    call();
  } catch (error) {
    if (error instanceof FlowConfigError) return error.issues.map(({ path }) => path);
    throw error;
  }
  return [];
}
