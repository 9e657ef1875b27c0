/**
 * Makes each session that a detector tells apart a class of requests, so that its requests queue apart. Every endpoint
 * serves every session.
 */
import { memberOf } from '../base/faults/foreign-values.js';
import type { EndpointFilter } from '../endpoints/filters/endpoint-filter.js';
import type { SaturationDetector } from '../gate/saturation-detector.js';

/** One filter for each of `detectors` that tells sessions apart. */
export function sessionFilters(detectors: Iterable<SaturationDetector | undefined>): EndpointFilter[] {
  const filters: EndpointFilter[] = [];
  for (const detector of new Set(detectors)) {
    if (!tellsSessions(detector)) continue;
    filters.push({
      type: detector.type,
      classOf: (item) => detector.sessionOf?.(item),
      keep: (endpoints) => endpoints,
    });
  }
  return filters;
}

/** True when the detector tells sessions apart. */
export function tellsSessions(detector: SaturationDetector | undefined): detector is SaturationDetector {
  return detector !== undefined && memberOf(detector, 'sessionOf') !== undefined;
}
