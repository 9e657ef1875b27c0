import { AsyncQueuer } from '@tanstack/pacer';

export default {
  name: 'pacer',
  kind: 'peer',
  note: '@tanstack/pacer 0.22.0: AsyncQueuer; measured with a fiftieth of the requests',
  caps: { priority: true, abort: false, keys: false },
  /** It copies its list with every change: O(n²) in what waits. */
  share: 0.02,
  create({ concurrency, priorities }) {
    const queuer = new AsyncQueuer(
      async ({ job, resolve, reject }) => {
        try {
          resolve(await job());
        } catch (error) {
          reject(error);
        }
      },
      { concurrency, ...(priorities !== undefined && { getPriority: (entry) => entry.priority }) },
    );
    return {
      submit: (job, { priority = 0 } = {}) =>
        new Promise((resolve, reject) => {
          queuer.addItem({ job, resolve, reject, priority });
        }),
      keyCount: () => 0,
      close: () => queuer.stop(),
    };
  },
};
