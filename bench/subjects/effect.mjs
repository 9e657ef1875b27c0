import { Effect, PartitionedSemaphore, Semaphore } from 'effect';

export default {
  name: 'effect',
  kind: 'peer',
  note: 'effect 4.1.0: Semaphore, or PartitionedSemaphore for keys; measured with a tenth of the requests',
  caps: { priority: false, abort: true, keys: true },
  /** What waits costs the others time there: with ten times the requests, a burst takes a hundred times as long. */
  share: 0.1,
  create({ concurrency, keyed }) {
    const shared = keyed ? undefined : Semaphore.makeUnsafe(concurrency);
    const partitioned = keyed ? PartitionedSemaphore.makeUnsafe({ permits: concurrency }) : undefined;
    return {
      submit(job, { key, signal } = {}) {
        const work = Effect.promise(async () => await job());
        const limited = shared === undefined ? partitioned.withPermit(key)(work) : shared.withPermit(work);
        return Effect.runPromise(limited, { signal });
      },
      keyCount: () => 0,
      close() {},
    };
  },
};
