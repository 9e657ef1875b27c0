// @ts-check
// The same traffic against the same servers: without flow control, with it, and with it but tenants sharing by turns
// instead of tokens. Three tables and a verdict. Exits with 1 if flow control did not help. Options: --seconds 22,
// --seed 7, and --write for the pictures of the README.

import { parseArgs } from 'node:util';
import { writePictures } from './picture.mjs';
import { play } from './play.mjs';
import { Processes } from './processes.mjs';
import { compareFairness, renderRun, verdict } from './report.mjs';

/** @import { Run } from './report.mjs' */

const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '22' },
    seed: { type: 'string', default: '7' },
    write: { type: 'boolean' },
  },
});
const drainSeconds = 6;
const processes = new Processes();

/** @param {string} title @param {readonly string[]} gateway Its options. @returns {Promise<Run>} */
async function run(title, gateway) {
  const { records, elapsedMs, total } = await play(processes, {
    title,
    gateway,
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
  console.log(
    'Three model servers, four tenants, about 1.5 times the load that the servers can bear. Three times; this takes a minute and a half.\n',
  );
  const without = await run('flow control off', ['--flow-control', 'off']);
  console.log(`${renderRun('WITHOUT FLOW CONTROL', without)}\n`);
  const withIt = await run('flow control on ', []);
  console.log(`${renderRun('WITH FLOW CONTROL', withIt)}\n`);
  const byTurns = await run('by turns        ', ['--round-robin']);
  console.log(`${renderRun('WITH FLOW CONTROL, BY TURNS INSTEAD OF TOKENS', byTurns)}\n`);
  const { isBetter, sentence, failures } = verdict(without, withIt);
  console.log(`${sentence}\n${compareFairness(byTurns, withIt)}`);
  if (args.write) writePictures({ without, withIt });
  for (const failure of failures) console.error(`NOT GOOD ENOUGH: ${failure}.`);
  process.exit(isBetter ? 0 : 1);
} catch (error) {
  console.error(error);
  process.exit(1);
}
