// What it costs to know the load of ten servers: CPU time of this process while it asks them, by the platform's fetch and by undici, at the
// default intervals of a busy gateway and of an idle one. The servers run in a process of their own.
//
//     npm run bench:scraping -- --seconds 10 --servers 10
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { Agent } from 'undici';
import { EndpointPool, scrape } from '../dist/endpoints.js';
import { describeMachine, today } from './lib/machine.mjs';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '10' }, servers: { type: 'string', default: '10' } } });
const seconds = Number(values.seconds);
const servers = Number(values.servers);

/** About 40 kB, as a vLLM server with one model shows after some traffic: two gauges that count, and histograms that are passed over. */
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

/** As the gateway asks. */
async function undiciFetch(url, { headers, signal }) {
  const { statusCode, body } = await agent.request({ origin: new URL(url).origin, path: '/metrics', method: 'GET', headers, signal });
  const parts = body[Symbol.asyncIterator]();
  return { ok: statusCode === 200, status: statusCode, body: { getReader: () => ({ read: () => parts.next(), cancel: async () => {} }) } };
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function measure(name, options) {
  const pool = new EndpointPool();
  for (let i = 0; i < servers; i++) pool.add(`server-${i}`, { labels: { address: `127.0.0.1:${port}` } });
  const scraper = scrape(pool, options);
  await pause(1000);
  const before = scraper.stats.scrapes;
  const cpu = process.cpuUsage();
  await pause(seconds * 1000);
  const { user, system } = process.cpuUsage(cpu);
  const taken = scraper.stats.scrapes - before;
  scraper.stop();
  const share = (user + system) / (seconds * 1e6);
  const each = (user + system) / taken / 1000;
  console.log(
    `  ${name.padEnd(34)}${(taken / seconds).toFixed(0).padStart(6)} a second${each.toFixed(2).padStart(8)} ms each${(share * 100).toFixed(1).padStart(8)} % of a core`,
  );
}

console.log(`${servers} servers, ${(bytes / 1000).toFixed(0)} kB each time, ${seconds} s; ${describeMachine()}; ${today()}`);
await measure('fetch, every 50 ms', {});
await measure('undici, every 50 ms', { fetch: undiciFetch });
await measure('undici, while idle', { fetch: undiciFetch, isIdle: () => true });
await agent.close();
child.kill();
