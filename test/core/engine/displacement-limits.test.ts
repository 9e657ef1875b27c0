import { describe, expect, it } from 'vitest';
import type { FlowControllerOptions } from '../../../src/index.js';
import { dial, dropOf, key, makeFlow } from '../../support/flow.js';

/** Sheddable requests wait before a closed gate; a normal one comes and does not fit. */
async function displaced(
  options: Partial<FlowControllerOptions>,
  shrunk?: FlowControllerOptions['limits'],
): Promise<[string, number]> {
  const { flow } = makeFlow({ saturationDetector: dial(1, true), overflow: 'displace', ...options });
  void flow.enqueue({ byteSize: 10 }, key('normal', 0));
  for (let i = 0; i < 2; i++) void flow.enqueue({ byteSize: 10 }, key('batch', -1));
  expect(flow.stats().waiting).toBe(3);
  if (shrunk !== undefined) flow.reconfigure({ limits: shrunk });
  const outcome = await Promise.race([flow.enqueue({ byteSize: 10 }, key('normal', 0)), undefined]);
  const { evicted } = flow.stats();
  return [outcome === undefined ? 'waits' : dropOf(outcome).reason, evicted];
}

describe('nobody leaves in vain', () => {
  it.each<[string, Partial<FlowControllerOptions>, FlowControllerOptions['limits'], [string, number]]>([
    [
      'the request’s own band is full',
      { bands: [{ priority: 0, limits: { maxRequests: 1 } }], limits: { maxRequests: 3 } },
      undefined,
      ['global-max-requests', 0],
    ],
    [
      'the request’s own flow is full',
      { bands: [{ priority: 0, flowLimits: { maxRequests: 1 } }], limits: { maxRequests: 3 } },
      undefined,
      ['global-max-requests', 0],
    ],
    ['there would be bytes, but not requests enough', {}, { maxRequests: 1, maxBytes: 30 }, ['global-max-bytes', 0]],
    ['there would be requests, but not bytes enough', {}, { maxRequests: 3, maxBytes: 15 }, ['global-max-bytes', 0]],
  ])('when %s', async (_, options, shrunk, expected) => {
    expect(await displaced(options, shrunk)).toEqual(expected);
  });

  it('but as many as it takes, when requests and bytes are both short', async () => {
    expect(await displaced({}, { maxRequests: 3, maxBytes: 20 })).toEqual(['waits', 2]);
  });
});
