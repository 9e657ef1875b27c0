// What it costs to know the load of ten servers: CPU time of this process while it asks them, by the platform's fetch
// and by undici as the gateway does, at the default intervals of a busy pool and of an idle one. The servers run in a
// process of their own. The ways take turns in rounds, so that what else runs on the machine falls on all of them:
// medians, with the lowest and the highest round.
//
//     npm run bench -- scraping --seconds 10 --servers 10 --rounds 3
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { Agent } from 'undici';
import { EndpointPool, scrape, undiciFetch } from '../dist/endpoints.js';
import { concurrencyDetector, FlowController } from '../dist/index.js';
import { describeMachine, today } from './lib/machine.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    servers: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
  },
});
const seconds = Number(values.seconds);
const servers = Number(values.servers);
const rounds = Number(values.rounds);

/**
 * About 40 kB, as a vLLM server with one model shows after some traffic: two gauges that count, and histograms that are
 * passed over.
 */
const serverCode = `
  const http = require('node:http');
  const gauge = (name, value) => '# HELP ' + name + ' What it counts.\\n# TYPE ' + name + ' gauge\\n' + name + '{engine="0",model_name="m"} ' + value + '\\n';
  const histogram = (name) => '# HELP ' + name + ' Seconds.\\n# TYPE ' + name + ' histogram\\n' +
    Array.from({ length: 30 }, (_, i) => name + '_bucket{engine="0",le="' + i / 10 + '",model_name="m"} ' + i * 17 + '.0\\n').join('');
  const text = gauge('vllm:num_requests_running', 3) + gauge('vllm:num_requests_waiting', 1) + gauge('vllm:kv_cache_usage_perc', 0.4) +
    Array.from({ length: 20 }, (_, i) => histogram('vllm:histogram_number_' + i + '_seconds')).join('');
  const server = http.createServer((request, response) => response.end(text));
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port, bytes: text.length }));
`;

const child = spawn(process.execPath, ['-e', serverCode], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
const [{ port, bytes }] = await once(child, 'message');
const agent = new Agent();

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A pool with a controller, as in a gateway; `isBusy`: a request runs all the time. */
async function measure({ isBusy, ...options }) {
  const pool = new EndpointPool();
  const flow = new FlowController({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 100 }) });
  for (let i = 0; i < servers; i++) pool.add(`server-${i}`, { labels: { address: `127.0.0.1:${port}` } });
  if (isBusy) await flow.enqueue({ byteSize: 1 }, { fairnessId: 'bench', priority: 0 });
  const scraper = scrape(pool, options);
  await pause(1000);
  const before = scraper.stats.scrapes;
  const cpu = process.cpuUsage();
  await pause(seconds * 1000);
  const { user, system } = process.cpuUsage(cpu);
  const taken = scraper.stats.scrapes - before;
  scraper.stop();
  return {
    perSecond: taken / seconds,
    eachMs: (user + system) / taken / 1000,
    share: ((user + system) / (seconds * 1e6)) * 100,
  };
}

const ways = {
  'fetch, every 50 ms': { isBusy: true },
  'undici, every 50 ms': { isBusy: true, fetch: undiciFetch(agent) },
  'undici, while idle': { fetch: undiciFetch(agent) },
};

const taken = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let round = 0; round < rounds; round++) {
  for (const [name, options] of Object.entries(ways)) taken[name].push(await measure(options));
}

console.log(
  `${servers} servers, ${(bytes / 1000).toFixed(0)} kB each time, ${rounds} × ${seconds} s; ${describeMachine()}; ${today()}`,
);
for (const [name, figures] of Object.entries(taken)) {
  const sorted = (field) => figures.map((each) => each[field]).sort((a, b) => a - b);
  const median = (field) => sorted(field)[Math.floor(figures.length / 2)];
  const shares = sorted('share');
  console.log(
    `  ${name.padEnd(22)}${median('perSecond').toFixed(0).padStart(5)} a second${median('eachMs').toFixed(2).padStart(7)} ms each` +
      `${median('share').toFixed(2).padStart(8)} % of a core (${shares[0].toFixed(2)}–${shares.at(-1).toFixed(2)})`,
  );
}
child.kill();
process.exit();
