/** Pools as detectors see them, made of figures: those of the contract suites. */
import type { PoolView } from '../../src/index.js';
import { endpointView, poolView } from '../../src/testing/contracts/views.js';

export { endpointView as fakeEndpoint, poolView as poolOf };

/** Endpoints e0, e1, … with `[requests, tokens]` in flight. */
export function fakePool(figures: readonly (readonly [inFlightRequests: number, inFlightTokens: number])[]): PoolView {
  return poolView(
    ...figures.map(([inFlightRequests, inFlightTokens], i) =>
      endpointView(`e${i}`, { inFlightRequests, inFlightTokens }),
    ),
  );
}
