// Asks for Node 22; what is used here runs on Node 20 as well.
import PQueue from 'p-queue-10';

export default {
  name: 'p-queue-10',
  kind: 'peer',
  note: 'p-queue 10.0.0',
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
