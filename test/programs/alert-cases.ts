/**
 * For each alert: series of one that is ill beside one that is well, when it must still be silent, and when it must
 * fire for the ill one alone. Alerts on figures that are what would have been in shadow mode must be silent for one in
 * that mode, however ill it would be.
 */
import { type Alert, alerts, alertsFile } from './dashboard.js';

interface Case {
  /** Series by selector, in promtool's notation: `start+increment` for each minute. */
  readonly series: Readonly<Record<string, string>>;
  /** Minutes after which it is silent, and after which it fires. */
  readonly minutes: readonly [silent: number, fires: number];
  readonly labels: Readonly<Record<string, string>>;
  readonly summary: string;
}

const flow = 'inference_extension_flow_control_';
const bad = 'instance="bad", inference_pool="p"';
const well = 'instance="well", inference_pool="p"';
const ill = { instance: 'bad', inference_pool: 'p' };

function settled(pool: string, priority: number, outcome: string): string {
  return `${flow}requests_total{inference_pool="${pool}", priority="${priority}", outcome="${outcome}"}`;
}

/** 100 observations a minute, of which `fast` are below the first bound. */
function histogram(
  name: string,
  labels: string,
  bounds: readonly [string, string],
  fast: number,
): Record<string, string> {
  const bucket = (le: string): string => `${flow}${name}_bucket{${labels}, le="${le}"}`;
  return { [bucket(bounds[0])]: `0+${fast}`, [bucket(bounds[1])]: '0+100', [bucket('+Inf')]: '0+100' };
}

const cases: Readonly<Record<string, Case>> = {
  HeadgateMetricsMissing: {
    series: {},
    minutes: [4, 6],
    labels: {},
    summary: 'No gateway reports flow control metrics',
  },
  HeadgateNoEndpoints: {
    series: { [`${flow}endpoints{${bad}}`]: '0+0', [`${flow}endpoints{${well}}`]: '3+0' },
    minutes: [1, 3],
    labels: ill,
    summary: 'The pool p has no model servers',
  },
  HeadgateStalled: {
    series: {
      [`${flow}queue_size{${bad}}`]: '5+0',
      [`${flow}requests_total{${bad}, outcome="Dispatched"}`]: '7+0',
      [`${flow}queue_size{${well}}`]: '5+0',
      [`${flow}requests_total{${well}, outcome="Dispatched"}`]: '0+60',
    },
    minutes: [2, 6],
    labels: ill,
    summary: 'Requests wait at bad, and none is let go',
  },
  HeadgateBlind: {
    series: {
      [`${flow}stale_endpoints{${bad}, detector="utilization-detector"}`]: '2+0',
      [`${flow}endpoints{${bad}}`]: '4+0',
      [`${flow}stale_endpoints{${well}, detector="utilization-detector"}`]: '1+0',
      [`${flow}endpoints{${well}}`]: '4+0',
    },
    minutes: [1, 3],
    labels: ill,
    summary: '50% of the endpoints of bad report no fresh figures',
  },
  HeadgateDropsMany: {
    series: {
      [settled('bad', 0, 'Dispatched')]: '0+540',
      [settled('bad', 0, 'RejectedCapacity')]: '0+60',
      [settled('well', 0, 'Dispatched')]: '0+540',
      [settled('well', 0, 'EvictedTTL')]: '0+5',
      [settled('well', 0, 'EvictedContextCancelled')]: '0+300',
      [settled('well', -10, 'RejectedCapacity')]: '0+600',
    },
    minutes: [4, 8],
    labels: { inference_pool: 'bad' },
    summary: '10% of the requests that are not sheddable are dropped',
  },
  HeadgateSheddingLong: {
    series: {
      [settled('bad', -10, 'Dispatched')]: '0+40',
      [settled('bad', -10, 'RejectedCapacity')]: '0+60',
      [settled('well', -10, 'Dispatched')]: '0+60',
      [settled('well', -10, 'RejectedCapacity')]: '0+40',
    },
    minutes: [29, 35],
    labels: { inference_pool: 'bad' },
    summary: 'Most sheddable requests are dropped, for half an hour',
  },
  HeadgateQueueTimeHigh: {
    series: {
      ...histogram(
        'request_queue_duration_seconds',
        'inference_pool="bad", priority="0", outcome="Dispatched"',
        ['10', '30'],
        0,
      ),
      ...histogram(
        'request_queue_duration_seconds',
        'inference_pool="well", priority="0", outcome="Dispatched"',
        ['10', '30'],
        100,
      ),
      ...histogram(
        'request_queue_duration_seconds',
        'inference_pool="well", priority="-10", outcome="Dispatched"',
        ['10', '30'],
        0,
      ),
    },
    minutes: [9, 13],
    labels: { inference_pool: 'bad', priority: '0' },
    summary: 'Requests of priority 0 wait 29s (p95)',
  },
  HeadgateQueueNearlyFull: {
    series: {
      [`${flow}global_capacity_utilization_requests{${bad}}`]: '0.1+0',
      [`${flow}global_capacity_utilization_bytes{${bad}}`]: '0.9+0',
      [`${flow}global_capacity_utilization_requests{${well}}`]: '0.8+0',
    },
    minutes: [4, 6],
    labels: ill,
    summary: 'The queues of bad are 90% full',
  },
  HeadgateBandFull: {
    series: {
      [`${flow}capacity_utilization_requests{${bad}, priority="100"}`]: '1+0',
      [`${flow}capacity_utilization_requests{${bad}, priority="-10"}`]: '1+0',
      [`${flow}capacity_utilization_bytes{${well}, priority="100"}`]: '0.9+0',
    },
    minutes: [4, 6],
    labels: { ...ill, priority: '100' },
    summary: 'Band 100 of bad is full',
  },
  HeadgateSaturatedLong: {
    series: {
      [`${flow}pool_saturation{${bad}}`]: '1.2+0',
      [`${flow}queue_size{${bad}}`]: '9+0',
      [`${flow}pool_saturation{${well}}`]: '1+0',
      [`${flow}queue_size{${well}}`]: '0+0',
    },
    minutes: [29, 31],
    labels: ill,
    summary: 'Model servers full and a queue before them, for half an hour',
  },
  HeadgateUnfair: {
    series: {
      'inference_extension_program_aware_jains_fairness_index{instance="bad"}': '0.3+0',
      'inference_extension_program_aware_jains_fairness_index{instance="well"}': '0.9+0',
    },
    minutes: [14, 16],
    labels: { instance: 'bad' },
    summary: 'The fairness index is 0.30',
  },
  HeadgateEvictionsStuck: {
    series: {
      [`${flow}revocations_issued_total{${bad}}`]: '40+0',
      [`${flow}revocations_total{${bad}, outcome="confirmed"}`]: '20+0',
      [`${flow}revocations_issued_total{${well}}`]: '40+0',
      [`${flow}revocations_total{${well}, outcome="confirmed"}`]: '38+0',
    },
    minutes: [4, 6],
    labels: ill,
    summary: '20 running requests were asked to leave and did not',
  },
  HeadgatePluginErrors: {
    series: { [`${flow}plugin_errors_total{${bad}}`]: '0+1', [`${flow}plugin_errors_total{${well}}`]: '4+0' },
    minutes: [1, 4],
    labels: ill,
    summary: 'A policy, detector, picker or listener fails at bad',
  },
  HeadgateWalksSlow: {
    series: {
      ...histogram('dispatch_cycle_duration_seconds', 'instance="bad"', ['0.02', '0.05'], 0),
      ...histogram('dispatch_cycle_duration_seconds', 'instance="well"', ['0.02', '0.05'], 100),
    },
    minutes: [9, 13],
    labels: { instance: 'bad' },
    summary: 'Walks over the queues take 49.7ms (p99)',
  },
  HeadgateServerFails: {
    series: {
      'headgate_upstream_failures_total{instance="bad", endpoint="gpu-0", code="upstream_failed"}': '0+30',
      'headgate_upstream_requests_total{instance="bad", endpoint="gpu-0"}': '0+120',
      'headgate_upstream_failures_total{instance="well", endpoint="gpu-0", code="upstream_failed"}': '0+1',
      'headgate_upstream_requests_total{instance="well", endpoint="gpu-0"}': '0+120',
    },
    minutes: [4, 7],
    labels: { instance: 'bad', endpoint: 'gpu-0' },
    summary: '25% of what bad sends to gpu-0 fails',
  },
  HeadgateStreamsCut: {
    series: {
      'headgate_streams_cut_total{instance="bad", by="upstream"}': '0+6',
      'headgate_streams_cut_total{instance="bad", by="timeout"}': '0+6',
      'headgate_http_responses_total{instance="bad", status="200", source="upstream"}': '0+120',
      'headgate_streams_cut_total{instance="well", by="upstream"}': '0+1',
      'headgate_streams_cut_total{instance="well", by="client"}': '0+60',
      'headgate_http_responses_total{instance="well", status="200", source="upstream"}': '0+120',
    },
    minutes: [4, 7],
    labels: { instance: 'bad' },
    summary: '10% of the answers of bad break off',
  },
  HeadgateFirstTokenLate: {
    series: {
      'headgate_time_to_first_token_seconds_bucket{instance="bad", priority="0", le="10"}': '0+0',
      'headgate_time_to_first_token_seconds_bucket{instance="bad", priority="0", le="20"}': '0+100',
      'headgate_time_to_first_token_seconds_bucket{instance="bad", priority="0", le="+Inf"}': '0+100',
      'headgate_time_to_first_token_seconds_bucket{instance="well", priority="0", le="10"}': '0+100',
      'headgate_time_to_first_token_seconds_bucket{instance="well", priority="0", le="20"}': '0+100',
      'headgate_time_to_first_token_seconds_bucket{instance="well", priority="0", le="+Inf"}': '0+100',
    },
    minutes: [9, 13],
    labels: { instance: 'bad', priority: '0' },
    summary: 'The first token of priority 0 takes 19.5s (p95)',
  },
  HeadgateLoopDelayed: {
    series: {
      'nodejs_eventloop_lag_p99_seconds{instance="bad"}': '0.4+0',
      'nodejs_eventloop_lag_p99_seconds{instance="well"}': '0.02+0',
    },
    minutes: [9, 11],
    labels: { instance: 'bad' },
    summary: 'The event loop of bad is late by 400ms',
  },
};

/** What is wrong in shadow mode, too. */
const firesInShadow: readonly string[] = [
  'HeadgateMetricsMissing',
  'HeadgateNoEndpoints',
  'HeadgateBlind',
  'HeadgatePluginErrors',
  'HeadgateWalksSlow',
  'HeadgateServerFails',
  'HeadgateStreamsCut',
  'HeadgateFirstTokenLate',
  'HeadgateLoopDelayed',
];

/** The same as the ill one, in shadow mode. */
function inShadow(series: Case['series']): Case['series'] {
  const copies = Object.entries(series).filter(([selector]) => selector.includes('"bad"'));
  const shadow = `${flow}shadow`;
  return {
    ...Object.fromEntries(copies.map(([selector, values]) => [selector.replaceAll('"bad"', '"shadow"'), values])),
    [`${shadow}{instance="shadow", inference_pool="p"}`]: '1+0',
    [`${shadow}{instance="shadow"}`]: '1+0',
    [`${shadow}{inference_pool="shadow"}`]: '1+0',
  };
}

/** The tests as promtool takes them: YAML, of which JSON is a part. */
export function ruleTests(): string {
  return JSON.stringify({ rule_files: [alertsFile], evaluation_interval: '1m', tests: alerts.map(testOf) });
}

function testOf({ alert, labels: { severity }, annotations }: Alert): object {
  const one = cases[alert];
  if (one === undefined) throw new Error(`${alert} has no case`);
  const { minutes, labels, summary } = one;
  const series = { ...one.series, ...(!firesInShadow.includes(alert) && inShadow(one.series)) };
  const expected = { exp_labels: { severity, ...labels }, exp_annotations: { summary, runbook: annotations.runbook } };
  return {
    name: alert,
    interval: '1m',
    input_series: Object.entries(series).map(([selector, values]) => ({ series: selector, values: `${values}x120` })),
    alert_rule_test: [
      { eval_time: `${minutes[0]}m`, alertname: alert, exp_alerts: [] },
      { eval_time: `${minutes[1]}m`, alertname: alert, exp_alerts: [expected] },
    ],
  };
}
