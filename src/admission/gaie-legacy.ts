/** Admission of gateways without a queue: a full pool rejects sheddable requests and admits all others. */
import { type Definition, define } from '../base/policy-definition.js';
import * as s from '../base/schema/schema.js';
import type { AdmissionPolicy } from './admission-policy.js';
import { meanUtilization } from './mean-utilization.js';

/** Without either threshold, the controller's saturation detector says how full the pool is. */
export interface GaieLegacyOptions {
  /** Waiting requests at which a server is full, above 0. @default 5 with the other threshold */
  queueDepthThreshold?: number | undefined;
  /** KV cache at which a server is full, above 0, at most 1. @default 0.8 with the other threshold */
  kvCacheUtilThreshold?: number | undefined;
}

const parameters: s.Schema<GaieLegacyOptions> = s.object({
  queueDepthThreshold: s.optional(s.aboveZero()),
  kvCacheUtilThreshold: s.optional(s.ratioAboveZero()),
});

/**
 * Rejects priority < 0 at saturation ≥ 1, with one reading; an empty pool is full. Priority ≥ 0 comes in unread.
 * Source: llm-d-router with flow control off; BLIS, gaie-legacy. @throws FlowConfigError
 */
export function gaieLegacy(options: GaieLegacyOptions = {}): AdmissionPolicy {
  const { queueDepthThreshold: queue, kvCacheUtilThreshold: cache } = s.parse(parameters, options, 'gaieLegacy');
  const hasOwn = queue !== undefined || cache !== undefined;
  return {
    type: 'gaie-legacy',
    admit(_request, { priority }, view) {
      if (priority >= 0) return 'admit';
      const saturation = hasOwn ? meanUtilization(view.pool, queue ?? 5, cache ?? 0.8) : view.saturation();
      // A NaN saturation rejects the request.
      if (saturation < 1) return 'admit';
      return { reason: `the pool is full (saturation ${saturation.toFixed(2)}), and the request is sheddable` };
    },
  };
}

export const gaieLegacyPlugin: Definition<AdmissionPolicy> = define('gaie-legacy', parameters, gaieLegacy);
