// @ts-check
// Starts `headgate gateway` with a configuration, for the comparisons: it ends when it is stopped, or with this process.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const command = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

/**
 * Resolves when it listens. @param {object} config Its port and the format of its log are set here.
 * @returns {Promise<{ url: string, stop(): Promise<string> }>} `stop` resolves with the log.
 */
export async function startGatewayCommand(config) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-gateway-'));
  const file = join(folder, 'gateway.yaml');
  const base = { listen: { port: 0 }, log: { format: 'json', requests: false } };
  writeFileSync(file, JSON.stringify({ ...base, ...config })); // JSON is YAML as well
  const child = spawn(process.execPath, [command, 'gateway', '--config', file], {
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  process.once('exit', () => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let log = '';
  /** @type {Promise<string>} */
  const listening = new Promise((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
      log += text;
      const url = /"event":"listening",.*?"url":"([^"]+)"/.exec(log)?.[1];
      if (url) resolve(url);
    });
    child.once('exit', () => reject(new Error(`the gateway ended: ${log}`)));
  });
  return {
    url: await listening,
    async stop() {
      child.kill('SIGINT');
      await ended;
      return log;
    },
  };
}
