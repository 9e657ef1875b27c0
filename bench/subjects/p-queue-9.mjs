import PQueue from 'p-queue-9';

export default {
  name: 'p-queue-9',
  kind: 'peer',
  note: 'p-queue 9.3.5',
  caps: { priority: true, abort: true, keys: false },
  create({ concurrency }) {
    const queue = new PQueue({ concurrency });
    return {
      submit: (job, options) => queue.add(job, options),
      keyCount: () => 0,
      close: () => queue.clear(),
    };
  },
};
