/** How many requests fit if several detectors judge: as many as the strictest of them lets in. */
import type { EndpointView } from '../../../endpoints/endpoint.js';
import type { SaturationDetector } from '../../saturation-detector.js';

/** Undefined where none of them tells; one that fails, or answers with no number, is left out. */
export function fewestSeats(
  judges: readonly SaturationDetector[],
  endpoint: EndpointView,
  nowMs: number,
): number | undefined {
  let fewest: number | undefined;
  for (const detector of judges) {
    try {
      const seats: unknown = detector.seatsOf?.(endpoint, nowMs);
      if (typeof seats === 'number' && seats >= 0) fewest = Math.min(fewest ?? seats, seats);
    } catch {
      // The fault is reported where the detector is read.
    }
  }
  return fewest;
}
