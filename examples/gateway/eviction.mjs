// @ts-check
// A premium burst meets a pool that is full of best-effort work: the same traffic with eviction off, then on; one table
// and a verdict. Exits with 1 if eviction did not help, or if a request was lost on the way. Option: --seed 7.

import { parseArgs } from 'node:util';
import { evictionVerdict, renderEviction } from './eviction-report.mjs';
import { play } from './play.mjs';
import { Processes } from './processes.mjs';

const { values: args } = parseArgs({ options: { seed: { type: 'string', default: '7' } } });
/** By far more than a run needs: whoever is still there then is reported as lost. */
const drainSeconds = 25;
const processes = new Processes();

/** @param {'off' | 'on'} eviction */
function run(eviction) {
  return play(processes, {
    title: `eviction ${eviction.padEnd(3)}`,
    gateway: eviction === 'on' ? ['--eviction'] : [],
    traffic: ['--scenario', 'burst', '--seed', args.seed, '--drain', `${drainSeconds}`],
  });
}

try {
  console.log(
    'Three model servers, every seat taken by a batch job, then a burst of premium requests. Twice; this takes 20 seconds.\n',
  );
  const off = await run('off');
  const on = await run('on');
  console.log(`${renderEviction(off, on)}\n`);
  const { isGood, sentence, failures } = evictionVerdict(off, on);
  console.log(sentence);
  for (const failure of failures) console.error(`NOT GOOD ENOUGH: ${failure}.`);
  process.exit(isGood ? 0 : 1);
} catch (error) {
  console.error(error);
  process.exit(1);
}
