/** Strict priority, as a plugin that files can name. */
import type { BandOrderPolicy } from './band-order-policy.js';

/** Higher priority first, as `bandOrder: 'strict'`; never asked. Source: llm-d-router, strict-band-selection-policy. */
export function strictBands(): BandOrderPolicy {
  return { type: 'strict-band-selection-policy', strict: true, rank: () => undefined };
}
