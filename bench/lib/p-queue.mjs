/** One version of p-queue as a subject; both have the same interface. */
export const pQueueSubject = (PQueue, name, version) => ({
  name,
  kind: 'peer',
  note: `p-queue ${version}`,
  caps: { priority: true, abort: true, keys: false },
  create({ concurrency }) {
    const queue = new PQueue({ concurrency });
    return {
      submit: (job, options) => queue.add(job, options),
      keyCount: () => 0,
      close: () => queue.clear(),
    };
  },
});
