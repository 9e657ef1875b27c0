import { digits, ms, runScenario } from './support.mjs';

/** Requests a second, chats and long prompts; each mix is more than the servers bear. */
const mixes = { chats: [7.8, 2], half: [4.3, 2.3], long: [1.7, 2.5] };
const loads = [1, 1.25, 1.67];
const limits = [12, 16, 24, 32, 48, 64];

const withoutLedger = { 'flowControl.constraintPluginRefs': [] };
/** Half of what the cache holds, and twice as much. */
const wrongSizes = [58_000, 232_000];
export const row = {
  id: 'S9',
  title: 'Chats beside long prompts at 1.2, 1.5 and 2 × capacity: p99 of the first token of chats, and tokens a second',
  source: 'llm-d-router, docs/flow-control-capacity-ledger.md, which proposes the ledger',
  published: 'no figures',
  reference: '–',
  check:
    'one ledger for all mixes serves more than the limit with the most tokens for each mix, at .6 of its p99 at most; preempts 1 % at most; half of the p99 of the utilization detector; with half and twice the true kvTokens it serves 97 % as much at least, and preempts 1 % at most',
  run(kit) {
    const run = (rates, changes) => {
      const [chat, long] = rates;
      const result = runScenario(kit, 'long-prompts', {
        'traffic[0].arrivals.rate': chat,
        'traffic[1].arrivals.rate': long,
        ...changes,
      });
      const preempted = result.servers.reduce((sum, { preemptions }) => sum + preemptions, 0);
      return {
        p99: result.classes.chat.ttft.p99Ms,
        service: result.all.servicePerSecond,
        preempted: preempted / result.counts.dispatched,
        cache: Math.max(...result.servers.map(({ meanKvUsage }) => meanKvUsage)),
      };
    };
    const limited = (rates, maxConcurrency) =>
      run(rates, { ...withoutLedger, 'plugins[concurrency-detector].parameters.maxConcurrency': maxConcurrency });
    const told = ({ p99, service, preempted }) =>
      `${ms(p99)} at ${digits(service)}/s (${digits(100 * preempted, 1)} % preempted)`;
    const caches = [];
    const ours = [];
    let holds = true;
    for (const [name, rates] of Object.entries(mixes).slice(kit.isShort ? 2 : 0))
      for (const load of kit.isShort ? loads.slice(1, 2) : loads) {
        const offered = rates.map((rate) => rate * load);
        const tuned = limits
          .map((limit) => ({ limit, ...limited(offered, limit) }))
          .reduce((best, each) => (each.service > best.service ? each : best));
        const utilization = run(offered, {
          ...withoutLedger,
          'saturationDetector.pluginRef': 'utilization-detector',
        });
        const own = run(offered, {});
        caches.push(own.cache);
        ours.push(
          `${name} × ${load}: ledger ${told(own)}; limit ${tuned.limit} ${told(tuned)}; utilization ${told(utilization)}`,
        );
        holds &&= own.service > tuned.service && own.service >= 0.99 * utilization.service;
        holds &&= own.p99 <= 0.6 * tuned.p99 && own.p99 <= 0.5 * utilization.p99 && own.preempted <= 0.01;
        if (load !== 1.25) continue;
        const wrong = wrongSizes.map((kvTokens) =>
          run(offered, { 'plugins[capacity-ledger].parameters.kvTokens': kvTokens }),
        );
        ours.push(`${name} × ${load} with half of kvTokens: ${told(wrong[0])}, with twice: ${told(wrong[1])}`);
        holds &&= wrong.every(({ service, preempted }) => service >= 0.97 * own.service && preempted <= 0.01);
      }
    const [least, most] = [Math.min(...caches), Math.max(...caches)].map((part) => digits(100 * part));
    ours.push(`mean use of the cache by the ledger: ${least} to ${most} %`);
    return {
      ours: ours.join('. '),
      holds,
      note: 'The limit is tuned by hand for each mix and load, the ledger for none. Chats have the higher priority. What is left of the p99 are chats that come during a long prompt’s prefill.',
    };
  },
};
