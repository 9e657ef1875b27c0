// @ts-check
// The same traffic against the same servers, first without flow control, then with it; two tables and a verdict.
// Exits with 1 if flow control did not help. Options: --seconds 22, --seed 7.

import { parseArgs } from 'node:util';
import { play } from './play.mjs';
import { Processes } from './processes.mjs';
import { renderRun, verdict } from './report.mjs';

/** @import { Run } from './report.mjs' */

const { values: args } = parseArgs({ options: { seconds: { type: 'string', default: '22' }, seed: { type: 'string', default: '7' } } });
const drainSeconds = 6;
const processes = new Processes();

/** @param {'off' | 'on'} flowControl @returns {Promise<Run>} */
async function run(flowControl) {
  const { records, elapsedMs, total } = await play(processes, {
    title: `flow control ${flowControl.padEnd(3)}`,
    gateway: ['--flow-control', flowControl],
    traffic: ['--seed', args.seed, '--seconds', args.seconds, '--drain', `${drainSeconds}`],
  });
  return {
    records,
    elapsedMs,
    preemptions: total('vllm:num_preemptions_total'),
    recomputedTokens: total('demo:recomputed_tokens_total'),
    promptTokens: total('vllm:prompt_tokens_total'),
  };
}

try {
  console.log('Three model servers, four tenants, about 1.5 times the load that the servers can bear. Twice; this takes a minute.\n');
  const without = await run('off');
  console.log(`${renderRun('WITHOUT FLOW CONTROL', without)}\n`);
  const withIt = await run('on');
  console.log(`${renderRun('WITH FLOW CONTROL', withIt)}\n`);
  const { isBetter, sentence, failures } = verdict(without, withIt);
  console.log(sentence);
  for (const failure of failures) console.error(`NOT GOOD ENOUGH: ${failure}.`);
  process.exit(isBetter ? 0 : 1);
} catch (error) {
  console.error(error);
  process.exit(1);
}
