/** Turns whose clients vanish: `npm run torture -- sockets --turns 100000`, `--seed 5`. Prints what is left. */
import { parseArgs } from 'node:util';
import { playLeavingTurns } from './leaving-turns.js';

const { values } = parseArgs({
  options: { turns: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
});
const turns = Number(values.turns);
const startedAtMs = performance.now();
const seconds = (): string => ((performance.now() - startedAtMs) / 1000).toFixed(1);
const tenth = Math.max(Math.floor(turns / 10), 1);

const { stats, violations, played } = await playLeavingTurns(turns, Number(values.seed), (done) => {
  const heap = Math.round(process.memoryUsage().heapUsed / 2 ** 20);
  if (done % tenth === 0) console.info(`${done} turns, ${seconds()} s, heap ${heap} MiB`);
});
console.table(played);
console.table(stats.outcomes);
console.info(`left after ${turns} turns: ${stats.inFlight} seats, ${stats.waiting} waiting (${seconds()} s)`);
const never = turns < 10_000 || stats.evictedInFlight > 0 ? [] : ['never reached: an eviction in flight'];
for (const problem of [...violations, ...never]) console.error(problem);
process.exit(stats.inFlight + stats.waiting + violations.length + never.length === 0 ? 0 : 1);
