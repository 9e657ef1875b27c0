/** Random histories of streams: whatever a proxy sends and when it leaves, seats, order and the end are right. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { audit } from '../../../src/testing/index.js';
import { type FakeProxy, rig, subset } from './rig.js';

const steps: Readonly<Record<string, (proxy: FakeProxy) => unknown>> = {
  headers: (proxy) => proxy.headers(),
  'headers alone': (proxy) => proxy.headers({}, true),
  'a subset': (proxy) => proxy.send(subset('10.0.0.2:8000')),
  'a piece': (proxy) => proxy.body('{"a":', false),
  'the last piece': (proxy) => proxy.body('1}'),
  'a long body': (proxy) => proxy.body('x'.repeat(130_000)),
  'too much': (proxy) => proxy.body('x'.repeat(200_001), false),
  trailers: (proxy) => proxy.send({ requestTrailers: {} }),
  'an answer': (proxy) => proxy.answerHeaders(),
  'an answer without a body': (proxy) => proxy.answerHeaders({ ':status': '204' }, true),
  'a piece of the answer': (proxy) => proxy.answerBody('data', false),
  'the end of the answer': (proxy) => proxy.answerBody(''),
  'trailers of the answer': (proxy) => proxy.send({ responseTrailers: {} }),
  nothing: (proxy) => proxy.send({}),
  leaves: (proxy) => proxy.stream.closed(),
};

const order: readonly string[] = ['requestHeaders', 'requestBody', 'requestTrailers'];
const answerOrder: readonly string[] = ['responseHeaders', 'responseBody', 'responseTrailers'];

/** The answers of one direction come in the order of its parts. */
function isInOrder(parts: readonly string[], wanted: readonly string[]): boolean {
  const ranks = parts.filter((part) => wanted.includes(part)).map((part) => wanted.indexOf(part));
  return ranks.every((rank, index) => index === 0 || rank >= (ranks[index - 1] ?? 0));
}

const history = fc.array(fc.tuple(fc.nat(5), fc.constantFrom(...Object.keys(steps))), { maxLength: 80 });

describe('any history of six streams', () => {
  it('keeps every invariant, and leaves no seat taken when all have left', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (played) => {
        const { flow, pool, open } = rig({
          servers: 2,
          options: { maxRequestBytes: 200_000 },
          flow: { holBlocking: 'none', limits: { maxRequests: 3 } },
        });
        const proxies = Array.from({ length: 6 }, open);
        for (const [index, step] of played) {
          steps[step]?.(proxies[index] as FakeProxy);
          await Promise.resolve();
          audit(flow as never);
        }
        for (const proxy of proxies) {
          expect(proxy.late).toBe(0);
          const { parts } = proxy;
          expect(parts.indexOf('immediateResponse')).toBeOneOf([-1, parts.length - 1]);
          // A proxy may send the parts of its own answer in any order; those of a request are ours.
          expect(isInOrder(parts, order)).toBe(true);
          if (!played.some(([, step]) => step.includes('answer'))) expect(isInOrder(parts, answerOrder)).toBe(true);
          proxy.stream.closed();
        }
        expect([flow.stats().inFlight, flow.stats().waiting, pool.inFlightRequests]).toEqual([0, 0, 0]);
        await flow.close();
      }),
      { numRuns: 300 },
    );
  });
});
