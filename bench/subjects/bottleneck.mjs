import Bottleneck from 'bottleneck';

export default {
  name: 'bottleneck',
  kind: 'peer',
  note: 'bottleneck 2.19.5; milliseconds a request, whatever the scenario: measured with three of a thousand requests',
  // Its priorities come too late: what is scheduled in one turn goes in the order of arrival.
  caps: { priority: false, abort: false, keys: false },
  /** Part of each scenario's jobs that it is given. */
  share: 0.003,
  create({ concurrency }) {
    const limiter = new Bottleneck({ maxConcurrent: concurrency });
    return {
      submit: (job) => limiter.schedule(async () => await job()),
      keyCount: () => 0,
      close: () => limiter.disconnect(),
    };
  },
};
