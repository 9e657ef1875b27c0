/** Every option that takes a clock takes the same clocks. */
import { expect, it } from 'vitest';
import { retrying } from '../../src/client/index.js';
import {
  concurrencyDetector,
  EndpointPool,
  FlowConfigError,
  FlowController,
  logDrops,
  realClock,
  workerAdmission,
} from '../../src/index.js';
import { inspector } from '../../src/observability/inspector/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { scrape } from '../../src/upstream/index.js';

const flow = new FlowController({ saturationDetector: concurrencyDetector() });

const takers: readonly [name: string, take: (clock: never) => unknown][] = [
  ['FlowController', (clock) => new FlowController({ saturationDetector: concurrencyDetector(), clock })],
  ['workerAdmission', (clock) => workerAdmission({ clock })],
  ['logDrops', (clock) => logDrops(flow, { onLine: () => {}, clock }).stop()],
  ['scrape', (clock) => scrape(new EndpointPool(), { clock }).stop()],
  ['inspector', (clock) => inspector(flow, { clock })],
  ['retrying', (clock) => retrying(fetch, { clock })],
];

const wrong: readonly [what: string, clock: unknown][] = [
  ['members that are no functions', { now: 1, setTimeout: 1, clearTimeout: 1 }],
  ['a missing clearTimeout', { now: () => 0, setTimeout: () => 0 }],
  ['null', null],
  ['a function', Date.now],
];

it.each(takers)('%s takes the clocks of the package', (_, take) => {
  expect(() => take(realClock as never)).not.toThrow();
  expect(() => take(new ManualClock() as never)).not.toThrow();
});

it.each(takers.flatMap(([name, take]) => wrong.map(([what, clock]) => [name, what, take, clock] as const)))(
  '%s refuses a clock with %s',
  (_name, _what, take, clock) => {
    expect(() => take(clock as never)).toThrow(FlowConfigError);
    expect(() => take(clock as never)).toThrow(/clock: expected a clock with now, setTimeout and clearTimeout; got /);
  },
);
