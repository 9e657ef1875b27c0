/** While every worker is busy, no request waits: each is rejected at once, whatever its priority. */
import type { AdmissionPolicy, Rejection } from './admission-policy.js';

const rejection: Rejection = { reason: 'All workers are busy, please retry later', cause: 'overloaded' };

/** Rejects at saturation ≥ 1, such as `busyThresholdDetector()`'s. An empty pool is not busy. Source: Dynamo. */
export function refuseWhenAllBusy(): AdmissionPolicy {
  return {
    type: 'all-workers-busy',
    admit(_request, _key, view) {
      // A NaN saturation rejects the request.
      return view.pool.endpoints.length === 0 || view.saturation() < 1 ? 'admit' : rejection;
    },
  };
}
