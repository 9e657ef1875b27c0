// A gateway with eviction over HTTP for a long time: model servers are killed, its file is changed, clients leave in
// every phase or are hostile. Fails when a request gets no end, when the gateway fails, or when its books are not at 0
// at the end.
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededRandom } from '../../lib/random.mjs';
import { Clients } from './clients.mjs';
import { configurationFor } from './configurations.mjs';
import { GatewayProcess, ModelServer } from './processes.mjs';

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } });
const durationMs = Number(values.minutes) * 60_000;
const reportEveryMs = Math.max(durationMs / 20, 5000);
/** The books may follow the last answer a moment later. */
const settlesInMs = 10_000;

const random = seededRandom(Number(values.seed) + 1);
const violations = [];
const servers = ['m', 'm', 'n', undefined].map(
  (model, index) => new ModelServer(`server-${index}`, model === undefined ? {} : { model }),
);
for (const server of servers) await server.start();
const gateway = new GatewayProcess();
await gateway.start(configurationFor(0, servers));
const clients = new Clients(gateway.url, Number(values.seed));

let isRunning = true;
let reloads = 0;

async function killServers() {
  while (isRunning) {
    await delay(300 + random() * 1500);
    const server = servers[Math.floor(random() * servers.length)];
    await server.kill();
    await delay(random() * 800);
    await server.start();
  }
}

async function changeFile() {
  while (isRunning && !gateway.hasEnded) {
    await delay(500 + random() * 1000);
    const hidden = random() < 0.3 ? servers[Math.floor(random() * servers.length)] : undefined;
    const config = configurationFor(++reloads, servers, hidden);
    await gateway.reload(random() < 0.15 ? { ...config, nonsense: true } : config);
  }
}

/** Series of the gateway's metrics: `[name with labels, value]`. */
async function metrics() {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]);
}

const sumOf = (series, name) =>
  series.filter(([key]) => key.includes(name)).reduce((total, [, value]) => total + value, 0);

/** What must be 0 when nobody asks any more. */
const books = [
  'flow_control_in_flight_requests',
  'flow_control_in_flight_tokens',
  'flow_control_flow_in_flight_requests',
  'flow_control_queue_size',
  'flow_control_queue_bytes',
  'flow_control_queue_tokens',
  'flow_control_capped_requests',
  'flow_control_quota_reserved',
  'flow_control_pending_reclaim',
];

/** The books that are not at 0. */
async function openBooks() {
  const series = await metrics();
  return books.flatMap((name) => (sumOf(series, name) === 0 ? [] : [`${name} is ${sumOf(series, name)} at the end`]));
}

async function checkBooks() {
  let open = await openBooks();
  for (let waitedMs = 0; open.length > 0 && waitedMs < settlesInMs; waitedMs += 100) {
    await delay(100);
    open = await openBooks();
  }
  violations.push(...open);
  const pluginErrors = sumOf(await metrics(), 'flow_control_plugin_errors_total');
  if (pluginErrors > 0) violations.push(`${pluginErrors} plugin errors`);
}

/** A soak test that never comes near an edge proves nothing. */
async function checkEverythingHappened() {
  const series = await metrics();
  const happened = {
    'evictions of running requests': sumOf(series, 'flow_control_revocations_issued_total'),
    'clients that left': clients.aborted,
    'answers that broke off': clients.brokenOff,
    kills: servers.reduce((total, { kills }) => total + kills, 0),
    reloads: gateway.events.get('reloaded') ?? 0,
    retries: gateway.events.get('retry') ?? 0,
    ...Object.fromEntries([200, 400, 401, 408, 413, 429, 502, 503].map((status) => [status, clients.statuses[status]])),
  };
  // A file is wrong now and then only.
  if (durationMs > 100_000) happened['refused files'] = gateway.events.get('reload-refused') ?? 0;
  for (const [what, count = 0] of Object.entries(happened)) if (count === 0) violations.push(`there were no ${what}`);
}

function report() {
  const { asked, answered, brokenOff, aborted, statuses } = clients;
  const told = Object.entries(statuses).map(([status, count]) => `${status}: ${count}`);
  console.log(
    `${Math.round(performance.now() / 1000)} s: ${asked} asked, ${answered} answered, ${brokenOff} broken off, ${aborted} aborted; ` +
      `${told.join(', ')}; ${reloads} reloads, ${clients.violations.length + violations.length} violations`,
  );
}

const meanwhile = Promise.all([killServers(), changeFile()]);
const untilMs = performance.now() + durationMs;
while (performance.now() < untilMs && clients.violations.length === 0 && !gateway.hasEnded) {
  await delay(Math.min(reportEveryMs, Math.max(untilMs - performance.now(), 0)));
  report();
}
isRunning = false;
await meanwhile;
await clients.stop();

const { asked, answered, brokenOff, aborted } = clients;
if (asked !== answered + brokenOff + aborted)
  violations.push(`${asked} asked, and ${answered} + ${brokenOff} + ${aborted} were answered, broken off or aborted`);
if (gateway.hasEnded) violations.push('the gateway ended by itself');
else {
  await checkBooks();
  await checkEverythingHappened();
  const status = await gateway.stop();
  if (status !== 0) violations.push(`the gateway ended with ${status}`);
}
violations.push(...clients.violations, ...gateway.complaints);
for (const violation of new Set(violations)) console.error(`violation: ${violation}`);
console.log(violations.length === 0 ? 'everybody had an end, and the books are at 0' : 'FAILED');
process.exit(violations.length === 0 ? 0 : 1);
