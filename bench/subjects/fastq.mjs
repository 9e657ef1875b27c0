import fastq from 'fastq';

export default {
  name: 'fastq',
  kind: 'peer',
  note: 'fastq 1.20.3, promise API',
  caps: { priority: false, abort: false, keys: false },
  create({ concurrency }) {
    const queue = fastq.promise(async (job) => await job(), concurrency);
    return {
      submit: (job) => queue.push(job),
      keyCount: () => 0,
      close: () => queue.kill(),
    };
  },
};
