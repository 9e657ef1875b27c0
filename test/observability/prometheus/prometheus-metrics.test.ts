import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import {
  byStage,
  EndpointPool,
  FlowConfigError,
  inFlightEviction,
  maxOf,
  programAware,
  quotaDetector,
  roundRobin,
  type SaturationDetector,
  sessionLimit,
  shadow,
  utilizationDetector,
  virtualTokenCounter,
} from '../../../src/index.js';
import { families } from '../../../src/observability/prometheus/families.js';
import {
  type ObservedFlow,
  type PrometheusMetricsOptions,
  prometheusMetrics,
} from '../../../src/observability/prometheus/index.js';
import { dial, key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';
import { scrape, select, sum } from './exposition.js';

type Setup = Partial<PrometheusMetricsOptions>;

function setUp(options: Setup = {}, flowOptions: Parameters<typeof makeFlow>[0] = {}) {
  const { flow, clock } = makeFlow(flowOptions);
  const register = new Registry();
  const metrics = prometheusMetrics(flow, { register, ...options });
  return { flow, clock, register, metrics };
}

describe('prometheusMetrics', () => {
  it('has the metrics of the document by name, type and labels', async () => {
    const { flow, clock, register } = setUp({ inferencePool: 'llama' });
    const lease = runNow(flow, { fairnessId: 'tenant-a' });
    void flow.enqueue(request, key('tenant-b', 5));
    clock.advance(300);
    lease.release();
    const series = await scrape(register);
    const labelsOf = (name: string): string[] => Object.keys(select(series, name)[0]?.labels ?? {}).sort();
    const flowLabels = ['fairness_id', 'inference_pool', 'model_name', 'priority', 'target_model_name'];
    expect(labelsOf('request_queue_duration_seconds_count')).toEqual([...flowLabels, 'outcome'].sort());
    expect(labelsOf('request_queue_duration_seconds_bucket')).toEqual([...flowLabels, 'outcome', 'le'].sort());
    expect(labelsOf('queue_size')).toEqual(flowLabels);
    expect(labelsOf('queue_bytes')).toEqual(flowLabels);
    expect(labelsOf('pool_saturation')).toEqual(['inference_pool']);
    const text = await register.metrics();
    for (const name of ['queue_size', 'queue_bytes', 'pool_saturation']) {
      expect(text).toContain(`# TYPE inference_extension_flow_control_${name} gauge`);
    }
    expect(text).toContain('# TYPE inference_extension_flow_control_request_queue_duration_seconds histogram');
  });

  it('has quotas by group, unit and span, each series once, and sessions by their state', async () => {
    const both = [
      { unit: 'requests', limit: 100, window: 'sliding' },
      { unit: 'requests', limit: 1000, per: '24h', window: 'sliding' },
    ] as const;
    const { flow, register } = setUp(
      {},
      {
        constraints: [
          quotaDetector({
            travel: 0,
            groups: [
              { name: 'key', quotas: [...both] },
              { name: 'key', quotas: [both[0]] },
            ],
          }),
          sessionLimit({ by: 'fairnessId', maxSessions: 1, inactivity: 5_000 }),
        ],
      },
    );
    runNow(flow, { fairnessId: 'a' });
    void flow.enqueue(request, key('b'));
    const series = await scrape(register);
    const values = (name: string, label: string): (string | number)[][] =>
      select(series, name).map(({ labels, value }) => [labels[label] as string, value]);
    const spans = (name: string): (string | number)[][] => values(`quota_${name}`, 'per');
    expect(select(series, 'quota_limit')[0]?.labels).toMatchObject({ group: 'key', unit: 'requests' });
    expect(spans('limit')).toEqual([
      ['60', 100],
      ['86400', 1000],
    ]);
    expect(spans('reserved').map(([, value]) => value)).toEqual([1, 1]);
    expect(spans('reset_seconds').map(([, value]) => value)).toEqual([60, 86_400]);
    expect(spans('wait_seconds').map(([, value]) => value)).toEqual([0, 0]);
    expect(spans('learnt').map(([, value]) => value)).toEqual([0, 0]);
    expect(values('sessions', 'state')).toEqual([
      ['running', 1],
      ['idle', 0],
      ['waiting', 1],
    ]);
    expect(select(series, 'session_tokens').map(({ value }) => value)).toEqual([1]);
    expect(select(series, 'sessions_expired_total').map(({ value }) => value)).toEqual([0]);
  });

  it('tells sessions of other replicas apart from those that run here', async () => {
    const limit = sessionLimit({ by: 'fairnessId', maxSessions: 5 });
    const { flow, register } = setUp({}, { constraints: [limit] });
    const sharing = limit.share({ nameOf: (name) => name, held: () => {}, ended: () => {} });
    runNow(flow, { fairnessId: 'a' });
    const states = async () =>
      select(await scrape(register), 'sessions').map(({ labels, value }) => [labels.state, value]);
    const [running, idle, waiting] = [
      ['running', 1],
      ['idle', 0],
      ['waiting', 0],
    ];
    expect(await states()).toEqual([running, idle, ['elsewhere', 0], waiting]);
    for (const name of ['b', 'c'])
      sharing.adopt({ name, endpoint: 'x', tokens: 7, prefix: undefined, forMs: 1_000 }, 0);
    expect(await states()).toEqual([running, idle, ['elsewhere', 2], waiting]);
    expect(flow.figures().sessions).toMatchObject({ resident: 3, elsewhere: 2, tokens: 15 });
  });

  it('says of shadow mode what would have been, and nothing of it otherwise', async () => {
    const { flow, register } = setUp({ inferencePool: 'llama' }, { mode: shadow(), limits: { maxRequests: 1 } });
    for (const id of ['a', 'b', 'c', 'c']) flow.tryEnqueue(request, key(id));
    const values = async (name: string) =>
      select(await scrape(register), name).map(({ labels, value }) => [labels, value]);
    const pool = { inference_pool: 'llama' };
    expect(await values('shadow')).toEqual([[pool, 1]]);
    expect(await values('shadow_passed_total')).toEqual([[pool, 4]]);
    expect(await values('shadow_would_have_waited_total')).toEqual([[pool, 1]]);
    expect(await values('shadow_would_have_been_dropped_total')).toEqual([
      [{ ...pool, outcome: 'RejectedCapacity', reason: 'global-max-requests' }, 2],
    ]);
    expect(await values('shadow_would_have_been_evicted_total')).toEqual([[pool, 0]]);
    flow.reconfigure({ mode: 'queue' });
    expect(await values('shadow')).toEqual([]);
    expect(await values('shadow_passed_total')).toEqual([]);
  });

  it('puts waits into the buckets of the reference, and into more from 5 s up', async () => {
    const { flow, clock, register } = setUp();
    const lease = runNow(flow);
    const waiting = flow.enqueue(request, key('a', 1));
    clock.advance(300);
    lease.release();
    await waiting;
    const series = select(await scrape(register), 'request_queue_duration_seconds_bucket', {
      fairness_id: 'a',
      outcome: 'Dispatched',
    });
    expect(series.map(({ labels, value }) => [labels.le, value])).toEqual([
      ...['0.0001', '0.0005', '0.001', '0.005', '0.01', '0.025', '0.05', '0.1', '0.25'].map((le) => [le, 0]),
      ...['0.5', '1', '2.5', '5', '7.5', '10', '12.5', '15', '20', '30', '45', '60', '+Inf'].map((le) => [le, 1]),
    ]);
    const sums = select(await scrape(register), 'request_queue_duration_seconds_sum', { fairness_id: 'a' });
    expect(sums.map(({ value }) => value)).toEqual([0.3]);
  });

  it('tells a wait of 10.02 s from one of 20 s, by the quantile that Prometheus reckons', async () => {
    const { flow, clock, register } = setUp();
    const lease = runNow(flow);
    const waiting = flow.enqueue(request, key('a', 1));
    clock.advance(10_020);
    lease.release();
    await waiting;
    const series = select(await scrape(register), 'request_queue_duration_seconds_bucket', { fairness_id: 'a' });
    const above = series.find(({ value }) => value === 1)?.labels.le;
    const below = series.filter(({ value }) => value === 0).at(-1)?.labels.le;
    expect([below, above]).toEqual(['10', '12.5']);
  });

  it('puts waits into the buckets that the host wants', async () => {
    const { flow, clock } = makeFlow();
    const register = new Registry();
    prometheusMetrics(flow, { register, queueDurationBuckets: [1, 10.5] });
    const lease = runNow(flow);
    const waiting = flow.enqueue(request, key('a', 1));
    clock.advance(10_020);
    lease.release();
    await waiting;
    const series = select(await scrape(register), 'request_queue_duration_seconds_bucket', { fairness_id: 'a' });
    expect(series.map(({ labels, value }) => [labels.le, value])).toEqual([
      ['1', 0],
      ['10.5', 1],
      ['+Inf', 1],
    ]);
  });

  it.each([[[]], [[0, 1]], [[2, 1]], [[1, 1]], [[1, Number.NaN]], ['1']])('does not take %j for buckets', (buckets) => {
    const { flow } = makeFlow();
    const options = { register: new Registry(), queueDurationBuckets: buckets as number[] };
    expect(() => prometheusMetrics(flow, options)).toThrow(/queueDurationBuckets: expected a list of seconds/);
  });

  it('reads gauges from the controller, also of requests that waited before it came', async () => {
    const { flow, clock } = makeFlow();
    const lease = runNow(flow);
    void flow.enqueue({ byteSize: 70 }, key('a', 1));
    void flow.enqueue({ byteSize: 30 }, key('a', 1));
    const register = new Registry();
    prometheusMetrics(flow, { register });
    const gauges = async () => {
      const series = await scrape(register);
      return ['queue_size', 'queue_bytes', 'pool_saturation', 'in_flight_requests'].map((name) =>
        sum(select(series, name)),
      );
    };
    expect(await gauges()).toEqual([2, 100, 1, 1]);
    clock.advance(60_000);
    expect(await gauges()).toEqual([0, 0, 1, 1]);
    lease.release();
    expect(await gauges()).toEqual([0, 0, 0, 0]);
  });

  it('times one in sixteen walks and calls of enqueue', async () => {
    const { flow, register } = setUp();
    for (let i = 0; i < 15; i++) runNow(flow).release();
    const lease = runNow(flow);
    for (let i = 0; i < 16; i++) void flow.enqueue(request, key('a', 5));
    lease.release();
    const series = await scrape(register);
    const counts = select(series, 'request_enqueue_duration_seconds_count').map(({ labels, value }) => [labels, value]);
    expect(counts).toEqual([
      [{ fairness_id: 'running', priority: '0', outcome: 'Dispatched' }, 1],
      [{ fairness_id: 'a', priority: '5', outcome: 'NotYetFinalized' }, 1],
    ]);
    const walks = select(series, 'dispatch_cycle_duration_seconds_count');
    expect(walks.map(({ labels }) => labels)).toEqual([{}]);
    expect(sum(walks)).toBeGreaterThan(0);
  });

  it('keeps a flow at 0 when nothing of it waits, and ends its series when the controller forgets it', async () => {
    const { flow, clock, register } = setUp(
      {},
      { bands: [{ priority: 0, fairness: roundRobin() }], flowIdleTimeout: 1000, bandIdleTimeout: 1000 },
    );
    const lease = runNow(flow, { fairnessId: 'never-waits' });
    const waiting = flow.enqueue(request, key('a'));
    lease.release();
    leaseOf(await waiting).release();
    const ofA = async (name: string) =>
      select(await scrape(register), name, { fairness_id: 'a' }).map(({ value }) => value);
    expect(await ofA('queue_size')).toEqual([0]);
    expect(await ofA('request_queue_duration_seconds_count')).toEqual([1]);
    clock.advance(1000);
    flow.stats();
    expect(await ofA('queue_size')).toEqual([]);
    expect(await ofA('request_queue_duration_seconds_count')).toEqual([]);
    expect(sum(select(await scrape(register), 'requests_total', { outcome: 'Dispatched' }))).toBe(2);
  });

  it('counts every outcome from 0 on, for configured bands before anybody comes', async () => {
    const { flow, register } = setUp({}, { bands: [{ priority: 7, limits: { maxRequests: 1 } }] });
    expect(select(await scrape(register), 'requests_total', { priority: '7' })).toHaveLength(8);
    runNow(flow);
    void flow.enqueue(request, key('a', 7));
    await flow.enqueue(request, key('a', 7));
    const counted = select(await scrape(register), 'requests_total').filter(({ value }) => value > 0);
    expect(counted.map(({ labels, value }) => `${labels.priority} ${labels.outcome} ${value}`).sort()).toEqual([
      '0 Dispatched 1',
      '7 RejectedCapacity 1',
    ]);
  });

  it('tells capacity utilization where there is a limit, and nothing where there is none', async () => {
    const { flow, register } = setUp(
      {},
      {
        limits: { maxRequests: 8, maxBytes: Infinity },
        bands: [{ priority: 0, limits: { maxRequests: 4, maxBytes: 100 } }],
      },
    );
    runNow(flow);
    void flow.enqueue(request, key());
    const series = await scrape(register);
    const values = (name: string) => select(series, name).map(({ value }) => value);
    expect(values('capacity_utilization_requests')).toEqual([0.25]);
    expect(values('capacity_utilization_bytes')).toEqual([0.1]);
    expect(values('global_capacity_utilization_requests')).toEqual([0.125]);
    expect(values('global_capacity_utilization_bytes')).toEqual([]);
  });

  it('counts victims that were asked to leave, and those that left', async () => {
    const { flow, register } = setUp({}, { eviction: inFlightEviction() });
    const victim = runNow(flow, { priority: -1 });
    void flow.enqueue(request, key('a', 9));
    const counts = async () => {
      const series = await scrape(register);
      return [
        sum(select(series, 'revocations_issued_total')),
        sum(select(series, 'revocations_total', { outcome: 'confirmed' })),
        sum(select(series, 'revocation_confirmation_seconds_count')),
      ];
    };
    expect(victim.isEvicted).toBe(true);
    expect(await counts()).toEqual([1, 0, 0]);
    victim.release();
    expect(await counts()).toEqual([1, 1, 1]);
  });

  it('asks detectors for endpoints without fresh figures, and fairness policies for their index', async () => {
    const detector = utilizationDetector();
    const pool = new EndpointPool();
    pool.add('server-1');
    const { flow, register } = setUp(
      { detectors: [detector] },
      { pool, saturationDetector: detector, bands: [{ priority: 0, fairness: programAware() }] },
    );
    void flow.enqueue(request, key());
    const series = await scrape(register);
    expect(select(series, 'stale_endpoints')).toMatchObject([
      { labels: { detector: 'utilization-detector' }, value: 1 },
    ]);
    expect(
      series.filter(({ name }) => name === 'inference_extension_program_aware_jains_fairness_index'),
    ).toMatchObject([{ labels: {}, value: 1 }]);
  });

  it('tells the saturation of stages, and counts blind detectors of one type together', async () => {
    const [prefill, decode] = [utilizationDetector(), utilizationDetector()];
    const stages = byStage({ prefill, decode });
    const pool = new EndpointPool();
    for (const [id, role] of Object.entries({ p: 'prefill', d1: 'decode', d2: 'decode' }))
      pool.add(id, { labels: { 'llm-d.ai/role': role } });
    pool.report('d1', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
    const { register } = setUp({ detectors: [prefill, decode, stages] }, { pool, saturationDetector: stages });
    const series = await scrape(register);
    expect(select(series, 'stage_saturation')).toMatchObject([
      { labels: { stage: 'prefill' }, value: 1 },
      { labels: { stage: 'decode' }, value: 0 },
    ]);
    expect(select(series, 'stale_endpoints')).toMatchObject([
      { labels: { detector: 'utilization-detector' }, value: 2 },
    ]);
  });

  it('asks for the detectors at each scrape, where a host changes them', async () => {
    const detector = utilizationDetector();
    let detectors: SaturationDetector[] = [];
    const { register } = setUp({ detectors: () => detectors });
    expect(select(await scrape(register), 'stale_endpoints')).toEqual([]);
    detectors = [detector];
    expect(select(await scrape(register), 'stale_endpoints')).toHaveLength(1);
  });

  it('tells the demand: what came, what it weighs, and how many servers there are', async () => {
    const pool = new EndpointPool();
    const { flow, register } = setUp({}, { pool });
    expect(select(await scrape(register), 'endpoints')).toMatchObject([{ value: 0 }]);
    for (const tokens of [100, 200]) void flow.enqueue({ byteSize: 1, tokens }, key());
    const series = await scrape(register);
    expect(['enqueued_total', 'queue_tokens'].map((name) => sum(select(series, name)))).toEqual([2, 300]);
    pool.add('server-1');
    expect(sum(select(await scrape(register), 'endpoints'))).toBe(1);
    const { register: without } = setUp();
    expect(select(await scrape(without), 'endpoints')).toEqual([]);
  });

  it('counts what waits because its tenant is at its cap, where there are caps', async () => {
    const { register: without } = setUp();
    expect(select(await scrape(without), 'capped_requests')).toEqual([]);
    const { flow, register } = setUp(
      {},
      { bands: [{ priority: 0, maxInFlightPerFlow: 1 }], saturationDetector: () => 0 },
    );
    for (let i = 0; i < 3; i++) void flow.enqueue({ byteSize: 1 }, key());
    expect(select(await scrape(register), 'capped_requests')).toMatchObject([{ labels: { priority: '0' }, value: 2 }]);
  });

  it('counts faults of plugins', async () => {
    const { flow, register } = setUp({ modelName: () => 'never asked' });
    flow.on('dispatched', () => {
      throw new Error('a bad listener');
    });
    runNow(flow);
    expect(sum(select(await scrape(register), 'plugin_errors_total'))).toBe(1);
  });

  it('tells what runs at each endpoint by flow, within maxSeries, and nothing of it without a pool', async () => {
    const pool = new EndpointPool();
    for (const id of ['a', 'b']) pool.add(id);
    const { flow } = makeFlow({ pool, saturationDetector: () => 0 });
    const register = new Registry();
    prometheusMetrics(flow, { register, maxSeries: 2 });
    const leases = ['x', 'x', 'x', 'y'].map((tenant) => runNow(flow, key(tenant)));
    for (const [i, id] of ['a', 'a', 'b', 'b'].entries()) leases[i]!.bind(id);
    const rowsOf = async (name: string) =>
      (await scrape(register))
        .filter((of) => of.name === `inference_extension_${name}`)
        .map(({ labels: { endpoint_name, fairness_id }, value }) => [endpoint_name, fairness_id, value]);
    expect(await rowsOf('inflight_requests')).toEqual([
      ['a', 'x', 2],
      ['b', 'x', 1],
      ['other', 'other', 1],
    ]);
    for (const lease of leases) lease.release();
    expect(await rowsOf('inflight_requests')).toEqual([]);
    const plain = new Registry();
    const other = makeFlow();
    prometheusMetrics(other.flow, { register: plain });
    runNow(other.flow);
    expect((await scrape(plain)).filter(({ name }) => name.endsWith('inflight_requests'))).toEqual([]);
  });

  it('tells the readings of the parts of a composite, the fullest of one name', async () => {
    const reading = (type: string, value: number) => ({ type, saturation: () => value });
    const { flow } = makeFlow({
      saturationDetector: maxOf(reading('low', 0.25), maxOf(reading('high', 0.5), reading('low', 0.75))),
    });
    const register = new Registry();
    prometheusMetrics(flow, { register });
    runNow(flow);
    const told = select(await scrape(register), 'detector_saturation').map(({ labels: { detector, stage }, value }) => {
      return [detector, stage, value];
    });
    expect(told.sort()).toEqual([
      ['high', '', 0.5],
      ['low', '', 0.75],
      ['max-saturation-detector', '', 0.75],
    ]);
  });

  it('has names that begin with the prefix', async () => {
    const { register } = setUp({ prefix: 'llm_d_epp_' });
    const names = register.getMetricsAsArray().map(({ name }) => name);
    expect(names).toEqual(families.map(({ name }) => `llm_d_epp_${name}`));
  });

  it('keeps two controllers of one registry apart by their pool', async () => {
    const { flow, register, metrics } = setUp({ inferencePool: 'llama' });
    const { flow: second } = makeFlow();
    const secondMetrics = prometheusMetrics(second, { register, inferencePool: 'qwen' });
    runNow(flow);
    expect(
      select(await scrape(register), 'in_flight_requests').map(({ labels, value }) => [labels.inference_pool, value]),
    ).toEqual([
      ['llama', 1],
      ['qwen', 0],
    ]);
    const identities = (await scrape(register)).map(({ name, labels }) => JSON.stringify([name, labels]));
    expect(new Set(identities).size).toBe(identities.length);
    expect(() => prometheusMetrics(makeFlow().flow, { register, inferencePool: 'qwen' })).toThrow(
      /no other source for this pool.*got one with "qwen"/,
    );
    metrics.stop();
    expect(select(await scrape(register), 'in_flight_requests').map(({ labels }) => labels.inference_pool)).toEqual([
      'qwen',
    ]);
    secondMetrics.stop();
    secondMetrics.stop();
    expect(await register.metrics()).toBe('\n');
  });

  it('hears nothing more after stop, nor when it could not be registered', () => {
    const { flow } = makeFlow();
    let listeners = 0;
    const observed: ObservedFlow = {
      enqueue: (...call) => flow.enqueue(...call),
      figures: () => flow.figures(),
      on: (event, listener) => {
        const stop = flow.on(event, listener);
        listeners++;
        return () => {
          stop();
          listeners--;
        };
      },
    };
    const register = new Registry();
    const metrics = prometheusMetrics(observed, { register, modelName: () => 'm', dynamo: {} });
    const heard = listeners;
    expect(heard).toBeGreaterThan(4);
    expect(() => prometheusMetrics(observed, { register })).toThrow(FlowConfigError);
    expect(listeners).toBe(heard);
    metrics.stop();
    expect(listeners).toBe(0);
  });

  it('does not take a name that belongs to somebody else', () => {
    const register = new Registry();
    const { flow } = makeFlow();
    register.registerMetric({ name: 'x_flow_control_queue_size', get: async () => ({}), reset: () => {} } as never);
    expect(() => prometheusMetrics(flow, { register, prefix: 'x_' })).toThrow(
      /the name x_flow_control_queue_size is free/,
    );
    expect(register.getMetricsAsArray()).toHaveLength(1);
  });

  it('counts anew after resetMetrics, except what is read from the controller', async () => {
    const { flow, register } = setUp();
    runNow(flow);
    register.resetMetrics();
    const series = await scrape(register);
    expect(sum(select(series, 'requests_total'))).toBe(0);
    expect(select(series, 'request_queue_duration_seconds_count')).toEqual([]);
    expect(sum(select(series, 'in_flight_requests'))).toBe(1);
  });

  it('prints OpenMetrics where the registry does', async () => {
    const { flow } = makeFlow();
    const register = new Registry();
    register.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    const metrics = prometheusMetrics(flow, { register });
    for (let times = 0; times < 2; times++) {
      const text = await register.metrics();
      expect(text).toContain('# TYPE inference_extension_flow_control_requests counter');
      expect(text).toContain('inference_extension_flow_control_requests_total{outcome="Dispatched"');
    }
    metrics.stop();
    expect(register.getMetricsAsArray()).toEqual([]);
  });

  it('leaves the label out where fairness IDs are not to be seen', async () => {
    const { flow, register } = setUp({ fairnessIdLabel: false }, { bands: [{ priority: 0 }] });
    expect(select(await scrape(register), 'queue_size').map(({ value }) => value)).toEqual([0]);
    runNow(flow, { fairnessId: 'secret' });
    void flow.enqueue(request, key('secret'));
    void flow.enqueue(request, key('another-secret'));
    expect(await register.metrics()).not.toContain('secret');
    expect(select(await scrape(register), 'queue_size').map(({ value }) => value)).toEqual([2]);
  });

  it('escapes what clients send', async () => {
    const { flow, register } = setUp();
    runNow(flow, { fairnessId: 'a"}\n evil 1' });
    expect(await register.metrics()).toContain('fairness_id="a\\"}\\n evil 1"');
  });
});

describe('model labels', () => {
  interface ModelRequest {
    readonly byteSize: number;
    readonly model: string;
  }

  it('come from the host, and follow the request through the queue', async () => {
    const { flow, register } = setUp({
      modelName: (of) => (of as unknown as ModelRequest).model,
      targetModelName: () => {
        throw new Error('no idea');
      },
    });
    const of = (model: string): ModelRequest => ({ byteSize: 10, model });
    const lease = leaseOf(flow.tryEnqueue(of('llama'), key('a')));
    const same = of('qwen');
    const abort = new AbortController();
    const waiting = [
      flow.enqueue(same, key('a')),
      flow.enqueue(same, key('a')),
      flow.enqueue({ ...of('llama'), signal: abort.signal }, key('a')),
    ];
    const sizes = async () =>
      select(await scrape(register), 'queue_size').map(({ labels, value }) => [labels.model_name, value]);
    expect(await sizes()).toEqual([
      ['llama', 1],
      ['qwen', 2],
    ]);
    abort.abort();
    lease.release();
    leaseOf(await waiting[0]).release();
    leaseOf(await waiting[1]).release();
    expect(await sizes()).toEqual([
      ['llama', 0],
      ['qwen', 0],
    ]);
    const durations = select(await scrape(register), 'request_queue_duration_seconds_count');
    expect(
      durations.map(({ labels, value }) => [labels.model_name, labels.target_model_name, labels.outcome, value]),
    ).toEqual([
      ['llama', '', 'Dispatched', 1],
      ['llama', '', 'EvictedContextCancelled', 1],
      ['qwen', '', 'Dispatched', 2],
    ]);
  });
});

describe('of policies that share by cost', () => {
  const byTokens = () =>
    virtualTokenCounter({ workOf: ({ tokens }) => ({ promptTokens: tokens, completionTokens: 0 }) });

  it('counts what tenants received, and never less than before', async () => {
    const { flow, clock, register } = setUp({ maxFairnessIds: 2 }, { bands: [{ priority: 0, fairness: byTokens() }] });
    const totals = async () =>
      Object.fromEntries(
        select(await scrape(register), 'service_cost_total').map(({ labels, value }) => [labels.fairness_id, value]),
      );
    expect(await totals()).toEqual({});
    const serve = (name: string, promptTokens: number): void => {
      const lease = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 500 }, key(name)));
      lease.report({ promptTokens });
      lease.release();
    };
    serve('a', 30);
    serve('b', 5);
    serve('c', 7);
    serve('d', 2);
    expect(await totals()).toEqual({ a: 30, b: 5, other: 9 });
    // The band forgets who is silent; the counters go on.
    clock.advance(3_600_000);
    expect(await totals()).toEqual({ a: 30, b: 5, other: 9 });
    serve('a', 1);
    serve('c', 4);
    expect(await totals()).toEqual({ a: 31, b: 5, other: 13 });
  });

  it('tells how far those that wait are ahead, how evenly the band was shared, and which reports made no sense', async () => {
    const detector = dial(1, true);
    const { flow, register } = setUp(
      {},
      { saturationDetector: detector, bands: [{ priority: 0, fairness: byTokens() }, { priority: 5 }] },
    );
    await scrape(register);
    for (const [name, tokens] of [
      ['a', 400],
      ['b', 100],
      ['a', 400],
      ['b', 100],
    ] as const) {
      void flow.enqueue({ byteSize: 1, tokens }, key(name));
    }
    flow.on('dispatched', ({ lease }) => {
      detector.turnTo(1);
      lease.report({ promptTokens: 400 });
      lease.report({ promptTokens: 3 });
    });
    detector.turnTo(0);
    const series = await scrape(register);
    expect(
      select(series, 'fairness_counter_lag').map(({ labels, value }) => [labels.fairness_id, labels.priority, value]),
    ).toEqual([
      ['a', '0', 400],
      ['b', '0', 0],
    ]);
    expect(select(series, 'band_fairness_index').map(({ labels, value }) => [labels.priority, value])).toEqual([
      ['0', 0.5],
    ]);
    expect(select(series, 'ignored_reports_total').map(({ value }) => value)).toEqual([1]);
  });
});

describe('under Dynamo’s name', () => {
  it('counts requests that found every worker busy, by model and endpoint', async () => {
    const { flow, register } = setUp(
      { dynamo: { endpoint: () => 'chat_completions' }, modelName: () => 'llama' },
      { saturationDetector: dial(2), limits: { maxRequests: 1 } },
    );
    for (let i = 0; i < 3; i++) void flow.enqueue(request, key());
    const rejected = (await scrape(register)).filter(({ name }) => name === 'dynamo_frontend_model_rejection_total');
    expect(rejected).toEqual([
      {
        name: 'dynamo_frontend_model_rejection_total',
        labels: { model: 'llama', endpoint: 'chat_completions' },
        value: 2,
      },
    ]);
  });
});

describe('options that cannot be right', () => {
  it('are all listed', () => {
    const options = {
      register: {},
      prefix: '1-',
      maxFairnessIds: 0,
      pinnedFairnessIds: 'a',
      modelName: 'm',
      dynamo: { model: 1 },
      lables: {},
    };
    expect(() => prometheusMetrics(makeFlow().flow, options as never)).toThrow(FlowConfigError);
    try {
      prometheusMetrics(makeFlow().flow, options as never);
    } catch (error) {
      const paths = (error as FlowConfigError).issues.map(({ path }) => path);
      expect(paths).toEqual([
        'register',
        'prefix',
        'maxFairnessIds',
        'pinnedFairnessIds',
        'modelName',
        'dynamo.model',
        'lables',
      ]);
    }
  });
});
