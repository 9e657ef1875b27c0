/** Real servers for tests: found on the machine, started on a free port, stopped at the end. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../support/free-port.js';

export interface StoreKind {
  readonly name: 'redis' | 'valkey';
  readonly program: string;
}

function find(name: StoreKind['name'], program: string): StoreKind[] {
  const { status } = spawnSync(program, ['--version']);
  return status === 0 ? [{ name, program }] : [];
}

/** Those that are installed. */
export const storeKinds: readonly StoreKind[] = [...find('redis', 'redis-server'), ...find('valkey', 'valkey-server')];

const missing = ['redis', 'valkey'].filter((name) => !storeKinds.some((kind) => kind.name === name));
if (missing.length > 0) {
  const packages = missing.map((name) => `${name}-server`).join(' and ');
  // On a build machine a test that does not run is a failure.
  if (process.env.CI) throw new Error(`${packages} must be installed: node scripts/install-engines.mjs`);
  process.stderr.write(
    `\nNOT RUN: tests against ${packages}, which this machine does not have (node scripts/install-engines.mjs)\n\n`,
  );
}

/** A server that can be stopped, paused and started again on its port. */
export class Store {
  readonly port: number;
  readonly directory: string;
  readonly kind: StoreKind;
  /** Options as on the server's command line. */
  private options: readonly string[];
  private child: ChildProcess | undefined = undefined;

  private constructor(kind: StoreKind, port: number, options: readonly string[]) {
    this.kind = kind;
    this.port = port;
    this.options = options;
    this.directory = mkdtempSync(join(tmpdir(), 'headgate-store-'));
  }

  /** `options` as on the server's command line. */
  static async start(kind: StoreKind, options: readonly string[] = []): Promise<Store> {
    const store = new Store(kind, await freePort(), ['--save', '', ...options]);
    await store.up();
    return store;
  }

  /** `configFile` writes the file that it is told by, into the folder of the sentinel. */
  static async startSentinel(kind: StoreKind, configFile: (folder: string) => string): Promise<Store> {
    const sentinel = new Store(kind, await freePort(), []);
    sentinel.options = [configFile(sentinel.directory), '--sentinel'];
    await sentinel.up();
    return sentinel;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the server, with what it has on disk. Resolves when it answers. */
  async up(): Promise<void> {
    const fixed = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.directory, '--daemonize', 'no'];
    // The file of a sentinel comes before all options.
    const child = spawn(this.kind.program, [...this.options, ...fixed], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.child = child;
    let said = '';
    child.stdout.on('data', (text) => {
      said = (said + text).slice(-2_000);
    });
    const probe = new Redis(this.port, { retryStrategy: () => 20, maxRetriesPerRequest: 0 });
    probe.on('error', () => {});
    try {
      while (child.exitCode === null && child.signalCode === null) {
        // A password, or a replica that still loads, is an answer too.
        const answer = await probe
          .ping()
          .catch((error: Error) => (/NOAUTH|WRONGPASS|NOPERM/.test(error.message) ? 'PONG' : 'wait'));
        if (answer === 'PONG') return;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      throw new Error(`${this.kind.program} ended with ${child.exitCode ?? child.signalCode} and said:\n${said}`);
    } finally {
      probe.disconnect();
    }
  }

  /** Ends it at once: what is not on disk is lost. */
  kill(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.kill('SIGKILL');
    });
  }

  pause(): void {
    this.child?.kill('SIGSTOP');
  }

  resume(): void {
    this.child?.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    this.resume();
    await this.kill();
    if (existsSync(this.directory)) rmSync(this.directory, { recursive: true, force: true });
  }
}
