/** A Prometheus server of a test's own: on a free port, with its data in a folder that goes with it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { freePort } from '../support/free-port.js';

/** Where the program is; undefined when it is not installed. */
export const prometheusPath: string | undefined = [process.env.HEADGATE_PROMETHEUS, '/usr/bin/prometheus'].find(
  (path): path is string => path !== undefined && existsSync(path),
);

export const promtoolPath: string | undefined = prometheusPath && join(dirname(prometheusPath), 'promtool');

/** Tests that are left out say so: `skipIf` alone is easily overlooked. */
export function announceMissingPrometheus(): void {
  if (prometheusPath === undefined)
    process.stderr.write('\nNOT RUN: no Prometheus server; `npm run check -- programs` installs one\n');
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly values: readonly number[];
}

interface Answer<T> {
  readonly status: 'success' | 'error';
  readonly error?: string;
  readonly data: T;
}

interface Series {
  readonly metric: Record<string, string>;
  readonly value?: [number, string];
  readonly values?: [number, string][];
}

export class PrometheusServer {
  private readonly url: string;

  private constructor(url: string) {
    this.url = url;
  }

  /** Scrapes `target`, host and port, every second; ends with the test. */
  static async start(target: string, ruleFile: string): Promise<PrometheusServer> {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-prometheus-'));
    const config = join(folder, 'prometheus.yaml');
    writeFileSync(
      config,
      JSON.stringify({
        global: { scrape_interval: '1s', evaluation_interval: '1s' },
        rule_files: [ruleFile],
        scrape_configs: [{ job_name: 'gateway', static_configs: [{ targets: [target] }] }],
      }),
    );
    const address = `127.0.0.1:${await freePort()}`;
    const args = [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
    ];
    const child = spawn(prometheusPath ?? 'prometheus', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
    onTestFinished(async () => {
      await ended(child);
      rmSync(folder, { recursive: true, force: true });
    });
    const server = new PrometheusServer(`http://${address}`);
    const isReady = (): Promise<boolean> => fetch(`${server.url}/-/ready`).then(({ ok }) => ok, () => false); // biome-ignore format: one question
    await eventually(() => `Prometheus is ready: ${log}`, isReady, 20_000);
    return server;
  }

  /** What an expression says now. */
  async query(expression: string): Promise<Sample[]> {
    const { result } = await this.ask<{ result: Series[] }>('query', { query: expression });
    return result.map(({ metric, value }) => ({
      labels: metric,
      values: value === undefined ? [] : [Number(value[1])],
    }));
  }

  /** What it said each second from one instant to another, in seconds since 1970. */
  async queryRange(expression: string, start: number, end: number): Promise<Sample[]> {
    const { result } = await this.ask<{ result: Series[] }>('query_range', {
      query: expression,
      start: String(start),
      end: String(end),
      step: '1',
    });
    return result.map(({ metric, values = [] }) => ({
      labels: metric,
      values: values.map(([, value]) => Number(value)),
    }));
  }

  /** The sum over all series of a metric; 0 when there are none. */
  async sum(selector: string): Promise<number> {
    const [sample] = await this.query(`sum(${selector})`);
    return sample?.values[0] ?? 0;
  }

  async rules(): Promise<{ name: string; health: string; lastError?: string }[]> {
    const { groups } = await this.ask<{ groups: { rules: { name: string; health: string; lastError?: string }[] }[] }>(
      'rules',
      {},
    );
    return groups.flatMap(({ rules }) => rules);
  }

  private async ask<T>(path: string, parameters: Record<string, string>): Promise<T> {
    const response = await fetch(`${this.url}/api/v1/${path}?${new URLSearchParams(parameters)}`);
    const { status, error, data } = (await response.json()) as Answer<T>;
    if (status !== 'success') throw new Error(`${parameters.query ?? path}: ${error}`);
    return data;
  }
}

/** Resolves when `isTrue` answers yes; it is asked every 50 ms. */
export async function eventually(what: () => string, isTrue: () => Promise<boolean>, limitMs = 15_000): Promise<void> {
  const deadlineAtMs = performance.now() + limitMs;
  while (!(await isTrue())) {
    if (performance.now() > deadlineAtMs) throw new Error(`waited ${limitMs} ms in vain: ${what()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}
