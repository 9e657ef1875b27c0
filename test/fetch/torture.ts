/**
 * Clients that leave, without an end: `npm run torture -- fetch --requests 100000`, `--seed 5`. Prints what is left
 * when all have gone.
 */
import { parseArgs } from 'node:util';
import { playLeavingClients } from './leaving-clients.js';

const { values } = parseArgs({
  options: { requests: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
});
const requests = Number(values.requests);
const seed = Number(values.seed);
const startedAtMs = performance.now();
const seconds = (): string => ((performance.now() - startedAtMs) / 1000).toFixed(1);
const mebibytes = (): number => Math.round(process.memoryUsage().heapUsed / 2 ** 20);
const tenth = Math.max(Math.floor(requests / 10), 1);

function onProgress(done: number): void {
  if (done % tenth === 0) console.info(`${done} requests, ${seconds()} s, heap ${mebibytes()} MiB`);
}

const { stats, reserved, violations, unread, played, asked, left } = await playLeavingClients({
  requests,
  seed,
  onProgress,
});
console.table(played);
console.table(stats.outcomes);
console.info(`${asked} reached the server, which saw ${left} leave; ${unread} answers were collected unread`);
console.info(`${stats.evictedInFlight} evicted in flight`);
console.info(
  `left after ${requests} requests: ${stats.inFlight} seats, ${stats.waiting} waiting, ${reserved} reserved (${seconds()} s)`,
);
// What this run exists for; a short one may miss some.
const reached = [
  ...Object.entries(played).map(([phase, { count }]) => [phase, count] as const),
  ['an eviction in flight', stats.evictedInFlight] as const,
  ['an answer collected unread', unread] as const,
];
const never = requests < 10_000 ? [] : reached.flatMap(([state, count]) => (count === 0 ? [state] : []));
for (const violation of [...violations, ...never.map((state) => `never reached: ${state}`)]) console.error(violation);
const problems = violations.length + never.length;
process.exit(stats.inFlight + stats.waiting + reserved + problems === 0 ? 0 : 1);
