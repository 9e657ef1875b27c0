// What the HTTP adapters add to a request, against the same server without them.
//
//     npm run bench -- http --only express --rounds 3
//     npm run bench -- http --quick
//     npm run bench -- http --write      into bench/results.json and docs/benchmarks.md
import { readArguments } from '../lib/arguments.mjs';
import { writePage } from '../lib/page.mjs';
import { loadSubjects } from '../lib/plan.mjs';
import { mergeResults } from '../lib/results-file.mjs';
import { summarize } from '../lib/statistics.mjs';
import { spread } from '../lib/tables.mjs';
import { probe } from './probe.mjs';

const frameworks = ['node', 'express', 'koa'];

async function compare(framework, { rounds, quick }) {
  const extent = quick ? { seconds: 1, singles: 500 } : { seconds: 8, singles: 4000 };
  const taken = [];
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? ['plain', 'headgate'] : ['headgate', 'plain'];
    taken.push(await probe(framework, order, extent));
  }
  const over = (read) => summarize(taken.map(({ plain, headgate }) => read(plain, headgate)));
  return {
    name: framework,
    rounds,
    plain: over((plain) => plain.perSecond),
    gated: over((_, headgate) => headgate.perSecond),
    keptThroughput: over((plain, headgate) => headgate.perSecond / plain.perSecond),
    plainCpuUs: over((plain) => plain.cpuUs),
    gatedCpuUs: over((_, headgate) => headgate.cpuUs),
    addedP50Us: over((plain, headgate) => headgate.p50Us - plain.p50Us),
    addedP99Us: over((plain, headgate) => headgate.p99Us - plain.p99Us),
  };
}

try {
  const options = readArguments();
  const chosen = options.only ?? frameworks;
  const unknown = chosen.filter((name) => !frameworks.includes(name));
  if (unknown.length > 0)
    throw new Error(`no such framework: ${unknown.join(', ')}; there are ${frameworks.join(', ')}`);
  // The clients are in this process: the first server would be measured with cold ones.
  await probe(chosen[0], ['plain'], { seconds: 1, singles: 1000 });
  const results = [];
  for (const framework of chosen) {
    const result = await compare(framework, options);
    const { name, plain, gated, keptThroughput, plainCpuUs, gatedCpuUs, addedP50Us, addedP99Us } = result;
    console.log(
      `${name}: ${spread(plain)} requests/s without, ${spread(gated)} with headgate: ${spread(keptThroughput)}`,
    );
    console.log(`  CPU time of one request: ${spread(plainCpuUs)} µs without, ${spread(gatedCpuUs)} µs with headgate`);
    console.log(
      `  added to one request: ${spread(addedP50Us)} µs at the median, ${spread(addedP99Us)} µs at the 99th percentile`,
    );
    results.push(result);
  }
  if (options.write) writePage(mergeResults('servers', results), await loadSubjects());
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
