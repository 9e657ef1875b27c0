/** `headgate epp` as a process: it starts, takes a changed file, and ends. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { until } from '../../integration/support/until.js';
import { bundleCli, type CliProcess } from '../support/bundled-cli.js';

let cli: Awaited<ReturnType<typeof bundleCli>>;
let folder: string;
let file: string;
beforeAll(async () => {
  cli = await bundleCli();
  folder = mkdtempSync(join(tmpdir(), 'headgate-epp-command-'));
  file = join(folder, 'epp.yaml');
  writeFileSync(join(folder, 'endpoints.yaml'), 'endpoints: [{ name: a, address: 127.0.0.1, port: "9" }]');
});
afterAll(() => {
  cli.remove();
  rmSync(folder, { recursive: true, force: true });
});

function write(own: object, maxRequests: unknown = 10, flowControl: object = {}): void {
  const document = {
    apiVersion: 'llm-d.ai/v1alpha1',
    kind: 'EndpointPickerConfig',
    featureGates: ['flowControl'],
    plugins: [{ type: 'file-discovery', parameters: { path: join(folder, 'endpoints.yaml') } }],
    flowControl: { maxRequests, ...flowControl },
    headgate: { host: '127.0.0.1', port: 0, healthPort: 0, metricsPort: 0, ...own },
  };
  writeFileSync(file, stringify(document));
}

const hears = (running: CliProcess, event: string) =>
  until(`${event} is logged: ${running.stderr}`, () => running.events(event).length > 0, 30_000);

it('tells where it listens, takes a changed file at SIGHUP but none with faults, and ends with 0 at SIGTERM', async () => {
  write({});
  const running = cli.start(['epp', '--config', file, '--log-format', 'json']);
  await hears(running, 'listening');
  const [listening] = running.events('listening');
  expect(listening).toMatchObject({ file, endpoints: 1 });
  for (const name of ['port', 'healthPort', 'metricsPort']) expect(listening?.[name]).toBeGreaterThan(0);
  const ready = await fetch(`http://127.0.0.1:${listening?.metricsPort}/readyz`);
  expect(ready.status).toBe(200);
  write({}, 'many');
  running.child.kill('SIGHUP');
  await hears(running, 'reload-refused');
  write({}, 20);
  running.child.kill('SIGHUP');
  await hears(running, 'reloaded');
  running.child.kill('SIGTERM');
  const { status } = await running.ended;
  expect(status).toBe(0);
  expect(running.events('stopped')).toHaveLength(1);
});

it('ends with 1 for a file with faults, with a line for each', async () => {
  write({ port: -1, metricPort: 1 }, 'many');
  const { status, stderr } = await cli.start(['epp', '--config', file]).ended;
  expect(status).toBe(1);
  expect(stderr).toContain('headgate.port: expected');
  expect(stderr).toContain('metricsPort');
});

it('takes plugins of your own', async () => {
  const module = join(folder, 'own.mjs');
  const fcfs = 'create: () => ({ type: "by-name", compare: (a, b) => a.sequence - b.sequence })';
  writeFileSync(module, `export default { type: 'by-name', kind: 'ordering', ${fcfs} };`);
  write({}, 10, { priorityBands: [{ priority: 0, orderingPolicyRef: 'by-name' }] });
  const without = await cli.start(['epp', '--config', file]).ended;
  expect([without.status, without.stderr]).toEqual([1, expect.stringContaining('by-name')]);
  const running = cli.start(['epp', '--config', file, '--log-format', 'json', '--import', module]);
  await hears(running, 'listening');
  running.child.kill('SIGTERM');
  expect((await running.ended).status).toBe(0);
});

it('is checked without being started', async () => {
  write({ port: -1 });
  const { status, stdout } = await cli.start(['check', file]).ended;
  expect([status, stdout]).toEqual([1, expect.stringContaining('headgate.port')]);
});
