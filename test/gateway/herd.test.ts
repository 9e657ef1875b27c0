/** 500 requests arrive between two scrapes, before the demo's engines in simulated time. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { herd, queueDepthThreshold } from '../../examples/gateway/herd.mjs';

const page = readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8').replaceAll('\n', ' ');

describe('a herd between two scrapes', () => {
  it('overruns the queue of a server many times without lag compensation', async () => {
    const { beforeSample, peakQueue } = await herd({ lagCompensation: false });
    expect(beforeSample).toBe(500);
    expect(peakQueue).toBeGreaterThan(20 * queueDepthThreshold);
    expect(page).toContain(`the longest queue in a server is ${peakQueue}.`);
  });

  it('is let through in portions with it, and is done no later', async () => {
    const [without, compensated] = [await herd({ lagCompensation: false }), await herd({ lagCompensation: true })];
    expect(compensated.overshoot).toBeLessThanOrEqual(3);
    expect(compensated.finishedMs).toBeLessThan(without.finishedMs * 1.05);
    const { beforeSample, peakQueue } = compensated;
    expect(page).toContain(`With it, as by default, ${beforeSample} go, and ${peakQueue} is the longest.`);
  });

  it('overshoots by a few at most, however late the answers of the servers are', async () => {
    for (const answerMs of [1, 20, 45])
      expect((await herd({ lagCompensation: true, answerMs })).overshoot).toBeLessThanOrEqual(3);
  });
});
