/** The contract of every saturation detector. */
import type { PoolView, SaturationDetector } from '../../index.js';
import { type ContractCase, contract, expectPart, expectThat, subscription } from './contract-case.js';
import { ofController } from './controller-fixture.js';
import { seats } from './seat-listener.js';
import { endpointView, poolView, Random, randomEndpoints, repeatedly } from './views.js';

const nowMs = 10_000;

function randomPool(random: Random): PoolView {
  return poolView(...randomEndpoints(random, 1, nowMs));
}

/** The same pool with more of everything on one endpoint, as fresh as before. */
function busier(pool: PoolView, random: Random): PoolView {
  const busy = random.int(pool.endpoints.length);
  return poolView(
    ...pool.endpoints.map((endpoint, index) => {
      const { metrics } = endpoint;
      if (index !== busy) return endpoint;
      return {
        ...endpoint,
        inFlightRequests: endpoint.inFlightRequests + random.int(5),
        inFlightTokens: endpoint.inFlightTokens + random.int(500),
        unsampledRequests: endpoint.unsampledRequests + random.int(3),
        metrics: metrics && {
          ...metrics,
          waitingQueueSize: metrics.waitingQueueSize + random.int(5),
          kvCacheUsage: metrics.kvCacheUsage + random.next() * 0.2,
        },
      };
    }),
  );
}

const idle = Object.freeze({ waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: nowMs });
const most = Number.MAX_SAFE_INTEGER;

/** Figures at the ends of their ranges, as servers have reported them. */
const extremes: readonly PoolView[] = [
  { ...idle, kvCacheUsage: 1.5 },
  { ...idle, waitingQueueSize: most, runningRequests: most, kvCacheUsage: 1 },
  { ...idle, sampledAtMs: nowMs + 1e12 },
  { ...idle, sampledAtMs: -Infinity },
].map((metrics) => poolView(endpointView('e', { metrics, inFlightRequests: 1e9, inFlightTokens: 1e15 })));

/** The contract of saturation detectors, as cases for any test framework. */
export function saturationDetectorContract(make: () => SaturationDetector): ContractCase[] {
  return contract(make, {
    'reads a finite number from 0 up from any pool, and changes nothing in it'() {
      const random = new Random(1);
      const detector = make();
      for (const pool of [...Array.from({ length: 300 }, () => randomPool(random)), ...extremes]) {
        const reading: unknown = detector.saturation(pool, nowMs);
        expectThat(Number.isFinite(reading) && (reading as number) >= 0, `it reads ${String(reading)}`);
      }
    },
    'reads an empty pool as full'() {
      const reading = make().saturation(poolView(), nowMs);
      expectThat(reading >= 1, `it reads ${reading}`);
    },
    'reads an idle pool as not full'() {
      const pool = poolView(...['a', 'b', 'c'].map((id) => endpointView(id, { metrics: idle })));
      const reading = make().saturation(pool, nowMs);
      expectThat(reading < 1, `it reads ${reading}`);
    },
    'never reads less where there is more to do'() {
      repeatedly(300, 2, (random) => {
        const detector = make();
        const pool = randomPool(random);
        const before = detector.saturation(pool, nowMs);
        const after = detector.saturation(busier(pool, random), nowMs);
        expectThat(after >= before - 1e-12, `it reads ${before}, and ${after} with more to do`);
      });
    },
    'filters from what it was given, in the same order'(detector) {
      repeatedly(200, 3, (random) => {
        const endpoints = randomEndpoints(random, 1, nowMs);
        expectPart(detector.filter?.(endpoints, nowMs) ?? endpoints, endpoints);
      });
    },
    ...subscription,
    ...seats,
    ...ofController(make, (each) => ({ saturationDetector: each() }), {
      served: 'lets every request of a queue go in the end, and is never at fault',
      method: 'saturation',
      lost: 'lets every request go in the end when its readings are lost: a fault closes the gate for one reading',
      tellsFaults: true,
    }),
  });
}
