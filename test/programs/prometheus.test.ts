/**
 * A real Prometheus server scrapes a real gateway under load: the dashboard and the alerts have data, and nothing is
 * lost between client and server.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startModelServer } from '../gateway/support/model-server.js';
import { ruleTests } from './alert-cases.js';
import { alerts, alertsFile, dashboard, panels, selectorsOf, variable, withVariables } from './dashboard.js';
import { LoadGenerator, overload, startGatewayProcess } from './loaded-gateway.js';
import {
  announceMissingPrometheus,
  eventually,
  PrometheusServer,
  prometheusPath,
  promtoolPath,
} from './prometheus-server.js';

const flow = 'inference_extension_flow_control';
/** The metrics of llm-d's flow control document with their labels. */
const documented: Readonly<Record<string, readonly string[]>> = {
  request_queue_duration_seconds_count: [
    'fairness_id',
    'priority',
    'inference_pool',
    'outcome',
    'model_name',
    'target_model_name',
  ],
  queue_size: ['fairness_id', 'priority', 'inference_pool', 'model_name', 'target_model_name'],
  queue_bytes: ['fairness_id', 'priority', 'inference_pool', 'model_name', 'target_model_name'],
  dispatch_cycle_duration_seconds_count: [],
  request_enqueue_duration_seconds_count: ['fairness_id', 'priority', 'outcome'],
  pool_saturation: ['inference_pool'],
};
/** What a healthy gateway has none of. */
const mayBeZero = [
  'Faults of plugins per second',
  'Refusals and retries per second by server',
  'Wait for quotas and budgets',
  'Refused and not reported per second',
  'Requests of tenants at their caps',
  'Gateways in shadow mode',
  'Would have waited per second',
  'Would have been dropped per second',
];

announceMissingPrometheus();

function promtool(args: readonly string[], input?: string): string {
  return execFileSync(promtoolPath ?? 'promtool', args, {
    encoding: 'utf8',
    stdio: 'pipe',
    ...(input !== undefined && { input }),
  });
}

describe('the dashboard', () => {
  it('has no panel over another, none without a description, unit and query, and no data source of anybody’s own', () => {
    expect(panels.length).toBeGreaterThan(25);
    const taken = new Set<string>();
    for (const { gridPos, title } of dashboard.panels) {
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x} ${y}`), title).toBe(false);
          taken.add(`${x} ${y}`);
        }
      }
    }
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    for (const { title, description, fieldConfig, datasource, targets = [] } of panels) {
      expect(description, title).toMatch(/\.$/);
      expect(fieldConfig?.defaults.unit, title).toBeTruthy();
      const sources = [datasource, ...targets.map((target) => target.datasource)].map((source) => source?.uid);
      expect(new Set(sources), title).toEqual(new Set([variable('datasource')]));
      expect(targets.length, title).toBeGreaterThan(0);
    }
  });

  it('is described row by row, and the alerts by severity', () => {
    const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
    const rows = dashboard.panels
      .filter(({ type }) => type === 'row')
      .map(({ title }) => title.replace(/ \(.*\)$/, ''));
    expect(rows.length).toBeGreaterThan(10);
    for (const title of rows) expect(page.toLowerCase()).toContain(title.toLowerCase());
    for (const severity of ['page', 'ticket']) {
      const told = page.match(new RegExp(`^\\* \`${severity}\`, .*`, 'm'))?.[0].match(/Headgate\w+/g);
      const known = alerts.filter(({ labels }) => labels.severity === severity).map(({ alert }) => alert);
      expect(told?.sort()).toEqual(known.sort());
    }
  });
});

describe.skipIf(prometheusPath === undefined)('Prometheus', () => {
  it('accepts the alerts, and fires each of them when it should and not otherwise', () => {
    expect(promtool(['check', 'rules', alertsFile])).toContain(`SUCCESS: ${alerts.length} rules found`);
    const folder = mkdtempSync(join(tmpdir(), 'headgate-rules-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const tests = join(folder, 'tests.yaml');
    writeFileSync(tests, ruleTests());
    expect(promtool(['test', 'rules', tests])).toContain('SUCCESS');
    for (const { alert, for: wait, labels, annotations } of alerts) {
      expect(wait, alert).toMatch(/^\d+m$/);
      expect(labels.severity, alert).toMatch(/^(page|ticket)$/);
      expect(annotations.summary, alert).toBeTruthy();
      expect(annotations.runbook?.length, alert).toBeGreaterThan(80);
    }
  });

  it('sees every request that was sent, once, whatever happened to clients, servers and settings; every panel and alert has data', async () => {
    const servers = await Promise.all(['a', 'b', 'c'].map(startModelServer));
    const gateway = await startGatewayProcess(servers);
    const prometheus = await PrometheusServer.start(new URL(gateway.adminUrl).host, alertsFile);
    const generator = new LoadGenerator(gateway.url);
    const startedAt = Date.now() / 1000;
    await eventually(() => 'the first scrape', async () => (await prometheus.query(`${flow}_pool_saturation`)).length > 0); // biome-ignore format: one question
    await overload(generator, 3);

    // Clients that leave while they wait: only once the gateway has them in its queue, or nobody could say what it saw.
    const impatient = new AbortController();
    await generator.settle();
    for (let index = 0; index < 24; index++) generator.send('patient', 'premium', 200);
    for (let index = 0; index < 8; index++) generator.send('impatient', 'batch', 10, impatient.signal);
    const waiting = async (tenant: string): Promise<number> => {
      const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
      const lines = text
        .split('\n')
        .filter((line) => line.startsWith(`${flow}_queue_size`) && line.includes(`"${tenant}"`));
      return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    };
    await eventually(() => 'the impatient wait', async () => (await waiting('impatient')) === 8, 5_000); // biome-ignore format: one question
    impatient.abort();

    // A server dies under its requests, and comes back elsewhere under its name; then there is none for a while; then
    // other limits apply.
    servers[2]?.child.kill('SIGKILL');
    servers[2] = await startModelServer('c');
    await gateway.reload(servers);
    await overload(generator, 2);
    await gateway.reload([]);
    for (let index = 0; index < 5; index++) generator.send('stranded', 'premium', 10);
    await eventually(() => 'the stranded are gone', async () => (await waiting('stranded')) === 0); // biome-ignore format: one question
    await gateway.reload(servers, 20);
    await overload(generator, 2);

    const received = await generator.settle();
    const total = `${flow}_requests_total`;
    await eventually(() => 'Prometheus knows of all', async () => (await prometheus.sum(total)) >= generator.sent); // biome-ignore format: one question
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // another scrape: there is nothing more
    const endedAt = Date.now() / 1000;

    expect(await prometheus.sum(total)).toBe(generator.sent);
    expect(await prometheus.sum(`${flow}_enqueued_total`)).toBe(generator.sent);
    expect(await prometheus.sum(`${flow}_request_queue_duration_seconds_count`)).toBe(generator.sent);
    expect(await prometheus.sum(`${flow}_queue_size`)).toBe(0);
    expect(await prometheus.sum(`${flow}_queue_bytes`)).toBe(0);
    expect(await prometheus.sum(`${flow}_in_flight_requests`)).toBe(0);
    expect(await prometheus.sum(`${flow}_revocations_total`)).toBe(
      await prometheus.sum(`${flow}_revocations_issued_total`),
    );
    expect(await prometheus.sum(`${total}{outcome="EvictedContextCancelled"}`)).toBe(8);
    const outcome = async (name: string): Promise<number> => prometheus.sum(`${total}{outcome="${name}"}`);
    for (const name of ['Dispatched', 'RejectedCapacity', 'EvictedTTL'])
      expect(await outcome(name), name).toBeGreaterThan(0);
    // What the clients say: the drops are those whose answer names a reason, but for the evicted ones, which had been
    // dispatched.
    const dropped = received.filter(({ reason }) => reason !== null && !reason.startsWith('evicted')).length;
    expect(await prometheus.sum(`${total}{outcome!~"Dispatched|EvictedContextCancelled"}`)).toBe(dropped);
    expect(received.filter(({ isWhole }) => isWhole).length).toBeLessThanOrEqual(await outcome('Dispatched'));

    const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    for (const [name, labels] of Object.entries(documented)) {
      expect(await prometheus.query(`${flow}_${name}`), name).not.toEqual([]);
      // Of the text: to Prometheus an empty label, such as the name of a pool that has none, is no label.
      const line = text.split('\n').find((each) => new RegExp(`^${flow}_${name}[{ ]`).test(each)) ?? '';
      expect([...line.matchAll(/(\w+)="/g)].map(([, label]) => label).sort(), name).toEqual([...labels].sort());
    }
    expect(promtool(['check', 'metrics'], text)).toBe('');

    const empty: string[] = [];
    for (const { title, targets = [] } of panels) {
      for (const { expr, refId } of targets) {
        const values = (await prometheus.queryRange(withVariables(expr, '5s'), startedAt, endedAt)).flatMap(
          (sample) => sample.values,
        );
        const numbers = values.filter((value) => Number.isFinite(value));
        const isEnough = mayBeZero.includes(title) ? numbers.length > 0 : numbers.some((value) => value > 0);
        if (!isEnough) empty.push(`${title} ${refId}: ${expr}`);
        expect(Math.min(0, ...numbers), title).toBe(0);
      }
    }
    for (const { definition } of dashboard.templating.list.filter(({ type }) => type === 'query')) {
      const [, metric = '', label = ''] = /^label_values\((\S+), (\w+)\)$/.exec(definition ?? '') ?? [];
      const series = await prometheus.query(withVariables(metric, '5s'));
      if (!series.some(({ labels }) => label in labels) && label !== 'inference_pool')
        empty.push(`variable ${definition}`);
    }
    for (const alert of alerts) {
      await prometheus.query(alert.expr);
      for (const selector of selectorsOf(alert))
        if ((await prometheus.query(selector)).length === 0) empty.push(`${alert.alert}: ${selector}`);
    }
    expect(empty).toEqual([]);
    expect((await prometheus.rules()).filter(({ health }) => health !== 'ok')).toEqual([]);
    console.log(
      `${generator.sent} requests sent, as many in Prometheus; ${panels.length} panels and ${alerts.length} alerts have data`,
    );
  }, 120_000);
});
