import { digits, runScenario } from './support.mjs';

export const row = {
  id: 'S3',
  title: 'Eight tenants in overload: largest difference of accumulated service',
  source: 'Sheng et al., OSDI ’24, artifact `overload-multi`: three tenants at .4, five at .6 requests a second',
  published: 'VTC at most 2,976; FCFS 34,823',
  reference: 'VTC 2,343; FCFS 35,989',
  check: 'VTC at most 6,000; FCFS at least 8 times VTC',
  run(kit) {
    const largest = (changes) => runScenario(kit, 'vtc-overload', changes).serviceDifference.maxAccumulated;
    const vtc = largest({});
    const fcfs = largest({ 'flowControl.priorityBands[0].fairnessPolicyRef': 'global-strict-fairness-policy' });
    return {
      ours: `VTC ${digits(vtc)}; FCFS ${digits(fcfs)}`,
      holds: vtc <= 6000 && fcfs / vtc >= 8,
      note: 'Ten minutes. The artifact’s files mix runs of 360 s and 600 s, and FCFS grows with the length of the run.',
    };
  },
};
