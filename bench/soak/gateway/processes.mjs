// The gateway and its model servers as processes of their own. Each ends with this one.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const serverFile = fileURLToPath(new URL('./model-server.mjs', import.meta.url));
const command = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));

/** A model server that is killed and started again, on the same port. */
export class ModelServer {
  id;
  labels;
  url = '';
  kills = 0;
  #child;
  #port = 0;

  constructor(id, labels) {
    this.id = id;
    this.labels = labels;
    process.once('exit', () => this.#child?.kill('SIGKILL'));
  }

  async start() {
    this.#child = fork(serverFile, [String(this.#port), String(this.kills + 1)], { execArgv: [] });
    [this.#port] = await once(this.#child, 'message');
    this.url = `http://127.0.0.1:${this.#port}`;
  }

  async kill() {
    this.kills++;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

export class GatewayProcess {
  url = '';
  adminUrl = '';
  /** Lines of its log, by their event. */
  events = new Map();
  /** What it should never have said. */
  complaints = [];
  #child;
  #folder = mkdtempSync(join(tmpdir(), 'headgate-soak-'));
  #ended;
  #waiters = [];

  async start(config) {
    this.#write(config);
    this.#child = spawn(process.execPath, [command, 'gateway', '--config', this.#file, '--log-format', 'json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    process.once('exit', () => this.#child.kill('SIGKILL'));
    this.#ended = once(this.#child, 'exit');
    for (const output of [this.#child.stdout, this.#child.stderr])
      createInterface({ input: output }).on('line', (line) => this.#hear(line));
    const { url, adminUrl } = await Promise.race([this.#next('listening'), this.#ended]);
    if (url === undefined) throw new Error(`the gateway did not start: ${this.complaints.join('\n')}`);
    this.url = url;
    this.adminUrl = adminUrl;
  }

  /** Resolves when the gateway has said whether it took the file. */
  async reload(config) {
    this.#write(config);
    this.#child.kill('SIGHUP');
    await Promise.race([this.#next('reloaded'), this.#next('reload-refused'), this.#ended]);
  }

  /** Resolves to the exit status. */
  async stop() {
    this.#child.kill('SIGTERM');
    const [code, signal] = await this.#ended;
    rmSync(this.#folder, { recursive: true });
    return signal ?? code;
  }

  get hasEnded() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get #file() {
    return join(this.#folder, 'gateway.yaml');
  }

  #write(config) {
    writeFileSync(this.#file, typeof config === 'string' ? config : JSON.stringify(config));
  }

  #next(event) {
    return new Promise((resolve) => this.#waiters.push({ event, resolve }));
  }

  #hear(line) {
    let entry;
    try {
      entry = JSON.parse(line);
    } catch {
      this.complaints.push(line);
      return;
    }
    const { event, level } = entry;
    this.events.set(event, (this.events.get(event) ?? 0) + 1);
    const isExpected = event === 'reload-refused' || event === 'fault';
    if ((level === 'error' && !isExpected) || event === 'node-warning') this.complaints.push(line);
    const told = this.#waiters.filter((waiter) => waiter.event === event);
    this.#waiters = this.#waiters.filter((waiter) => waiter.event !== event);
    for (const { resolve } of told) resolve(entry);
  }
}
