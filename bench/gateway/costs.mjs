// CPU time, latency and memory of a request and of an event. All proxies are up at the same time and take turns.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { summarize } from '../lib/statistics.mjs';
import { spread } from '../lib/tables.mjs';
import { Probe } from './probe.mjs';
import { firstMessage } from './subjects.mjs';

const reference = 'node:http';
/** V8 has compiled the way of a request by about the eight thousandth. */
const warmUpRequests = 20_000;

/**
 * What is measured one after the other. All proxies take their turn within a phase, round by round, so that what the
 * machine does meanwhile hits them alike. The first round of a phase is not measured, because code that is new to it is
 * not compiled yet.
 */
function phasesOf(isQuick) {
  const [json, singles, streams, besides] = isQuick
    ? [1000, 100, [{ open: 50, events: 20, everyMs: 20 }], [200]]
    : [
        3000,
        250,
        [
          { open: 1, events: 400, everyMs: 5 },
          { open: 200, events: 250, everyMs: 20 },
          { open: 200, events: 250, everyMs: 20, changes: true },
          { open: 1000, events: 40, everyMs: 100 },
        ],
        [1000, 5000],
      ];
  return [
    async (probe) => ({ jsonUs: await probe.json({ requests: json, atOnce: 50 }) }),
    async (probe) => ({ aloneUs: await probe.alone(singles), firstEventUs: await probe.firstEvent(singles / 5) }),
    ...streams.map((extent) => async (probe) => {
      const { cpuUs, bytes } = await probe.streams(extent);
      const name = `${extent.changes === true ? 'changing-' : ''}${extent.open}`;
      return { [`eventUs-${name}`]: cpuUs, [`streamBytes-${name}`]: bytes };
    }),
    ...besides.map((open) => async (probe) => ({
      [`besideUs-${open}`]: await probe.beside({ open, requests: json, atOnce: 50 }),
    })),
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
    for (const probe of probes) await named(probe, () => probe.begin(quick ? 500 : warmUpRequests));
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

/** For each proxy its figures and their ratios to the reference, each of the same round. */
export async function measureCosts(chosen, options) {
  const running = await compare(chosen, options);
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

export function printCosts({ name, figures }) {
  console.log(name);
  for (const [figure, summary] of Object.entries(figures)) {
    if (figure.includes('-to-')) continue;
    const ratio = figures[`${figure}-to-${reference}`];
    console.log(
      `  ${figure.padEnd(21)} ${spread(summary).padEnd(24)} ${ratio === undefined ? '' : `× ${spread(ratio)}`}`,
    );
  }
}
