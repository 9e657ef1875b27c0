import { expect, it } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { dropOf, key, makeFlow, request, runNow } from '../../support/flow.js';

it.each([
  ['shortens the time to live of the band', { requestTtl: 1000 }, {}, 200, 200],
  ['never lengthens it', { requestTtl: 1000 }, {}, 5000, 1000],
  ['bounds a request that may wait for ever', { requestTtl: 0 }, {}, 300, 300],
  ['shortens the time to live of the request itself', { requestTtl: 1000 }, { ttlMs: 400 }, 100, 100],
])('maxWaitMs %s', async (_, band, own, maxWaitMs, expected) => {
  const { flow, clock } = makeFlow({ bands: [{ priority: 0, ...band }] });
  runNow(flow);
  let isOver = false;
  const waiting = flow.enqueue({ ...request, ...own, maxWaitMs }, key()).then((outcome) => {
    isOver = true;
    return outcome;
  });
  clock.advance(expected - 1);
  await Promise.resolve();
  expect(isOver).toBe(false);
  clock.advance(1);
  expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedTTL', queuedMs: expected });
});

it('maxWaitMs must be a span', async () => {
  const { flow } = makeFlow();
  for (const maxWaitMs of [-1, Number.NaN, '5' as unknown as number]) {
    await expect(flow.enqueue({ ...request, maxWaitMs }, key())).rejects.toThrow(FlowConfigError);
    await expect(flow.enqueue({ ...request, maxWaitMs }, key())).rejects.toThrow(
      'request.maxWaitMs: expected milliseconds from 0 up',
    );
  }
});
