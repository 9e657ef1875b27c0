/** A pool is limited in requests or in tokens. */
import { FlowConfigError } from '../../index.js';

interface Limits {
  readonly maxConcurrency?: number | undefined;
  readonly maxTokens?: number | undefined;
}

/** @throws FlowConfigError when there is none, or both */
export function poolLimit(
  { maxConcurrency, maxTokens }: Limits,
  subject: string,
): readonly ['requests' | 'tokens', number] {
  if (maxConcurrency !== undefined && maxTokens === undefined) return ['requests', maxConcurrency];
  if (maxTokens !== undefined && maxConcurrency === undefined) return ['tokens', maxTokens];
  const got = maxConcurrency === undefined ? 'neither' : 'both';
  throw new FlowConfigError(subject, [{ path: 'maxConcurrency', expected: 'either maxConcurrency or maxTokens', got }]);
}
