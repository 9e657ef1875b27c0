// What an exchange costs an endpoint picker: CPU time of its process, beside a bare server of the same protocol that
// decides nothing. Sixteen exchanges at a time on two connections; the servers take turns in rounds.
//
//     npm run bench -- ext-proc --rounds 5 --exchanges 5000
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { describeMachine, today } from '../lib/machine.mjs';
import { summarize } from '../lib/statistics.mjs';
import { spread } from '../lib/tables.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, exchanges: { type: 'string', default: '5000' } },
});
const rounds = Number(values.rounds);
const exchanges = Number(values.exchanges);
const atOnce = 16;
const file = fileURLToPath(new URL('ext_proc.proto', import.meta.url));
const { ExternalProcessor } = grpc.loadPackageDefinition(loadSync(file)).envoy.service.ext_proc.v3;

const headersOf = (record) => ({
  headers: { headers: Object.entries(record).map(([key, value]) => ({ key, rawValue: Buffer.from(value) })) },
});
const requestHeaders = headersOf({
  ':authority': 'models.example',
  ':path': '/v1/chat/completions',
  ':method': 'POST',
  ':scheme': 'http',
  'content-type': 'application/json',
  'user-agent': 'bench',
  'x-forwarded-proto': 'http',
  'x-request-id': '5f1c3f34-8d3c-4e0b-9d63-0e8a3a1f9f11',
  'x-llm-d-inference-fairness-id': 'tenant-1',
});
const bodyOf = (bytes, stream) =>
  Buffer.from(JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'x'.repeat(bytes) }] }));
const answer = Buffer.from(
  JSON.stringify({ id: 'x', choices: [], usage: { prompt_tokens: 7, completion_tokens: 10 } }),
);
const event = (i) => Buffer.from(`data: {"id":"x","choices":[{"index":0,"delta":{"content":"word ${i}"}}]}\n\n`);

const json = { headers: { ':status': '200', 'content-type': 'application/json' }, pieces: [answer] };
const shapes = {
  'JSON, .5 kB': { ...json, body: bodyOf(420, false), share: 1 },
  '50 events': {
    headers: { ':status': '200', 'content-type': 'text/event-stream' },
    pieces: Array.from({ length: 50 }, (_, i) => event(i)),
    body: bodyOf(420, true),
    share: 0.2,
  },
  'JSON, body of 100 kB': { ...json, body: bodyOf(100_000, false), share: 0.2 },
};

/** One exchange, as a proxy has it: resolves with the time to the decision, ms. */
function exchange(client, { headers, pieces, body }) {
  return new Promise((resolve, reject) => {
    const call = client.Process();
    const startedAtMs = performance.now();
    let decidedMs = 0;
    call.on('data', (message) => {
      if (message.requestHeaders) decidedMs = performance.now() - startedAtMs;
      if (message.immediateResponse) reject(new Error(String(message.immediateResponse.body)));
      if (message.requestBody?.response.bodyMutation.streamedResponse.endOfStream) {
        call.write({ responseHeaders: headersOf(headers) });
        for (const [i, piece] of pieces.entries())
          call.write({ responseBody: { body: piece, endOfStream: i === pieces.length - 1 } });
      }
      if (message.responseBody?.response.bodyMutation.streamedResponse.endOfStream) call.end();
    });
    call.on('error', reject);
    call.on('end', () => resolve(decidedMs));
    call.write({ requestHeaders });
    call.write({ requestBody: { body, endOfStream: true } });
  });
}

class Subject {
  static async start(name) {
    const child = fork(fileURLToPath(new URL('server.mjs', import.meta.url)), [name]);
    const [port] = await once(child, 'message');
    return Object.assign(new Subject(), { name, child, port, figures: {} });
  }

  clients = [];

  connect() {
    this.clients = [0, 1].map(
      (each) =>
        new ExternalProcessor(`127.0.0.1:${this.port}`, grpc.credentials.createInsecure(), {
          'grpc.use_local_subchannel_pool': 1,
          'headgate.bench': each,
        }),
    );
  }

  async usage() {
    this.child.send('usage');
    const [usage] = await once(this.child, 'message');
    return usage;
  }

  /** CPU time and time to the decision of `count` exchanges. */
  async measure(shape, count) {
    const before = await this.usage();
    const startedAtMs = performance.now();
    const decisions = [];
    let left = count;
    await Promise.all(
      Array.from({ length: atOnce }, async (_, lane) => {
        while (left-- > 0) decisions.push(await exchange(this.clients[lane % 2], shape));
      }),
    );
    const seconds = (performance.now() - startedAtMs) / 1000;
    const { user, system } = await this.usage();
    decisions.sort((a, b) => a - b);
    return {
      cpuUs: (user + system - before.user - before.system) / count,
      perSecond: count / seconds,
      p50Ms: decisions[count >> 1],
      p99Ms: decisions[Math.floor(count * 0.99)],
    };
  }

  /** Bytes for each of `count` streams that wait for their answer. */
  async memory(count) {
    const before = await this.usage();
    const calls = Array.from({ length: count }, (_, i) => {
      const call = this.clients[i % 2].Process();
      call.on('error', () => {}).on('data', () => {});
      call.write({ requestHeaders });
      return call;
    });
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const { rss } = await this.usage();
    for (const call of calls) call.cancel();
    return (rss - before.rss) / count;
  }
}

const subjects = [await Subject.start('bare'), await Subject.start('headgate')];
for (const subject of subjects) {
  subject.connect();
  for (const shape of Object.values(shapes)) await subject.measure(shape, Math.max(atOnce, exchanges * shape.share));
}
console.log(`${rounds} × ${exchanges} exchanges; ${describeMachine()}; ${today()}`);
for (const [name, shape] of Object.entries(shapes)) {
  const count = Math.max(atOnce, Math.round(exchanges * shape.share));
  const taken = new Map(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < rounds; round++)
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed())
      taken.get(subject).push(await subject.measure(shape, count));
  const [bare] = taken.values();
  console.log(`\n${name}`);
  for (const [subject, results] of taken) {
    const of = (figure) => spread(summarize(results.map((each) => each[figure])));
    const ratio = spread(summarize(results.map(({ cpuUs }, i) => cpuUs / bare[i].cpuUs)));
    console.log(
      `  ${subject.name.padEnd(9)} CPU ${of('cpuUs')} µs (× ${ratio}), ${of('perSecond')}/s, decision p50 ${of('p50Ms')} ms, p99 ${of('p99Ms')} ms`,
    );
  }
}
console.log('\n1,000 streams that are open');
for (const subject of subjects)
  console.log(`  ${subject.name.padEnd(9)} ${((await subject.memory(1000)) / 1000).toFixed(1)} kB each`);
for (const { child, clients } of subjects) {
  for (const client of clients) client.close();
  child.kill();
}
