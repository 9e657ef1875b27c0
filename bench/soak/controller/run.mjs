// Mixed traffic for a long time. Fails when the statistics do not balance, when the heap grows, or when anything is
// left at the end.
import { getEventListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { heapBytes } from '../../lib/measure.mjs';
import { Chaos } from './chaos.mjs';
import { heapTrend } from './heap-trend.mjs';
import { Host } from './host.mjs';
import { Traffic } from './traffic.mjs';

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } });

const durationMs = Number(values.minutes) * 60_000;
/** Flows, bands and compiled code have to be there before the heap can be flat. */
const warmUpMs = Math.min(durationMs / 3, 60_000);
const sampleEveryMs = Math.max(durationMs / 400, 500);
const reportEveryMs = Math.max(durationMs / 20, 5000);

function report(host, stats, bytes) {
  const { enqueued, dispatched, rejected, evicted, waiting, inFlight, flows } = stats;
  const heap = (bytes / 2 ** 20).toFixed(1);
  console.log(
    `${Math.round(performance.now() / 1000)} s: ${enqueued} enqueued, ${dispatched} dispatched, ${rejected} rejected, ${evicted} evicted, ` +
      `${waiting} waiting, ${inFlight} in flight, ${flows} flows, ${heap} MiB, ${host.violations.length} violations`,
  );
}

/** Looks at the traffic until its time is up; returns the samples of the heap after the warm-up. */
async function watch(host) {
  const startedAtMs = performance.now();
  const samples = [];
  let reportAtMs = 0;
  for (let atMs = 0; atMs < durationMs && host.violations.length === 0; atMs = performance.now() - startedAtMs) {
    await delay(sampleEveryMs);
    // Dispatches of this turn have reached their callers by the next one.
    await new Promise((resolve) => setImmediate(resolve));
    const stats = host.checkBalance();
    const bytes = heapBytes();
    if (atMs >= warmUpMs) samples.push({ atMs, bytes });
    if (atMs >= reportAtMs) {
      report(host, stats, bytes);
      reportAtMs += reportEveryMs;
    }
  }
  return samples;
}

/** A soak test that never comes near an edge proves nothing. */
function checkEverythingHappened(host) {
  const { outcomes, evictedInFlight } = host.flow.stats();
  for (const [type, count] of Object.entries({ ...outcomes, evictedInFlight })) {
    if (count === 0) host.violate(`the traffic never led to ${type}`);
  }
}

function checkNothingLeft(host, traffic) {
  // Timers come first: figures that are read may share a reading of the clock for the rest of the turn.
  const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'Immediate');
  if (timers.length > 0) host.violate(`${timers.length} timers are left`);
  const stats = host.checkBalance();
  if (stats.waiting > 0 || stats.inFlight > 0)
    host.violate(`${stats.waiting} still wait, ${stats.inFlight} are still in flight`);
  for (const { signal } of traffic.connections) {
    if (getEventListeners(signal, 'abort').length > 0) host.violate('a listener is left on a shared signal');
  }
}

const host = new Host();
const traffic = new Traffic(host, Number(values.seed));
const chaos = new Chaos(host);
const samples = await watch(host);
chaos.stop();
await traffic.stop();
checkEverythingHappened(host);
await host.flow.close();
// A reading of the clock is shared until its turn of the event loop is over.
await new Promise((resolve) => setImmediate(resolve));
checkNothingLeft(host, traffic);

const { meanBytes, grownBytes, isGrowing } = heapTrend(samples);
if (isGrowing) host.violate(`the heap grew by ${Math.round(grownBytes)} B around a mean of ${Math.round(meanBytes)} B`);
report(host, host.flow.stats(), heapBytes());
for (const violation of new Set(host.violations)) console.error(`violation: ${violation}`);
console.log(host.violations.length === 0 ? `balanced, flat (${Math.round(grownBytes)} B), nothing left` : 'FAILED');
process.exitCode = host.violations.length === 0 ? 0 : 1;
