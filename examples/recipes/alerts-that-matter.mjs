// @ts-check
// Five alerts to begin with, out of docs/grafana/alerts.yaml. This puts a controller into the state that each is for,
// and shows the figures that it goes by; `npm run check -- programs` fires the rules themselves in a Prometheus server.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { EndpointPool, FlowController, utilizationDetector } from 'headgate';
import { prometheusMetrics } from 'headgate/prometheus';
import { Registry } from 'prom-client';
import { parse } from 'yaml';

const matter = [
  'HeadgateNoEndpoints',
  'HeadgateBlind',
  'HeadgateStalled',
  'HeadgateDropsMany',
  'HeadgateQueueTimeHigh',
];
/** @type {{ groups: { rules: { alert: string, expr: string }[] }[] }} */
const file = parse(readFileSync(new URL('../../docs/grafana/alerts.yaml', import.meta.url), 'utf8'));
const rules = file.groups.flatMap((group) => group.rules).filter(({ alert }) => matter.includes(alert));
assert.equal(rules.length, matter.length);

// Requests wait in front of a server that reports nothing, the queue is full, and one more is rejected.
const pool = new EndpointPool();
pool.add('gpu-0');
const flow = new FlowController({ pool, saturationDetector: utilizationDetector(), limits: { maxRequests: 2 } });
const register = new Registry();
prometheusMetrics(flow, { register, inferencePool: 'llama' });
const sent = Array.from({ length: 3 }, () => flow.enqueue({ byteSize: 100 }, { fairnessId: 'acme', priority: 0 }));
const last = await sent[2];
assert.equal(last?.type, 'RejectedNoEndpoints'); // a server that nobody knows the load of gets nothing
const metrics = await register.metrics();
await flow.close();

for (const { alert, expr } of rules) {
  const names = [...new Set(expr.match(/\binference_extension_\w+/g))];
  assert.notEqual(names.length, 0);
  for (const name of names) {
    const family = name.replace(/_(?:bucket|count|sum)$/, '');
    assert.ok(metrics.includes(`# TYPE ${family} `), `${alert} goes by ${name}, which is not there`);
  }
  const samples = metrics
    .split('\n')
    .filter((line) => names.some((name) => line.startsWith(`${name}{`)) && !line.includes('_bucket'));
  console.log(
    `${alert}\n${samples
      .slice(0, 3)
      .map((line) => `  ${line}`)
      .join('\n')}`,
  );
}
