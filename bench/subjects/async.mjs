import { priorityQueue, queue } from 'async';

const work = async (job) => await job();

export default {
  name: 'async',
  kind: 'peer',
  note: 'async 3.2.6: queue, or priorityQueue',
  caps: { priority: true, abort: false, keys: false },
  create({ concurrency, priorities }) {
    const lane = priorities === undefined ? queue(work, concurrency) : priorityQueue(work, concurrency);
    return {
      // Lower goes first there.
      submit:
        priorities === undefined
          ? (job) => lane.pushAsync(job)
          : (job, { priority = 0 } = {}) => lane.push(job, -priority),
      keyCount: () => 0,
      close: () => lane.kill(),
    };
  },
};
