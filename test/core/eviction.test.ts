import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  inFlightEviction,
  resolveOptions,
  utilizationDetector,
} from '../../src/index.js';

describe('inFlightEviction', () => {
  it('fills in the defaults, and the time that a freed seat needs by the detector', () => {
    const eviction = inFlightEviction();
    const defaults = { maxPerDecision: 2, timeoutMs: 10_000, reserveMs: 1000 };
    const counting = resolveOptions({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }), eviction });
    expect(counting.eviction).toMatchObject({ ...defaults, graceMs: 0 });
    const reading = resolveOptions({ saturationDetector: utilizationDetector(), pool: new EndpointPool(), eviction });
    expect(reading.eviction).toMatchObject({ ...defaults, graceMs: 500 });
    expect(reading.eviction?.filter).toBe(counting.eviction?.filter);
  });

  it('lists everything that is wrong with its options', () => {
    expect(() => inFlightEviction({ maxPerDecision: 0, grace: 5 } as never)).toThrow(`inFlightEviction: 2 problems
  maxPerDecision: expected an integer from 1 up; got 0 (number)
  grace: expected one of the keys filter, ordering, maxPerDecision, graceMs, timeoutMs, reserveMs (did you mean "graceMs"?); got an unknown key`);
  });
});
