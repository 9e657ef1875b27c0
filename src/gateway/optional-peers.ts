/** Packages that a gateway uses and the library does not: they are loaded when a gateway is made, and missed with an instruction. */
import { FlowConfigError } from '../index.js';

/** @throws FlowConfigError that says how to install it */
export async function loadUndici(): Promise<typeof import('undici')> {
  try {
    return await import('undici');
  } catch (error) {
    throw isMissing(error, 'undici') ? missing('undici', 'for connections to the model servers') : error;
  }
}

/** Undefined when it is not installed: the gateway then has no metrics. */
export async function loadPromClient(): Promise<typeof import('prom-client') | undefined> {
  try {
    // A CommonJS package: not every loader finds its names.
    return (await import('prom-client')).default;
  } catch (error) {
    if (isMissing(error, 'prom-client')) return undefined;
    throw error;
  }
}

function isMissing(error: unknown, name: string): boolean {
  const isNotFound = error instanceof Error && 'code' in error && /MODULE_NOT_FOUND$/.test(String(error.code));
  return isNotFound && error.message.includes(`'${name}'`);
}

function missing(name: string, purpose: string): FlowConfigError {
  const expected = `the package ${name}, ${purpose}: npm install ${name}`;
  return new FlowConfigError('gateway', [{ path: '', expected, got: 'no such package' }]);
}
