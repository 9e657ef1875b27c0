// What a proxy costs: CPU time from the kernel's books, latency and memory seen from outside.

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import { quantile } from '../lib/measure.mjs';

const path = '/v1/chat/completions';
/** Microseconds of CPU time that the threads of the processes have had, as the scheduler counts them. */
function cpuUs(pids) {
  let ns = 0;
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    }
  }
  return ns / 1000;
}

/** Bytes that the processes hold in memory: `VmRSS` now, `VmHWM` the most so far. */
export function residentBytes(pids, figure = 'VmRSS') {
  const bytesOf = (pid) =>
    1024 * Number(new RegExp(`${figure}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
  return pids.reduce((sum, pid) => sum + bytesOf(pid), 0);
}

const headersOf = ({ headers }) => ({ 'content-type': 'application/json', ...headers });
const messages = [{ role: 'user', content: 'What should I read about queues, and why? '.repeat(10) }];
const jsonBody = JSON.stringify({ model: 'm', messages, max_tokens: 64 });

async function ask(pool, one, body = jsonBody) {
  const answer = await pool.request({ path, method: 'POST', headers: headersOf(one), body });
  if (answer.statusCode !== 200)
    throw new Error(`${one.name} answered ${answer.statusCode}: ${await answer.body.text()}`);
  return answer.body;
}

async function drain(body) {
  for await (const _chunk of body);
}

async function timesOf(count, work) {
  await Promise.all(
    Array.from({ length: count.atOnce }, async (_, lane) => {
      for (let i = lane; i < count.requests; i += count.atOnce) await work();
    }),
  );
}

export class Probe {
  constructor(one) {
    this.one = one;
    this.pool = undefined;
  }

  /**
   * Opens new connections, because those of the last turn may be closed by now, and warms up the process, which stood
   * still.
   */
  async begin(requests) {
    await this.close();
    this.pool = new Pool(`http://127.0.0.1:${this.one.port}`, {
      connections: null,
      bodyTimeout: 0,
      headersTimeout: 60_000,
    });
    await this.json({ requests, atOnce: 50 });
  }

  /** CPU time of a small JSON request, µs. */
  async json({ requests, atOnce }) {
    const { one, pool } = this;
    const before = cpuUs(one.pids);
    await timesOf({ requests, atOnce }, async () => drain(await ask(pool, one)));
    return (cpuUs(one.pids) - before) / requests;
  }

  /** Time of single requests, one after the other, µs at the median. */
  async alone(requests) {
    const samples = [];
    for (let i = 0; i < requests; i++) {
      const startedAtMs = performance.now();
      await drain(await ask(this.pool, this.one));
      samples.push((performance.now() - startedAtMs) * 1000);
    }
    return quantile(Float64Array.from(samples).sort(), 0.5);
  }

  /** Time to the first event of single streams, µs at the median, less the pace of the server. */
  async firstEvent(requests) {
    const samples = [];
    for (let i = 0; i < requests; i++) {
      const startedAtMs = performance.now();
      const body = await this.openStream({ events: 1, everyMs: 1 });
      for await (const _chunk of body) {
        samples.push((performance.now() - startedAtMs) * 1000);
        break;
      }
    }
    return quantile(Float64Array.from(samples).sort(), 0.5);
  }

  /** CPU time of one event, µs, and the resident memory that an open stream takes, bytes. */
  async streams({ open, events, everyMs, changes }) {
    const { one } = this;
    const idleBytes = residentBytes(one.pids);
    const bodies = await Promise.all(Array.from({ length: open }, () => this.openStream({ events, everyMs, changes })));
    const before = cpuUs(one.pids);
    let openBytes = 0;
    const timer = setTimeout(
      () => {
        openBytes = residentBytes(one.pids) - idleBytes;
      },
      (events * everyMs) / 2,
    );
    await Promise.all(bodies.map(drain));
    clearTimeout(timer);
    return { cpuUs: (cpuUs(one.pids) - before) / (open * events), bytes: openBytes / open };
  }

  /** CPU time of a small JSON request while `open` streams stand open and say nothing, µs. */
  async beside({ open, requests, atOnce }) {
    const streams = [];
    // Some at a time: a listener's backlog is not what is measured.
    while (streams.length < open) {
      const some = Math.min(250, open - streams.length);
      const silent = { events: 1, everyMs: 600_000, beginsAtOnce: true };
      streams.push(...(await Promise.all(Array.from({ length: some }, () => this.openStream(silent)))));
    }
    try {
      return await this.json({ requests, atOnce });
    } finally {
      for (const body of streams) body.once('error', () => {}).destroy();
      await pause(500);
    }
  }

  openStream(metadata) {
    return ask(this.pool, this.one, JSON.stringify({ model: 'm', messages, stream: true, metadata }));
  }

  async close() {
    await this.pool?.destroy();
  }
}
