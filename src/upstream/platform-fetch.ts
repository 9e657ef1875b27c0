import { FlowConfigError } from '../index.js';

/** @throws FlowConfigError that names `subject`, on a platform that has none */
export function platformFetch(subject: string): typeof globalThis.fetch {
  if (typeof globalThis.fetch === 'function') return globalThis.fetch;
  throw new FlowConfigError(subject, [
    { path: 'fetch', expected: 'a function, since the platform has no fetch', got: 'nothing' },
  ]);
}
