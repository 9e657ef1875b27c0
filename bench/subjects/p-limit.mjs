import pLimit from 'p-limit';

export default {
  name: 'p-limit',
  kind: 'peer',
  note: 'p-limit 7.3.3',
  caps: { priority: false, abort: false, keys: false },
  create({ concurrency }) {
    const limit = pLimit(concurrency);
    return {
      submit: (job) => limit(job),
      keyCount: () => 0,
      close: () => limit.clearQueue(),
    };
  },
};
