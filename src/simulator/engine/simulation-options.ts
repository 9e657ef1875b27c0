/** The options of a simulation, and their defaults. Scenario files have the same shape, with the gateway's `flow`. */
import { row } from '../../base/schema/json-schema.js';
import * as s from '../../base/schema/schema.js';
import type { Duration, FlowControllerOptions } from '../../index.js';
import { differenceOptions, type ServiceDifferenceOptions } from '../measures/service-difference.js';
import type { SimRequest } from '../requests/sim-request.js';
import { type Outage, outageShape, type Slowdown, slowdownShape } from '../servers/server-faults.js';
import { namesOf, type ServerSpec, serverSpec } from '../servers/server-spec.js';
import { type TrafficSpec, trafficSpec } from '../traffic/traffic-spec.js';

/** How servers tell the gateway of their load. */
export interface LoadReports {
  /** How often, ms. @default 50 */
  readonly interval?: number | undefined;
  /** How old a report is when it arrives, ms. @default 0 */
  readonly delay?: number | undefined;
}

/** Everything but the flow control. Times may be written as durations such as `'10m'`, figures as numbers. */
export interface ScenarioBody {
  readonly name?: string | undefined;
  /** Any integer; the same seed gives the same result, byte for byte. @default 1 */
  readonly seed?: number | undefined;
  /** How long traffic comes. */
  readonly duration: Duration;
  /** Requests that arrive before are simulated and not measured. @default 0 */
  readonly warmUp?: Duration | undefined;
  /** How long the run goes on after the traffic, until all has ended. @default ten times `duration`, ≥ ten minutes */
  readonly drain?: Duration | undefined;
  /** Length of a bucket of the time series. @default a 120th of `duration` */
  readonly bucket?: Duration | undefined;
  readonly servers: readonly ServerSpec[];
  readonly traffic: readonly TrafficSpec[];
  /** Servers that die, and come back. @default none */
  readonly outages?: readonly Outage[] | undefined;
  /** Servers that become slow, and are fast again later. @default none */
  readonly slowdowns?: readonly Slowdown[] | undefined;
  /** Load reports of the servers. @default none, or every 50 ms where the detector needs them */
  readonly reports?: LoadReports | undefined;
  /** When the gateway tells its policies what a request consumed: at its end, or with every token. @default 'end' */
  readonly usageReports?: 'end' | 'stream' | undefined;
  /** The end of a running request that is evicted before its first token. @default 'requeue' */
  readonly onEvicted?: 'requeue' | 'drop' | undefined;
  /** Keep a record of each request. Memory grows with them. @default false, or true with `serviceDifference` */
  readonly keepRequests?: boolean | undefined;
  /** Compute the service difference of the VTC paper. @default not computed */
  readonly serviceDifference?: ServiceDifferenceOptions | undefined;
}

export interface SimulationOptions extends ScenarioBody {
  /** The controller's options, without `clock` and `pool`; a function where several simulations need fresh policies. */
  readonly flow: SimulatedFlow | (() => SimulatedFlow);
}

export type SimulatedFlow = Omit<FlowControllerOptions<SimRequest>, 'clock' | 'pool'>;

/** Resolved: ms, and defaults filled in. */
export interface ResolvedSimulation
  extends s.Filled<
    Omit<ScenarioBody, 'duration' | 'warmUp' | 'drain' | 'bucket' | 'keepRequests'>,
    'reports' | 'serviceDifference'
  > {
  readonly durationMs: number;
  readonly warmUpMs: number;
  readonly drainMs: number;
  readonly bucketMs: number;
  readonly keepsRequests: boolean;
}

/** The keys of a scenario, but those of flow control. */
const scenarioShape = {
  name: row('Its name, in reports.', s.optional(s.text('a name'), 'simulation')),
  seed: row('Draws with the same seed are the same.', s.optional(s.integer(), 1)),
  duration: row('How long traffic comes.', s.durationAboveZero('10m')),
  warmUp: row('What ends before it does not count.', s.optional(s.duration('30s'), 0)),
  drain: row('How long what has come may take to end after that.', s.optional(s.duration('10m'))),
  bucket: row('The width of a point of the charts.', s.optional(s.durationAboveZero('5s'))),
  servers: row('The model servers.', s.list(serverSpec)),
  traffic: row('Who sends what, and when.', s.list(trafficSpec)),
  outages: row('Servers that die, and come back.', s.optional(s.list(outageShape), [])),
  slowdowns: row('Servers that become slow.', s.optional(s.list(slowdownShape), [])),
  reports: row(
    'How old the load is that detectors see.',
    s.optional(s.object({ interval: s.optional(s.durationAboveZero('50ms')), delay: s.optional(s.duration('0ms')) })),
  ),
  usageReports: row('When servers tell what a request consumed.', s.optional(s.oneOf('end', 'stream'), 'end')),
  onEvicted: row(
    'What becomes of a request that is evicted before its first token.',
    s.optional(s.oneOf('requeue', 'drop'), 'requeue'),
  ),
  keepRequests: row('Keep a record of each request.', s.optional(s.flag())),
  serviceDifference: row('Compute the service difference of the VTC paper.', s.optional(differenceOptions)),
};

/** A recording of a second may have answers of a minute. */
const leastDrainMs = 600_000;

/** The table, for those who read more than these keys from one object. */
export const scenarioTable: s.Shape = scenarioShape;

/** Lists must not be empty, names must differ, and the warm-up must end before the traffic does. */
const scenarioBody = s.object(scenarioShape, (given, report) => {
  const { servers, traffic, warmUp, duration: length } = given;
  if (servers?.length === 0) report('at least one server', ['servers']);
  if (traffic?.length === 0) report('at least one entry', ['traffic']);
  if (typeof warmUp === 'number' && typeof length === 'number' && warmUp >= length)
    report('less than `duration`', ['warmUp']);
  if (length === Infinity) report('a time that ends', ['duration']);
  const names = new Set<string>();
  const entries: ScenarioBody['servers'] = Array.isArray(servers) ? servers : [];
  for (const [index, server] of entries.entries()) {
    if (server?.model === undefined) continue;
    const { name = 'server' } = server;
    if (names.has(name)) report('a name that no other server has', ['servers', index, 'name'], JSON.stringify(name));
    names.add(name);
  }
  const ids = entries.flatMap((server) => (server?.model === undefined ? [] : namesOf(server)));
  for (const faults of ['outages', 'slowdowns'] as const) {
    for (const [index, fault] of (Array.isArray(given[faults]) ? given[faults] : []).entries()) {
      const name: unknown = fault?.server;
      if (typeof name === 'string' && !ids.includes(name))
        report(`one of the servers ${ids.join(', ')}`, [faults, index, 'server'], JSON.stringify(name));
    }
  }
});

/** The scenario with its units resolved. @throws FlowConfigError that lists every problem */
export function resolveScenario(given: ScenarioBody): ResolvedSimulation {
  const { duration, warmUp, drain, bucket, keepRequests, ...read } = s.parse(scenarioBody, given, 'simulation');
  return {
    ...read,
    durationMs: duration,
    warmUpMs: warmUp,
    drainMs: drain ?? Math.max(duration * 10, leastDrainMs),
    bucketMs: bucket ?? duration / 120,
    keepsRequests: keepRequests ?? read.serviceDifference !== undefined,
  };
}
