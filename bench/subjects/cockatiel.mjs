// Asks for Node 22; what is used here runs on Node 20 as well.
import { bulkhead } from 'cockatiel';

export default {
  name: 'cockatiel',
  kind: 'peer',
  note: 'cockatiel 4.0.0: bulkhead',
  // A cancelled request keeps its place until it reaches the head: that is not what `abort` asks for.
  caps: { priority: false, abort: false, keys: false },
  create({ concurrency }) {
    const policy = bulkhead(concurrency, Number.POSITIVE_INFINITY);
    return {
      submit: (job) => policy.execute(job),
      keyCount: () => 0,
      close() {},
    };
  },
};
