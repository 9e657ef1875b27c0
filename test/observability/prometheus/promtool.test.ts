/** Prometheus' own linter, where it is installed. */
import { execFileSync, spawnSync } from 'node:child_process';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { workerAdmission } from '../../../src/index.js';
import { prometheusMetrics, workerMetrics } from '../../../src/observability/prometheus/index.js';
import { key, makeFlow, request, runNow } from '../../support/flow.js';

const isInstalled = spawnSync('promtool', ['--version']).error === undefined;

describe.runIf(isInstalled)('promtool check metrics', () => {
  it('finds nothing', async () => {
    const register = new Registry();
    const { flow } = makeFlow();
    prometheusMetrics(flow, { register, dynamo: {} });
    workerMetrics(workerAdmission(), { register });
    runNow(flow);
    void flow.enqueue(request, key());
    const output = execFileSync('promtool', ['check', 'metrics'], {
      input: await register.metrics(),
      encoding: 'utf8',
    });
    expect(output).toBe('');
  });
});
