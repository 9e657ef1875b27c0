/**
 * What eviction costs: the table of the policy's page, and the work that BLIS completes for each eviction as a bound.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { concurrencyDetector, type FlowControllerOptions, inFlightEviction } from '../../src/index.js';
import { type SimulationResult, simulate } from '../../src/simulator/index.js';

const page = readFileSync(new URL('../../docs/policies/sheddable-eviction-filter.md', import.meta.url), 'utf8');
const rate = 312;
const seats = 32;

/** A fifth of the requests is critical, half of them may be evicted. */
function run(eviction: FlowControllerOptions['eviction']): SimulationResult {
  const arrivals = (share: number) => ({ type: 'gamma', rate: rate * share, cv: 2 }) as const;
  return simulate({
    seed: 1,
    duration: (4_000 / rate) * 1_000,
    servers: [{ model: 'slots', slots: seats, serviceTime: { type: 'lognormal', mean: 120, sigma: 0.8 } }],
    traffic: [
      { tenant: 'critical', class: 'critical', priority: 4, arrivals: arrivals(0.2), promptTokens: 100 },
      { tenant: 'standard', class: 'standard', priority: 3, arrivals: arrivals(0.3), promptTokens: 100 },
      { tenant: 'batch', class: 'batch', priority: -1, arrivals: arrivals(0.5), promptTokens: 100 },
    ],
    onEvicted: 'drop',
    flow: {
      saturationDetector: concurrencyDetector({ maxConcurrency: seats }),
      eviction,
      defaultRequestTtl: 0,
      limits: { maxRequests: 1e6, maxBytes: Infinity },
    },
  });
}

const rows = [
  ['no eviction', undefined],
  ['0', inFlightEviction({ reserveMs: 0 })],
  ['250', inFlightEviction({ reserveMs: 250 })],
  ['1000', inFlightEviction()],
] as const;
/** Of 4,000 requests of the same shape BLIS evicts 378. */
const blis = { completed: 4_000 - 378, evicted: 378 };

describe('eviction in a pool that is nearly full', () => {
  const results = rows.map(([name, eviction]) => ({ ...run(eviction), name }));
  const byDefault = results.at(-1)!;

  it('completes more for each eviction than BLIS does', () => {
    const { completed, evicted } = byDefault.all;
    expect(completed / evicted).toBeGreaterThan(blis.completed / blis.evicted);
  });

  it('keeps what is critical from waiting, by the reserve as well as without it', () => {
    const [none, atOnce] = results.map(({ classes }) => classes.critical!.queued.p99Ms) as [number, number];
    expect(atOnce).toBeLessThan(none / 2);
    expect(byDefault.classes.critical!.queued.p99Ms).toBeLessThanOrEqual(atOnce);
  });

  it.each(results)('is on the page as it is: $name', ({ name, all, classes }) => {
    const [critical, batch] = [classes.critical!.queued.p99Ms, classes.batch!.queued.p99Ms];
    const figures = [
      all.evicted,
      all.completed.toLocaleString('en'),
      `${Math.round(critical)} ms`,
      `${(batch / 1000).toFixed(1)} s`,
    ];
    expect(page).toContain(`| ${name} | ${figures.join(' | ')} |`);
  });
});
