/** Adaptive limits in a closed loop, in front of a server of so many slots. */
import { expect, it } from 'vitest';
import { aimdLatency, gradient2, vegas } from '../../../src/index.js';
import type { AdaptiveDetector } from '../../../src/types/index.js';
import { ClosedLoop } from '../../support/closed-loop.js';
import { aimdTimeout, gradient2Raw, vegasRaw } from '../../support/per-sample-limits.js';

interface Line {
  readonly controller: string;
  readonly slots: number;
  readonly sigma: number;
  readonly meanLimit: number;
  readonly throughput: number;
}

/** Service takes 100 ms there, so a target of 200 ms is two of these. */
const meanMs = 100;

/** Those that this package has: one decision for each window. */
const controllers: Readonly<Record<string, () => AdaptiveDetector>> = {
  'aimd windowed to=200ms': () => aimdLatency({ targetMs: 2 * meanMs }),
  'vegas windowed avg': () => vegas({ maxLimit: 1000 }),
  'vegas windowed p50': () => vegas({ maxLimit: 1000, statistic: 'p50' }),
  'gradient2 windowed': () => gradient2({ maxLimit: 1000 }),
};

/** Controls, which decide at each request: they show why this package does not. */
const controls: Readonly<Record<string, () => AdaptiveDetector>> = {
  'vegas raw': vegasRaw,
  'gradient2 raw(max1000)': gradient2Raw,
  'aimd timeout 300ms': () => aimdTimeout(3 * meanMs),
};
/** Envoy's, which probes by a limit of 3, was simulated there by a formula that the file does not have. */
const elsewhere = /^envoy gradient/;

function parse(line: string): Line {
  const match = /^(.*?)\s+C=(\d+)\s+sig=([\d.]+).*?mean2nd\s+([\d.]+).*?thr\/cap\s+([\d.]+)/.exec(line);
  if (match === null) throw new Error(`nobody can read "${line}"`);
  const [, controller = '', slots, sigma, meanLimit, throughput] = match;
  return {
    controller,
    slots: Number(slots),
    sigma: Number(sigma),
    meanLimit: Number(meanLimit),
    throughput: Number(throughput),
  };
}

export function limiters({ lines }: { readonly lines: readonly string[] }): void {
  const parsed = lines.map(parse);

  it('names controllers that are known', () => {
    const known = { ...controllers, ...controls };
    expect(parsed.filter(({ controller }) => known[controller] === undefined && !elsewhere.test(controller))).toEqual(
      [],
    );
  });

  it.each(parsed.filter(({ controller }) => controls[controller] !== undefined))(
    '$controller, $slots slots, spread $sigma: $throughput of them in use, as found there',
    ({ controller, slots, sigma, throughput }) => {
      const loop = new ClosedLoop({
        slots,
        sigma,
        meanMs,
        detectors: [(controls[controller] as () => AdaptiveDetector)()],
      });
      loop.run(200);
      expect(Math.abs(loop.run(400) - throughput)).toBeLessThan(0.06);
    },
  );

  it.each(parsed.filter(({ controller }) => controllers[controller] !== undefined))(
    '$controller, $slots slots, spread $sigma: no less of them in use than $throughput',
    ({ controller, slots, sigma, meanLimit, throughput }) => {
      const detector = (controllers[controller] as () => AdaptiveDetector)();
      const loop = new ClosedLoop({ slots, sigma, meanMs, detectors: [detector] });
      loop.run(200);
      // Where a controller leaves slots idle, by how much is a matter of the seed.
      expect(loop.run(200)).toBeGreaterThan(throughput - (throughput > 0.9 ? 0.05 : 0.1));
      // A limit that has a fixed point ends near the one found there.
      if (controller.startsWith('aimd')) expect(Math.abs(detector.limit / meanLimit - 1)).toBeLessThan(0.25);
    },
  );
}
