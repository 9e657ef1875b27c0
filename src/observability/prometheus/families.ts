/** Every metric: name without the prefix, type, labels, and source of samples. docs/metrics.md is held against it. */
import { figures as catalogue, type Figure } from '../metrics/catalogue.js';
import type { FlowReadings, InFlightRow } from './flow-meter.js';
import type { Family, Labels, Sample } from './scraped-metric.js';

const flowLabels = ['fairness_id', 'priority', 'inference_pool', 'model_name', 'target_model_name'];

const fewFlowLabels = ['fairness_id', 'priority', 'inference_pool'];

/** However many samples. */
function rows(
  name: string,
  { kind, help }: Pick<Figure, 'kind' | 'help'>,
  labels: readonly string[],
  samples: (flow: FlowReadings) => Iterable<Sample>,
): Family<FlowReadings> {
  if (kind === 'counter') return { name, type: kind, help, labels, samples };
  return { name, type: 'gauge', aggregator: kind, help, labels, samples };
}

function ofCatalogue({ labels, rows: read, ...figure }: Figure): Family<FlowReadings> {
  const names = labels.map((label) => (label === 'fairnessId' ? 'fairness_id' : label));
  return rows(figure.prometheus, figure, [...names, 'inference_pool'], ({ figures, flows, pool }) =>
    read(figures, flows).map((row) => {
      const own = labels.flatMap((label, index) => {
        const text = row.labels[label];
        return text === undefined ? [] : [[names[index], String(text)]];
      });
      return { labels: { ...Object.fromEntries(own), ...pool }, value: row.value };
    }),
  );
}

function one(labels: Labels, value: number | undefined): Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}

/** What is told with labels of its own: of waiting requests their models as well, of all flows no pool without name. */
const ownLabels: Readonly<Record<string, Pick<Family<FlowReadings>, 'labels' | 'samples'>>> = {
  flow_control_queue_size: queue('requests'),
  flow_control_queue_bytes: queue('bytes'),
  program_aware_jains_fairness_index: {
    labels: [],
    samples: ({ figures, poolIfNamed }) => one(poolIfNamed, figures.stats.fairnessIndex),
  },
};

function queue(figure: 'requests' | 'bytes') {
  const samples = (flow: FlowReadings): Sample[] =>
    Array.from(flow.queueRows(), (row) => ({ sharedLabels: row.labels, value: row[figure] }));
  return { labels: flowLabels, samples };
}

/** In leases that are not released, and in the tokens that they book. */
function inFlight(
  name: string,
  labels: readonly string[],
  by: string,
  of: (flow: FlowReadings) => Iterable<InFlightRow>,
) {
  return (['requests', 'tokens'] as const).map((figure) => {
    const help = `${figure === 'requests' ? 'Leases' : 'Tokens booked by leases'} not yet released, by ${by}.`;
    return rows(`${name}_${figure}`, { kind: 'sum', help }, labels, (flow) =>
      Array.from(of(flow), (row) => ({ labels: row.labels, value: row[figure] })),
    );
  });
}

/** What several detectors tell under one name, put together; only numbers count. */
function byName(told: readonly (readonly [name: string, value: unknown])[], join: (a: number, b: number) => number) {
  const values = new Map<string, number>();
  for (const [name, value] of told) if (typeof value === 'number') values.set(name, join(values.get(name) ?? 0, value));
  return [...values];
}

/** Endpoints that detectors are blind to. Detectors of one type, such as those of two stages, are counted together. */
function staleEndpoints({ detectors, poolIfNamed }: FlowReadings): Sample[] {
  const told = detectors().map((each) => [each.type, Reflect.get(each, 'staleEndpoints')] as const);
  return byName(told, (a, b) => a + b).map(([detector, value]) => ({ labels: { detector, ...poolIfNamed }, value }));
}

/** The saturation of each stage, from detectors that judge stages apart; where several do, the fullest reading. */
function stageSaturation({ detectors, pool }: FlowReadings): Sample[] {
  const told = detectors().flatMap((each) => Object.entries(Object(Reflect.get(each, 'stageSaturation'))));
  return byName(told, Math.max).map(([stage, value]) => ({ labels: { stage, ...pool }, value }));
}

export const families: readonly Family<FlowReadings>[] = [
  {
    name: 'flow_control_request_queue_duration_seconds',
    type: 'histogram',
    help: 'Time requests spend in the flow control layer.',
    labels: [...flowLabels, 'outcome'],
    *samples({ tally }, name) {
      for (const durations of [...tally.series('durations')]) yield* durations.samples(name);
    },
    reset: ({ tally }) => tally.resetDurations(),
  },
  {
    name: 'flow_control_dispatch_cycle_duration_seconds',
    type: 'histogram',
    help: 'Time of each walk over the queues.',
    labels: [],
    samples: ({ tally }, name) => tally.cycles.samples(name),
    reset: ({ tally }) => tally.cycles.reset(),
  },
  {
    name: 'flow_control_request_enqueue_duration_seconds',
    type: 'histogram',
    help: 'Time to enqueue or to decide a request; outcome NotYetFinalized waits.',
    labels: ['fairness_id', 'priority', 'outcome'],
    *samples({ tally }, name) {
      for (const durations of [...tally.series('enqueueDurations')]) yield* durations.samples(name);
    },
  },
  rows(
    'flow_control_stage_saturation',
    {
      kind: 'max',
      help: 'Saturation of each stage of disaggregated serving; absent where a detector does not judge stages apart.',
    },
    ['stage', 'inference_pool'],
    stageSaturation,
  ),
  {
    name: 'flow_control_requests_total',
    type: 'counter',
    help: 'Requests by what became of them.',
    labels: ['outcome', 'priority', 'inference_pool'],
    *samples({ tally, pool }) {
      for (const { label: priority, outcomes } of tally.priorities())
        for (const [outcome, value] of Object.entries(outcomes))
          yield { labels: { outcome, priority, ...pool }, value };
    },
    reset: ({ tally }) => tally.resetOutcomes(),
  },
  rows(
    'flow_control_stale_endpoints',
    { kind: 'max', help: 'Endpoints whose figures were missing or stale at the last reading of a detector.' },
    ['detector'],
    staleEndpoints,
  ),
  rows(
    'flow_control_revocations_total',
    { kind: 'counter', help: 'Running requests that were asked to leave and gave up their seat.' },
    ['outcome', 'inference_pool'],
    ({ confirmedVictims, pool }) => one({ outcome: 'confirmed', ...pool }, confirmedVictims),
  ),
  {
    name: 'flow_control_revocation_confirmation_seconds',
    type: 'histogram',
    help: 'Time that running requests took to leave once they were asked to.',
    labels: ['inference_pool'],
    samples: ({ confirmations }, name) => confirmations.samples(name),
    reset: ({ confirmations }) => confirmations.reset(),
  },
  ...inFlight('flow_control_flow_in_flight', fewFlowLabels, 'flow; absent while it has none', (flow) =>
    flow.rowsOf(flow.figures.stats.inFlightByFlow, Infinity),
  ),
  // Under the names of the reference, without its labels of Kubernetes.
  ...inFlight(
    'inflight',
    ['endpoint_name', ...fewFlowLabels],
    'endpoint and flow; absent while there are none',
    (flow) => flow.rowsOf(flow.figures.inFlightByEndpoint(), flow.maxSeries),
  ),
  ...catalogue.map(ofCatalogue).map((family) => ({ ...family, ...ownLabels[family.name] })),
];

export const dynamoRejections: Family<FlowReadings> = {
  name: 'dynamo_frontend_model_rejection_total',
  hasPrefix: false,
  type: 'counter',
  help: 'Requests rejected because every worker is busy.',
  labels: ['model', 'endpoint'],
  samples: ({ modelRejections }) => modelRejections?.samples() ?? [],
  reset: ({ modelRejections }) => modelRejections?.reset(),
};
