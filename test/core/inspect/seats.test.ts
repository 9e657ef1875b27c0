import { describe, expect, it } from 'vitest';
import {
  byStage,
  concurrencyDetector,
  EndpointPool,
  maxOf,
  overviewOf,
  type SaturationDetector,
  utilizationDetector,
  withHysteresis,
} from '../../../src/index.js';
import { dial, makeFlow } from '../../support/flow.js';

function seats(saturationDetector: SaturationDetector): (number | undefined)[] {
  const pool = new EndpointPool();
  pool.add('a', { weight: 1 });
  pool.add('b', { weight: 3 });
  return overviewOf(makeFlow({ pool, saturationDetector }).flow, { flows: 'all' }).endpoints.map(
    (endpoint) => endpoint.seats,
  );
}

describe('the seats of an endpoint', () => {
  const four = concurrencyDetector({ maxConcurrency: 4 });

  it.each<[string, SaturationDetector, (number | undefined)[]]>([
    ['follow its weight', four, [4, 12]],
    ['count the headroom in', concurrencyDetector({ maxConcurrency: 4, headroom: 0.5 }), [6, 18]],
    [
      'are not known where tokens are counted',
      concurrencyDetector({ concurrencyMode: 'tokens' }),
      [undefined, undefined],
    ],
    ['are not known where the servers are asked', utilizationDetector(), [undefined, undefined]],
    ['are passed on by hysteresis', withHysteresis(four), [4, 12]],
    ['are passed on by stages', byStage(four), [4, 12]],
    ['are the fewest of several', maxOf(four, concurrencyDetector({ maxConcurrency: 2 }), dial(0)), [2, 6]],
  ])('%s', (_, detector, expected) => {
    expect(seats(detector)).toEqual(expected);
  });

  it('are not known when a detector answers nonsense, which is reported', () => {
    const pool = new EndpointPool();
    pool.add('a');
    const { flow } = makeFlow({ pool, saturationDetector: { ...dial(0), seatsOf: () => Number.NaN } });
    const errors: unknown[] = [];
    flow.on('pluginError', ({ error }) => errors.push(error));
    expect(overviewOf(flow, { flows: 'all' }).endpoints[0]?.seats).toBeUndefined();
    expect(String(errors[0])).toContain('seatsOf must return a number from 0 up, or undefined');
  });
});
