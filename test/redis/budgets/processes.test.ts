/** Tokens per minute under 200 concurrent requests from 4 processes. */
import { expect, it } from 'vitest';
import { answerOf, bundle } from '../support/bundle.js';
import { describeWithStores } from '../support/with-store.js';

const limit = 60_000;
const burst = 10_000;
const forMs = 1_500;

describeWithStores('tokens per minute, spent by 4 processes', (store) => {
  async function spend(mode: string): Promise<{ taken: number; spanMs: number }> {
    const program = await bundle(new URL('./spender.ts', import.meta.url));
    const startedAtMs = performance.now();
    const processes = Array.from({ length: 4 }, () =>
      answerOf<{ taken: number }>(program, [String(store().port), String(limit), String(burst), String(forMs), mode]),
    );
    const answers = await Promise.all(processes.map(({ answer }) => answer));
    return { taken: answers.reduce((sum, { taken }) => sum + taken, 0), spanMs: performance.now() - startedAtMs };
  }

  it('never exceed the limit, and are spent', { timeout: 60_000 }, async () => {
    const { taken, spanMs } = await spend('exact');
    expect(taken).toBeLessThanOrEqual(burst + (limit / 60_000) * spanMs);
    expect(taken).toBeGreaterThan(burst);
  });

  it('exceed it many times where each process counts by itself, at the end of requests', {
    timeout: 60_000,
  }, async () => {
    const { taken } = await spend('usual');
    expect(taken).toBeGreaterThan(3 * limit);
  });
});
