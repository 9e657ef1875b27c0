// The gateway command beside bare proxies and another gateway: CPU time, latency and memory, in turns, all up at the
// same time.
//
//     npm run bench:gateway -- --only headgate,node:http --rounds 3
//     npm run bench:gateway -- --quick
//     npm run bench:gateway -- --write      into bench/results.json and docs/benchmarks.md
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { readArguments } from '../lib/arguments.mjs';
import { writePage } from '../lib/page.mjs';
import { loadSubjects } from '../lib/plan.mjs';
import { mergeResults } from '../lib/results-file.mjs';
import { summarize } from '../lib/statistics.mjs';
import { spread } from '../lib/tables.mjs';
import { Probe } from './probe.mjs';
import { firstMessage, subjects } from './subjects.mjs';

const reference = 'node:http';

/**
 * What is measured one after the other. All proxies take their turn within a phase, round by round, so that what the
 * machine does meanwhile hits them alike. The first round of a phase is not measured, because code that is new to it is
 * not compiled yet.
 */
function phasesOf(isQuick) {
  const [json, singles, streams] = isQuick
    ? [1000, 100, [{ open: 50, events: 20, everyMs: 20 }]]
    : [
        3000,
        250,
        [
          { open: 1, events: 400, everyMs: 5 },
          { open: 200, events: 250, everyMs: 20 },
          { open: 1000, events: 40, everyMs: 100 },
        ],
      ];
  return [
    async (probe) => ({ jsonUs: await probe.json({ requests: json, atOnce: 50 }) }),
    async (probe) => ({ aloneUs: await probe.alone(singles), firstEventUs: await probe.firstEvent(singles / 5) }),
    ...streams.map((extent) => async (probe) => {
      const { cpuUs, bytes } = await probe.streams(extent);
      return { [`eventUs-${extent.open}`]: cpuUs, [`streamBytes-${extent.open}`]: bytes };
    }),
  ];
}

async function turn(probe, measure) {
  await probe.begin(500);
  return measure(probe);
}

/** Says which proxy it was that failed. */
async function named({ one }, work) {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${one.name}: ${error.message}`, { cause: error });
  }
}

async function compare(chosen, { rounds, quick }) {
  const model = fork(fileURLToPath(new URL('model-server.mjs', import.meta.url)));
  const running = [];
  try {
    const port = await firstMessage(model, 'the model server');
    for (const subject of chosen) running.push({ headers: {}, ...(await subject.start(port)), name: subject.name });
    const probes = running.map((one) => new Probe(one));
    for (const one of running) one.rounds = Array.from({ length: rounds }, () => ({}));
    for (const probe of probes) await named(probe, () => probe.begin(quick ? 500 : 6000));
    for (const measure of phasesOf(quick)) {
      for (const probe of probes) await named(probe, () => turn(probe, measure));
      for (let round = 0; round < rounds; round++) {
        for (const probe of round % 2 === 0 ? probes : probes.toReversed()) {
          Object.assign(probe.one.rounds[round], await named(probe, () => turn(probe, measure)));
        }
      }
    }
    for (const probe of probes) await probe.close();
    return running;
  } finally {
    for (const one of running) one.stop();
    model.kill();
  }
}

function summaryOf(running) {
  const base = running.find(({ name }) => name === reference)?.rounds;
  return running.map(({ name, rounds }) => {
    const figures = {};
    for (const figure of Object.keys(rounds[0])) {
      figures[figure] = summarize(rounds.map((round) => round[figure]));
      if (base === undefined || name === reference) continue;
      figures[`${figure}-to-${reference}`] = summarize(
        rounds.map((round, index) => round[figure] / base[index][figure]),
      );
    }
    return { name, rounds: rounds.length, figures };
  });
}

function print({ name, figures }) {
  console.log(`${name}`);
  for (const [figure, summary] of Object.entries(figures)) {
    if (!figure.includes('-to-')) {
      const ratio = figures[`${figure}-to-${reference}`];
      console.log(
        `  ${figure.padEnd(18)} ${spread(summary).padEnd(24)} ${ratio === undefined ? '' : `× ${spread(ratio)}`}`,
      );
    }
  }
}

try {
  const options = readArguments();
  const unknown = (options.only ?? []).filter((name) => !subjects.some((subject) => subject.name === name));
  if (unknown.length > 0)
    throw new Error(`no such proxy: ${unknown.join(', ')}; there are ${subjects.map(({ name }) => name).join(', ')}`);
  const wanted = subjects.filter(({ name }) => options.only?.includes(name) ?? true);
  for (const { name } of wanted.filter(({ isMissing }) => isMissing?.()))
    console.log(`${name} is not installed, and is left out`);
  const results = summaryOf(
    await compare(
      wanted.filter(({ isMissing }) => !isMissing?.()),
      options,
    ),
  );
  results.forEach(print);
  if (options.write) writePage(mergeResults('gateways', results), await loadSubjects());
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
