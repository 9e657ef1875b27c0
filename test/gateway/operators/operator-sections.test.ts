/** The sections for operators: inspector, demand, OpenTelemetry, and plugins of one's own. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { metrics, trace } from '@opentelemetry/api';
import { InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { importPlugins, loadGatewayConfig } from '../../../src/gateway/index.js';
import { FlowConfigError } from '../../../src/index.js';
import { bundleCli } from '../support/bundled-cli.js';
import { fileOf, startGateway } from '../support/gateway.js';
import { startUpstream } from '../support/upstream.js';

const basic = (password: string): RequestInit => ({ headers: { authorization: `Basic ${btoa(`ops:${password}`)}` } });
const bearer = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });

function issuesOf(file: object): string[] {
  try {
    loadGatewayConfig(file);
  } catch (error) {
    if (error instanceof FlowConfigError) return error.issues.map(({ path }) => path);
    throw error;
  }
  return [];
}

describe('inspector:', () => {
  it('serves the page of this gateway, its frames and its search, to those who know the password', async () => {
    const server = await startUpstream();
    const { gateway, post } = await startGateway(fileOf([server.url], { inspector: { password: 'sesame' } }));
    await (await post({ model: 'llama', messages: [] })).text();
    const stranger = await fetch(`${gateway.url}/inspector`);
    expect([stranger.status, stranger.headers.get('www-authenticate')]).toEqual([
      401,
      'Basic realm="headgate", charset="UTF-8"',
    ]);
    expect((await fetch(`${gateway.url}/inspector`, basic('wrong'))).status).toBe(401);
    const page = await fetch(`${gateway.url}/inspector`, basic('sesame'));
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('headgate inspector')]);
    const frame = await (await fetch(`${gateway.url}/inspector?view=json`, basic('sesame'))).json();
    expect(frame).toMatchObject({
      outcomes: { totals: { Dispatched: 1 } },
      endpoints: [{ name: 'u0', seats: 1, trouble: null }],
    });
  });

  it('is on the port for operators where there is one, and goes by admin.token without a password', async () => {
    const { gateway } = await startGateway(
      fileOf([(await startUpstream()).url], {
        admin: { port: 0, token: 'key' },
        inspector: { path: '/ui', fairnessIds: 'hidden' },
      }),
    );
    expect((await fetch(`${gateway.adminUrl}/ui`, basic('key'))).status).toBe(200);
    expect((await fetch(`${gateway.url}/ui`, basic('key'))).status).toBe(404);
  });

  it('is not shown to the page of a stranger that has given a name of its own to the gateway', async () => {
    const file = fileOf([(await startUpstream()).url], {
      inspector: { password: 'sesame' },
      admin: { hosts: ['Ops.example.com'] },
    });
    const { gateway } = await startGateway(file);
    const port = Number(new URL(gateway.url).port);
    const statusBy = (host: string, path = '/inspector'): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const authorization = `Basic ${btoa('ops:sesame')}`;
        get({ port, path, headers: { host, authorization } }, (res) => resolve(res.resume().statusCode)).on(
          'error',
          reject,
        );
      });
    for (const host of [`127.0.0.1:${port}`, 'localhost', '[::1]:80', '10.1.2.3', 'ops.example.com'])
      expect([host, await statusBy(host)]).toEqual([host, 200]);
    for (const host of ['evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', '[::1]x'])
      for (const path of ['/inspector', '/metrics', '/demand'])
        expect([host, path, await statusBy(host, path)]).toEqual([host, path, 421]);
    expect(await statusBy('evil.example', '/healthz')).toBe(200);
    expect(await statusBy('ops.example.com', '/metrics')).toBe(200);
  });

  it('has a password that cannot be tried without end', async () => {
    const { gateway } = await startGateway(
      fileOf([(await startUpstream()).url], { inspector: { password: 'sesame' } }),
    );
    const statuses: number[] = [];
    for (let index = 0; index < 12; index++)
      statuses.push((await fetch(`${gateway.url}/inspector`, basic('wrong'))).status);
    expect(new Set(statuses.slice(0, 10))).toEqual(new Set([401]));
    expect(statuses.at(-1)).toBe(429);
  });

  it('lets the gateway close while a page watches', async () => {
    const { gateway } = await startGateway(
      fileOf([(await startUpstream()).url], { inspector: { password: 'sesame' } }),
    );
    const stream = await fetch(`${gateway.url}/inspector?view=events`, basic('sesame'));
    expect(stream.status).toBe(200);
    const ended = stream.text();
    await gateway.close();
    expect(await ended).toContain('data:');
  });

  it('is not there without the section, and not without a password', async () => {
    const { gateway } = await startGateway(fileOf([(await startUpstream()).url]));
    expect((await fetch(`${gateway.url}/inspector`, basic(''))).status).toBe(404);
    expect(issuesOf(fileOf([], { inspector: {} }))).toEqual(['inspector.password']);
    expect(issuesOf(fileOf([], { inspector: { password: 'x', path: '/metrics' } }))).toEqual(['inspector.path']);
    expect(issuesOf(fileOf([], { inspector: { password: 'x', path: '/demand' } }))).toEqual(['demand.path']);
  });

  it('needs a restart to change, and tells no password', async () => {
    const file = (password: string): object => fileOf([], { inspector: { password } });
    const { gateway, config } = await startGateway(file('one'));
    expect(gateway.reconfigure(loadGatewayConfig(file('two')))).toEqual(['inspector']);
    const { changesBetween } = await import('../../../src/gateway/settings/config-changes.js');
    expect(changesBetween(config, loadGatewayConfig(file('two')))).toEqual(['inspector.password: changed']);
  });
});

describe('demand:', () => {
  it('has a path and a token of its own, which opens nothing else', async () => {
    const auth = { keys: [{ key: 'client', tenant: 'a' }] };
    const { gateway } = await startGateway(
      fileOf([(await startUpstream()).url], {
        auth,
        admin: { token: 'admin' },
        demand: { path: '/scale', token: 'keda' },
      }),
    );
    const status = async (path: string, init?: RequestInit): Promise<number> =>
      (await fetch(gateway.url + path, init)).status;
    expect(await status('/scale')).toBe(401);
    expect(await status('/scale', bearer('keda'))).toBe(200);
    expect(await status('/scale', bearer('admin'))).toBe(200);
    expect(await status('/scale', { ...bearer('keda'), method: 'POST' })).toBe(405);
    expect(await status('/metrics', bearer('keda'))).toBe(401);
    expect(await status('/demand', bearer('keda'))).toBe(404);
    expect(issuesOf(fileOf([], { demand: { path: '/healthz' } }))).toEqual(['demand.path']);
  });
});

describe('openTelemetry:', () => {
  afterEach(() => {
    metrics.disable();
    trace.disable();
  });

  it('tells metrics and spans to the providers of the process', async () => {
    const exporter = new InMemoryMetricExporter(0);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const provider = new MeterProvider({ readers: [reader] });
    metrics.setGlobalMeterProvider(provider);
    const spans = new InMemorySpanExporter();
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
    const server = await startUpstream();
    const { gateway, post } = await startGateway(
      fileOf([server.url], { openTelemetry: { pool: 'llama', fairnessIds: true } }),
    );
    const held = gateway.flow.tryEnqueue({ byteSize: 1 } as never, { fairnessId: 'first', priority: 0 });
    const answer = post({ model: 'llama', messages: [] });
    while (gateway.flow.stats().waiting === 0) await new Promise(setImmediate);
    if (held?.type === 'Dispatched') held.lease.release();
    expect((await answer).status).toBe(200);
    await reader.forceFlush();
    const told = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    const requests = told.find(({ descriptor }) => descriptor.name === 'flow_control.requests');
    expect(requests?.dataPoints[0]?.attributes).toMatchObject({
      'flow_control.pool': 'llama',
      'flow_control.outcome': 'Dispatched',
    });
    expect(
      spans.getFinishedSpans().map(({ name, attributes }) => [name, attributes['flow_control.fairness_id']]),
    ).toEqual([
      ['flow_control.request', 'first'],
      ['flow_control.wait', 'default-flow'],
      ['flow_control.request', 'default-flow'],
    ]);
    await provider.shutdown();
  });
});

const policies = `
const polite = {
  kind: 'ordering', type: 'polite-ordering-policy',
  create: () => ({ type: 'polite-ordering-policy', compare: () => 0, arrivalOrder: true }),
};
export default [polite];
`;

describe('plugins of your own', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'headgate-plugins-'));
    writeFileSync(join(folder, 'policies.mjs'), policies);
    writeFileSync(join(folder, 'empty.mjs'), 'globalThis.headgateWasImported = true;\n');
    writeFileSync(join(folder, 'twice.mjs'), policies.replace('polite-ordering-policy', 'fcfs-ordering-policy'));
    writeFileSync(join(folder, 'wrong.mjs'), 'export default 7;\n');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const file = (plugins: unknown): object => ({
    listen: { port: 0 },
    upstreams: [],
    plugins,
    flowControl: { defaultPriorityBand: { orderingPolicyRef: 'polite-ordering-policy' } },
  });

  it.each([
    ['a module alone', './policies.mjs'],
    ['a module among others', ['./policies.mjs', { type: 'concurrency-detector' }]],
  ])('come from %s', async (_, plugins) => {
    const registry = await importPlugins(file(plugins), { from: folder });
    const { flow } = loadGatewayConfig(file(plugins), { registry });
    expect(flow.defaultBand?.ordering?.type).toBe('polite-ordering-policy');
  });

  it('are a fault where nobody imported them', () => {
    expect(issuesOf(file('./policies.mjs'))[0]).toBe('plugins');
  });

  it('are told with every fault of every module', async () => {
    const wrong = ['./missing.mjs', './empty.mjs', './twice.mjs', './wrong.mjs'];
    const error = await importPlugins(file(wrong), { from: folder }).catch((thrown: unknown) => thrown);
    expect((error as FlowConfigError).issues.map(({ path }) => path)).toEqual([
      'plugins[0]',
      'plugins[1]',
      'plugins[2]: type',
      'plugins[3]: definition',
    ]);
  });

  it('come with --import and with the file, in headgate check and headgate gateway', async () => {
    const cli = await bundleCli();
    try {
      const path = join(folder, 'gateway.yaml');
      const { plugins: _, ...rest } = file(undefined) as Record<string, unknown>;
      writeFileSync(path, JSON.stringify({ ...rest, plugins: './policies.mjs' }));
      expect((await cli.start(['check', path]).ended).stdout).toContain('polite-ordering-policy');
      const gateway = cli.start([
        'gateway',
        '--config',
        path,
        '--log-format',
        'json',
        '--import',
        join(folder, 'empty.mjs'),
      ]);
      while (gateway.events('listening').length === 0 && gateway.child.exitCode === null)
        await new Promise((wait) => setTimeout(wait, 20));
      gateway.child.kill('SIGHUP');
      while (gateway.events('reloaded').length === 0 && gateway.child.exitCode === null)
        await new Promise((wait) => setTimeout(wait, 20));
      gateway.child.kill('SIGINT');
      expect((await gateway.ended).status).toBe(0);
      writeFileSync(path, JSON.stringify(rest));
      expect((await cli.start(['check', path]).ended).status).toBe(1);
      expect((await cli.start(['check', path, '--import', join(folder, 'policies.mjs')]).ended).status).toBe(0);
      const faulty = await cli.start(['check', path, '--import', './nothing.mjs', '--json']).ended;
      expect([faulty.status, JSON.parse(faulty.stdout).faults[0].path]).toEqual([1, '--import']);
    } finally {
      cli.remove();
    }
  });
});
