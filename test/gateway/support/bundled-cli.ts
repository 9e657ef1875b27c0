/** The command as a process: bundled from the sources, so that no build is needed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../../../', import.meta.url));

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs. */
export class CliProcess {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  readonly ended: Promise<Ended>;

  constructor(file: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.child = spawn(process.execPath, [file, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
    this.child.stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    this.ended = new Promise((resolve) => {
      this.child.once('close', (status) => resolve({ status, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  /** What JSON log lines say of one event. */
  events(event: string): Record<string, unknown>[] {
    const lines = this.stderr.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
    return lines.map((line) => JSON.parse(line)).filter((entry) => entry.event === event);
  }
}

/** Bundles once for each test file; `remove` when it is done. */
export async function bundleCli(): Promise<{
  start(args: readonly string[], env?: Record<string, string>): CliProcess;
  folder: string;
  remove(): void;
}> {
  const folder = `${root}test-results/cli-${process.pid}-${process.hrtime.bigint()}`;
  mkdirSync(`${folder}/bin`, { recursive: true });
  await build({
    entryPoints: [`${root}src/gateway/cli/main.ts`],
    outfile: `${folder}/bin/cli.mjs`,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  });
  const texts = readdirSync(`${root}src/gateway/cli`).filter((name) => name.endsWith('.txt'));
  for (const name of texts) copyFileSync(`${root}src/gateway/cli/${name}`, `${folder}/bin/${name}`);
  const running = new Set<CliProcess>();
  return {
    folder,
    start(args, env = {}) {
      const started = new CliProcess(`${folder}/bin/cli.mjs`, args, env);
      running.add(started);
      return started;
    },
    remove() {
      for (const { child } of running) child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
