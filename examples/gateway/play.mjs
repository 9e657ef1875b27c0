// @ts-check
// One run: three model servers, the gateway, the clients, and what each of them counted. The commands differ in the
// options they pass.

import { setTimeout as delay } from 'node:timers/promises';

/** @import { FlowStats } from 'headgate' */
/** @import { Processes, Running } from './processes.mjs' */
/** @import { RequestRecord } from './traffic.mjs' */

/**
 * @typedef {object} Played
 * @property {RequestRecord[]} records
 * @property {number} elapsedMs
 * @property {(metric: string) => number} total A metric, summed over the servers.
 * @property {FlowStats | undefined} stats What the gateway's controller counted; nothing without flow control.
 * @property {number} left Requests still in a seat, in a queue or in a batch although all clients are done: there
 * should be none.
 */

const names = ['server-1', 'server-2', 'server-3'];
/** How long the end of a stream may take to reach the gateway and the server, after the client knows. */
const settleMs = 3_000;

/** @param {Processes} processes @param {readonly string[]} gatewayOptions */
export async function startGateway(processes, gatewayOptions) {
  const servers = await Promise.all(names.map((name) => processes.startServer('model-server.mjs', ['--name', name])));
  const upstreams = servers.flatMap(({ url }, index) => ['--server', `${names[index]}=${url}`]);
  const gateway = await processes.startServer('gateway.mjs', [...upstreams, ...gatewayOptions, '--trust-flow-headers']);
  return { servers, gateway, names };
}

/**
 * @param {Processes} processes
 * @param {{ title: string, gateway: readonly string[], traffic: readonly string[] }} run The title, and the options of
 * two processes.
 * @returns {Promise<Played>}
 */
export async function play(processes, { title, gateway: gatewayOptions, traffic }) {
  const { servers, gateway } = await startGateway(processes, gatewayOptions);
  const { records, elapsedMs } = await sendTraffic(processes, title, ['--url', gateway.url, ...traffic]);
  const givesUpAtMs = performance.now() + settleMs;
  let counted;
  do {
    await delay(50);
    counted = await readCounters(processes, gateway, servers);
  } while (counted.left > 0 && performance.now() < givesUpAtMs);
  await processes.stopAll();
  return { records, elapsedMs, ...counted };
}

/** @param {Processes} processes @param {Running} gateway @param {readonly Running[]} servers */
async function readCounters(processes, gateway, servers) {
  /** @type {FlowStats | undefined} */
  const stats = await processes.ask(gateway, 'stats');
  const metrics = await Promise.all(servers.map(readMetrics));
  const total = (/** @type {string} */ name) => metrics.reduce((sum, values) => sum + (values.get(name) ?? 0), 0);
  const left =
    (stats?.inFlight ?? 0) +
    (stats?.waiting ?? 0) +
    total('vllm:num_requests_running') +
    total('vllm:num_requests_waiting');
  return { stats, total, left };
}

/**
 * @param {Processes} processes @param {string} title @param {readonly string[]} options @returns {Promise<Pick<Played,
 * 'records' | 'elapsedMs'>>}
 */
function sendTraffic(processes, title, options) {
  const showProgress = progressLine(title);
  /** @type {Promise<Pick<Played, 'records' | 'elapsedMs'>>} */
  const done = new Promise((resolve) => {
    processes.start('traffic.mjs', options, (message) => {
      if (message.type === 'progress') showProgress(message);
      if (message.type === 'records') resolve(message);
    });
  });
  return Promise.race([done, processes.failed]).finally(() => process.stderr.isTTY && process.stderr.write('\r\x1b[K'));
}

/** One line that is written over on a terminal; elsewhere a line every five seconds. @param {string} title */
function progressLine(title) {
  let nextAtMs = 5_000;
  /**
   * @param {{ elapsedMs: number, total: number, sent: number, streaming: number, completed: number, dropped: number }}
   * progress
   */
  return ({ elapsedMs, total, sent, streaming, completed, dropped }) => {
    const text = `${title}  ${(elapsedMs / 1_000).toFixed(0).padStart(2)} s  sent ${sent}/${total}  streaming ${streaming}  completed ${completed}  refused ${dropped}`;
    if (process.stderr.isTTY) {
      process.stderr.write(`\r${text.slice(0, (process.stderr.columns ?? 80) - 1)}\x1b[K`);
    } else if (elapsedMs >= nextAtMs) {
      nextAtMs += 5_000;
      process.stderr.write(`${text}\n`);
    }
  };
}

/** The plain samples of a server's /metrics. @param {Running} server @returns {Promise<Map<string, number>>} */
async function readMetrics({ url }) {
  const response = await fetch(`${url}/metrics`);
  const samples = (await response.text()).matchAll(/^([a-z_:]+)(?:\{.*\})? (\S+)$/gm);
  return new Map(Array.from(samples, ([, name = '', value]) => [name, Number(value)]));
}
