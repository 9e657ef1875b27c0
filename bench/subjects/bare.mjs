// No limit and no queue: what the jobs and their promises cost by themselves.
export default {
  name: 'bare',
  kind: 'bound',
  note: 'a bare await: no limit at all',
  caps: { priority: false, abort: false, keys: false, limit: false },
  create() {
    return {
      async submit(job) {
        return await job();
      },
      keyCount: () => 0,
      close() {},
    };
  },
};
