// p-limit's interface on a controller.
import { concurrencyDetector, FlowController } from 'headgate';

const request = { byteSize: 1 };
const key = { fairnessId: 'all' };

function checked(concurrency) {
  if ((Number.isInteger(concurrency) || concurrency === Number.POSITIVE_INFINITY) && concurrency > 0)
    return concurrency;
  throw new TypeError('Expected `concurrency` to be a number from 1 and up');
}

const gate = (concurrency) => ({
  saturationDetector: concurrencyDetector({ maxConcurrency: Math.min(concurrency, 2 ** 31 - 1) }),
});

export default function pLimit(options) {
  const { rejectOnClear = false, ...given } = typeof options === 'object' ? options : { concurrency: options };
  let concurrency = checked(given.concurrency);
  const flow = new FlowController({ ...gate(concurrency), defaultRequestTtl: 0 });
  let clearing = new AbortController();

  async function limit(work, ...args) {
    const { signal } = clearing;
    const outcome = await flow.enqueue({ ...request, signal }, key);
    if (outcome.type === 'Dispatched') {
      try {
        return await work(...args);
      } finally {
        outcome.lease.release();
      }
    }
    if (rejectOnClear) throw signal.reason;
    return new Promise(() => {});
  }

  Object.defineProperties(limit, {
    activeCount: { get: () => flow.stats().inFlight },
    pendingCount: { get: () => flow.stats().waiting },
    clearQueue: {
      value() {
        clearing.abort();
        clearing = new AbortController();
      },
    },
    concurrency: {
      get: () => concurrency,
      set(next) {
        concurrency = checked(next);
        flow.reconfigure(gate(concurrency));
      },
    },
    map: { value: (all, work) => Promise.all(Array.from(all, (value, index) => limit(work, value, index))) },
  });
  return limit;
}

export function limitFunction(work, options) {
  const limit = pLimit(options);
  return (...args) => limit(work, ...args);
}
