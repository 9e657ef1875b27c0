import { ms, runScenario } from './support.mjs';

const usage = 'flowControl.usageLimitPolicyPluginRef';
const jobs = [1, 2, 3];

export const row = {
  id: 'S8',
  title:
    'Batch beside bursts of chat, where flow control made it worse: p95 of the first token of chat, and batch done',
  source: 'llm-d batch-gateway, issue 491: two replicas, bursts of 15 requests a second, three jobs of 1,000 requests',
  published:
    'alone 71 ms; unprotected 83 ms; a gate that stuck at saturation 1.0: 3,698 ms and 90 % done; AIMD admission 92 ms and 100 %',
  reference: '–',
  check: 'with the recommended configuration at most 1.3 × alone, and all of the batch done',
  run(kit) {
    const outcome = (changes) => {
      const { classes } = runScenario(kit, 'batch-beside-chat', changes);
      return {
        p95: classes.chat.ttft.p95Ms,
        done: classes.batch?.completed ?? 0,
        arrived: classes.batch?.arrived ?? 0,
      };
    };
    const late = Object.fromEntries(jobs.map((index) => [`traffic[${index}].startAt`, 3_599_999]));
    const samePriority = Object.fromEntries(jobs.map((index) => [`traffic[${index}].priority`, 100]));
    const flat = { [usage]: 'static-usage-limit-policy' };
    const alone = outcome(late);
    const unprotected = outcome({ ...flat, 'gate.maxConcurrency': 10_000 });
    const stuck = outcome({ ...flat, 'gate.maxConcurrency': 10 });
    const stuckTogether = outcome({ ...flat, ...samePriority, 'gate.maxConcurrency': 20 });
    const recommended = outcome({});
    const told = ({ p95, done, arrived }) => `${ms(p95)}, ${done} of ${arrived}`;
    return {
      ours: `alone ${ms(alone.p95)}; unprotected ${told(unprotected)}; gate full of batch ${told(stuck)}; one priority for all ${told(stuckTogether)}; recommended ${told(recommended)}`,
      holds: recommended.p95 <= 1.3 * alone.p95 && recommended.done === 3000 && stuck.p95 > 5 * alone.p95,
      note: 'The issue does not say which detector stuck, nor why. Two settings hurt here in the same way: a limit without a ceiling for batch, so that the gate reads 1.0 whenever a burst comes, and batch at the priority of chat. Its unprotected figure needs a batch client that sends less than ours.',
    };
  },
};
