/**
 * Dispatch by events, on reports that come late: what lag compensation is for. The policy's page shows these figures.
 */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { utilizationDetector } from '../../src/index.js';
import { simulate } from '../../src/simulator/index.js';

const page = readFileSync(new URL('../../docs/policies/utilization-detector.md', import.meta.url), 'utf8');

/** p99 of the time to the first token of interactive requests, ms, beside batch work that always waits. */
function interactiveP99(lagCompensation: boolean): number {
  const { classes } = simulate({
    seed: 1,
    duration: '5m',
    warmUp: '30s',
    servers: [{ name: 'gpu', count: 4, model: 'continuous-batching' }],
    traffic: [
      {
        tenant: 'chat',
        class: 'chat',
        priority: 100,
        arrivals: { type: 'poisson', rate: 4 },
        promptTokens: 300,
        outputTokens: 100,
      },
      {
        tenant: 'nightly',
        class: 'batch',
        priority: -10,
        arrivals: { type: 'closed-loop', threads: 200 },
        promptTokens: 600,
        outputTokens: 300,
      },
    ],
    reports: { interval: 50, delay: 100 },
    flow: {
      saturationDetector: utilizationDetector({ lagCompensation, metricsStalenessThreshold: '1s' }),
      defaultRequestTtl: 0,
    },
  });
  return Math.round(classes.chat!.ttft.p99Ms);
}

it('without lag compensation, what is important waits in the servers behind batch work', () => {
  const [without, compensated] = [interactiveP99(false), interactiveP99(true)];
  expect(without).toBeGreaterThan(4 * compensated);
  expect(page.replace(/\s+/g, ' ')).toContain(
    `${compensated} ms with it, and ${without.toLocaleString('en')} ms without`,
  );
});
