import { digits, ms, runScenario } from './support.mjs';

const usage = 'flowControl.usageLimitPolicyPluginRef';
const flat = 'static-usage-limit-policy';

export const row = {
  id: 'BLIS',
  title: 'Flow-control loop of BLIS in saturation: p99 of the first token of critical requests, and service a second',
  source:
    'inference-sim: always-admit; flow control with priority, 100 in flight at each instance; the same with a usage limit of .7',
  published: 'a usage limit protects the critical class; no figures for this workload',
  reference: '–',
  check: 'recommended below the best of the three, with no less throughput',
  run(kit) {
    const outcome = (changes) => {
      const { classes, all } = runScenario(kit, 'blis-saturation', changes);
      return { p99: classes.critical.ttft.p99Ms, service: all.servicePerSecond };
    };
    const blis = { 'gate.maxConcurrency': 100 };
    const threshold = 'plugins[interpolated-usage-limit-policy].parameters.threshold';
    const admitted = outcome({ ...blis, [usage]: flat, 'gate.maxConcurrency': 1_000_000 });
    const priority = outcome({ ...blis, [usage]: flat });
    const limited = outcome({ ...blis, [threshold]: 0.7 });
    const recommended = outcome({});
    const others = [admitted, priority, limited];
    const best = others.reduce((least, other) => (other.p99 < least.p99 ? other : least));
    const told = ({ p99, service }) => `${ms(p99)} at ${digits(service)}/s`;
    return {
      ours: `always-admit ${told(admitted)}; priority ${told(priority)}; usage limit .7 ${told(limited)}; recommended ${told(recommended)}`,
      holds: recommended.p99 < best.p99 && recommended.service >= best.service,
      note: 'BLIS releases one request in each tick of 1 ms and counts a seat when the request is routed; here the seat is taken at dispatch. Its dispatch loop is played in the conformance vectors.',
    };
  },
};
