import { Sema } from 'async-sema';

export default {
  name: 'async-sema',
  kind: 'peer',
  note: 'async-sema 3.1.1',
  caps: { priority: false, abort: false, keys: false },
  create({ concurrency }) {
    const sema = new Sema(concurrency);
    return {
      async submit(job) {
        await sema.acquire();
        try {
          return await job();
        } finally {
          sema.release();
        }
      },
      keyCount: () => 0,
      close() {},
    };
  },
};
