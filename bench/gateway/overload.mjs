// What overload does: one model server that takes all that comes, four tenants, one of which sends half, and two
// classes. The load is half of what the server can do, then 1.5 or 3 times as much, then half again. Clients send at
// their own times, whatever became of earlier requests, and leave when the first token does not come.
import { fork } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { quantile } from '../lib/measure.mjs';
import { seededRandom } from '../lib/random.mjs';
import { format } from '../lib/tables.mjs';

/** About as many sequences as fit into the cache of the demo's model server. */
const seats = 15;
const tenants = [
  ['a', 0.5],
  ['b', 0.2],
  ['c', 0.2],
  ['d', 0.1],
];
/** A request is good if its answer is whole and its first token came within `goodMs`. */
const classes = {
  interactive: { part: 0.6, promptTokens: 250, outputTokens: 40, goodMs: 1000, patienceMs: 10_000 },
  batch: { part: 0.4, promptTokens: 400, outputTokens: 80, goodMs: 30_000, patienceMs: 30_000 },
};
const word = 'lore';

function bodyOf({ promptTokens, outputTokens }) {
  const settings = { model: 'default-model', max_tokens: outputTokens, ignore_eos: true, stream: true };
  return JSON.stringify({ ...settings, prompt: word.repeat(promptTokens) });
}
const bodies = Object.fromEntries(Object.entries(classes).map(([name, one]) => [name, bodyOf(one)]));

/** What became of one request: ms from the instant when it was due. */
async function send(dispatcher, { port, headers }, { className, tenant, dueAtMs }) {
  const { patienceMs, goodMs, outputTokens } = classes[className];
  const left = new AbortController();
  const patience = setTimeout(() => left.abort(), patienceMs);
  const record = { className, tenant, dueAtMs, isGood: false, firstTokenMs: undefined };
  try {
    const { statusCode, body } = await dispatcher.request({
      origin: `http://127.0.0.1:${port}`,
      path: '/v1/completions',
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-llm-d-inference-fairness-id': tenant,
        'x-llm-d-inference-objective': className,
        ...headers,
      },
      body: bodies[className],
      signal: left.signal,
    });
    let events = 0;
    for await (const chunk of body) {
      if (statusCode === 200 && record.firstTokenMs === undefined) {
        record.firstTokenMs = performance.now() - dueAtMs;
        clearTimeout(patience);
      }
      events += chunk.toString().split('\n\n').length - 1;
    }
    record.isGood = statusCode === 200 && events >= outputTokens && record.firstTokenMs <= goodMs;
  } catch {
    // It left, or was cut off.
  } finally {
    clearTimeout(patience);
  }
  return record;
}

/** Requests of both classes that the model server completes in a second with all seats in use. */
async function capacityOf(port, seconds) {
  const dispatcher = new Agent({ connections: null });
  const random = seededRandom(1);
  let completed = 0;
  const endsAtMs = performance.now() + seconds * 1000;
  await Promise.all(
    Array.from({ length: seats }, async () => {
      while (performance.now() < endsAtMs) {
        const className = random() < classes.interactive.part ? 'interactive' : 'batch';
        await send(dispatcher, { port, headers: {} }, { className, tenant: 'a', dueAtMs: performance.now() });
        if (performance.now() < endsAtMs) completed++;
      }
    }),
  );
  await dispatcher.destroy();
  return completed / seconds;
}

function tenantOf(point) {
  let sum = 0;
  for (const [name, part] of tenants) {
    sum += part;
    if (point < sum) return name;
  }
  return tenants[0][0];
}

/** Arrivals of a Poisson process whose rate changes with the phases, the same for every proxy. */
function scheduleOf(phases, capacity) {
  const random = seededRandom(7);
  const arrivals = [];
  let beginMs = 0;
  for (const [seconds, load] of phases) {
    const endMs = beginMs + seconds * 1000;
    for (let atMs = beginMs; ; ) {
      atMs += (-Math.log(1 - random()) * 1000) / (load * capacity);
      if (atMs >= endMs) break;
      const className = random() < classes.interactive.part ? 'interactive' : 'batch';
      arrivals.push({ atMs, className, tenant: tenantOf(random()) });
    }
    beginMs = endMs;
  }
  return arrivals;
}

async function play(running, arrivals) {
  const dispatcher = new Agent({ connections: null, bodyTimeout: 0 });
  const startedAtMs = performance.now();
  const records = [];
  for (const { atMs, ...arrival } of arrivals) {
    const dueAtMs = startedAtMs + atMs;
    const early = dueAtMs - performance.now();
    if (early > 1) await pause(early);
    records.push(send(dispatcher, running, { ...arrival, dueAtMs }));
  }
  const all = await Promise.all(records);
  await dispatcher.destroy();
  return all.map((record) => ({ ...record, atMs: record.dueAtMs - startedAtMs }));
}

function figuresOf(records, [calm, peak], capacity) {
  const peakFromMs = calm[0] * 1000;
  const peakToMs = peakFromMs + peak[0] * 1000;
  const inPeak = records.filter(({ atMs }) => atMs >= peakFromMs && atMs < peakToMs);
  const figures = { goodput: inPeak.filter(({ isGood }) => isGood).length / (capacity * peak[0]) };
  for (const name of Object.keys(classes)) {
    const own = inPeak.filter(({ className }) => className === name);
    const times = Float64Array.from(own.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])).sort();
    figures[`${name}-good`] = own.filter(({ isGood }) => isGood).length / own.length;
    figures[`${name}-p99Ms`] = times.length === 0 ? undefined : quantile(times, 0.99);
  }
  const polite = inPeak.filter(({ tenant, className }) => tenant !== 'a' && className === 'interactive');
  figures['polite-good'] = polite.filter(({ isGood }) => isGood).length / polite.length;
  const late = records.filter(
    ({ atMs, className, isGood }) => atMs >= peakToMs && className === 'interactive' && !isGood,
  );
  figures.recoveryMs = late.length === 0 ? 0 : Math.max(...late.map(({ atMs }) => atMs)) - peakToMs;
  return figures;
}

async function startModel() {
  const child = fork(
    fileURLToPath(new URL('../../examples/gateway/model-server.mjs', import.meta.url)),
    ['--name', 'gpu'],
    {
      execArgv: [],
    },
  );
  const { url } = await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`the model server ended with exit code ${code}`)));
  });
  return { child, port: Number(new URL(url).port) };
}

/** A fresh model server for each run, because a queue that is left over would belong to nobody. */
async function run(subject, phases, capacity) {
  const { child, port } = await startModel();
  const running = subject === undefined ? { port, stop() {} } : await subject.start(port, { seats });
  try {
    const records = await play({ headers: {}, ...running }, scheduleOf(phases, capacity));
    return figuresOf(records, phases, capacity);
  } finally {
    running.stop();
    child.kill();
  }
}

export async function measureOverload(chosen, { quick }) {
  const { child, port } = await startModel();
  const capacity = await capacityOf(port, quick ? 3 : 20);
  child.kill();
  console.log(`capacity: ${format(capacity)} requests a second`);
  const [calm, peak, after] = quick ? [1, 3, 3] : [5, 20, 25];
  const results = [];
  const wanted = chosen.filter(({ name, isLimiting }) => isLimiting || name === 'Portkey');
  for (const load of [1.5, 3]) {
    const phases = [
      [calm, 0.5],
      [peak, load],
      [after, 0.5],
    ];
    for (const subject of [undefined, ...wanted])
      results.push({
        name: `${load} ${subject === undefined ? 'nothing in front' : subject.name}`,
        figures: await run(subject, phases, capacity),
      });
  }
  return results;
}

export function printOverload({ name, figures }) {
  const cells = Object.entries(figures).map(
    ([figure, value]) => `${figure} ${value === undefined ? '–' : format(value)}`,
  );
  console.log(`${name.padEnd(24)} ${cells.join('  ')}`);
}
