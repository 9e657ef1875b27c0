// Puts headgate beside its peers in a benchmark harness: jobs in, results out, everything that is on by default stays
// on. Needs `npm run build` first.
import { concurrencyDetector, FlowController, globalStrict, roundRobin } from '../dist/index.js';

const unlimited = { maxRequests: Infinity, maxBytes: Infinity };

/** @type {import('../dist/index.js').FlowKey} */
const unkeyed = { fairnessId: 'default-flow', priority: 0 };

/** @type {import('../dist/index.js').FlowRequest} */
const plain = { byteSize: 0 };

/**
 * Runs the job with its lease.
 * @template T
 * @param {Promise<import('../dist/index.js').Outcome>} asked
 * @param {() => T | PromiseLike<T>} job
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<T>}
 */
export async function run(asked, job, signal) {
  const outcome = await asked;
  if (outcome.type !== 'Dispatched') throw signal?.aborted ? signal.reason : new Error(outcome.reason);
  try {
    return await job();
  } finally {
    outcome.lease.release();
  }
}

export default {
  name: 'headgate',
  kind: 'subject',
  caps: { priority: true, abort: true, keys: true },
  /**
   * @param {{ concurrency: number, priorities?: unknown, keyed?: unknown, abort?: unknown }} shape what the scenario
   * will use; every
   *   feature is there whether it is asked for or not
   */
  create({ concurrency, keyed }) {
    const band = { limits: unlimited, fairness: keyed ? roundRobin() : globalStrict() };
    const flow = new FlowController({
      saturationDetector: concurrencyDetector({ maxConcurrency: concurrency }),
      limits: unlimited,
      bands: [{ priority: 0, ...band }],
      defaultBand: band,
      maxFlows: 1_000_000,
    });
    return {
      /**
       * Runs `job` when it is its turn.
       * @template T
       * @param {() => T | PromiseLike<T>} job
       * @param {{ priority?: number, key?: unknown, signal?: AbortSignal, byteSize?: number }} [options] higher
       * priority goes first
       * @returns {Promise<T>} the job's own result
       */
      submit(job, { priority = 0, key, signal, byteSize = 0 } = {}) {
        const flowKey =
          key === undefined && priority === 0 ? unkeyed : { fairnessId: String(key ?? 'default-flow'), priority };
        const request = byteSize === 0 && signal === undefined ? plain : { byteSize, signal };
        return run(flow.enqueue(request, flowKey), job, signal);
      },
      keyCount: () => flow.stats().flows,
      close: () => flow.close(),
    };
  },
};
