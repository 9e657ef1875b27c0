/** The section `flowControl`, and the options that it becomes. */
import type { output } from 'zod/v4/core';
import { endpointTurns } from '../base/endpoint-turns.js';
import type { Problems } from '../base/problems.js';
import * as rules from '../base/schema/cross-field-rules.js';
import { option, row } from '../base/schema/json-schema.js';
import * as s from '../base/schema/schema.js';
import type { BandTemplate, Duration, FlowControllerOptions, Schema } from '../index.js';
import { inFlightEviction, nounOf, shadow } from '../index.js';
import { interval, quantity, span, ttl } from './config-elements.js';
import type { DeclaredPlugins } from './declared-plugins.js';
import { flowLimits, flowSettings, flowsOf, inFlight, knownPlans, unlimitedWhereZero } from './tenant-plans.js';

/** The limits of a band whose own limit is absent or 0, as in llm-d. */
const bandDefaults = { maxRequests: 5000, maxBytes: 1e9 };

const limitNames = ['maxRequests', 'maxBytes'] as const;

/** What silence in a file means. `llm-d`: flows are labels, full queues reject. `headgate`: turns, `fair` overflow. */
export type ConfigDefaults = 'llm-d' | 'headgate';

const silence = {
  'llm-d': { fairness: 'global-strict-fairness-policy', overflow: 'reject' },
  headgate: { fairness: 'round-robin-fairness-policy', overflow: 'fair' },
} as const;

/** Parameters of types that mean something else where a file is silent than in code. */
export const silentParameters: Record<ConfigDefaults, Readonly<Record<string, object>>> = {
  'llm-d': { 'utilization-detector': { queueDepthThreshold: 5 } },
  headgate: {},
};

/** What the names of plugins stand for: those that a file declares. */
type References = Pick<DeclaredPlugins, 'reference'>;

const gate = {
  closeAt: option('The saturation at which the gate closes; 1 without it.', s.aboveZero()),
  openAt: option('The saturation at which it opens again; `closeAt` without it.', s.atLeastZero()),
  failValue: option('The saturation that a failing detector is read as; 1 without it.', s.atLeastZero()),
  recheckInterval: option('How often a closed gate asks a detector; `10ms` without it.', interval('10ms')),
};

function bandTable(plugins: References, defaults: ConfigDefaults) {
  return {
    maxRequests: option('Requests that may wait in the band; 5000 without it.', quantity('the default', '500')),
    maxBytes: option('The bytes of their bodies; 1e9 without it.', quantity('the default', '1Gi')),
    fairnessPolicyRef: row('Which flow of it goes next.', plugins.reference('fairness', silence[defaults].fairness)),
    orderingPolicyRef: row('Which request of a flow goes next.', plugins.reference('ordering', 'fcfs-ordering-policy')),
    defaultRequestTTL: option('How long a request may wait in the band; the global one without it.', ttl()),
    saturationDetectorRef: option(
      'Judges this band alone; that of the section without it.',
      plugins.reference('saturationDetector'),
    ),
    flowLimits: option('Limits of each flow of the band; unlimited without it.', flowLimits()),
    maxInFlightPerFlow: option('What each flow may run at a time; unlimited without it.', inFlight()),
    minShare: option('The part of all dispatches that the band gets while it waits; 0 without it.', s.ratio()),
    endpoints: option(
      'Groups of servers (label `group`), in turn; every server without it.',
      endpointTurns(span('200ms')),
    ),
  };
}

/** Everything but `enableEviction` says nothing while that is off. */
function evictionTable(plugins: References) {
  return {
    enableEviction: option('Running requests give up seats for more important ones; false without it.', s.flag()),
    evictionFilterPluginRef: option(
      'Which requests may be evicted; `sheddable-eviction-filter` without it.',
      plugins.reference('evictionFilter'),
    ),
    evictionOrderingPluginRef: option(
      'Which of them is first; `priority-then-time-eviction-order-policy` without it.',
      plugins.reference('evictionOrdering'),
    ),
    maxRevocationsPerDecision: option('Requests evicted by one decision; 2 without it.', s.positiveInteger()),
    evictionConfirmationGrace: option(
      'Until a freed seat shows. Without it: `0s`, or `500ms` for a detector that reads reports.',
      ttl(),
    ),
    evictionConfirmationTimeout: option('When a victim that stays is written off; `10s` without it.', interval('10s')),
    evictionReserve: option('How long lower bands leave that room to a higher one; `1s` without it.', ttl()),
  };
}

function sectionSchema(plugins: References, defaults: ConfigDefaults) {
  const band = bandTable(plugins, defaults);
  const { overflow } = silence[defaults];
  const shape = {
    maxRequests: option('Requests that may wait in all; unlimited without it.', quantity('unlimited', '1k')),
    maxBytes: option('The bytes of their bodies; unlimited without it.', quantity('unlimited', '10Gi')),
    defaultRequestTTL: option('How long a request may wait; `60s` without it.', ttl()),
    noEndpointRequestTTL: option(
      'The same while there is no server. Without it: its TTL, at most `5s` while none was ever ready.',
      ttl(),
    ),
    defaultPriorityBand: row('The template of bands that are made on first use.', s.orEmpty(s.object(band))),
    defaultNegativePriorityBand: option('The same for negative priorities.', s.object(band)),
    priorityBands: option(
      'One entry for each priority, in any order.',
      s.list(s.object({ priority: row('Higher goes first; negative is sheddable.', s.integer()), ...band })),
    ),
    usageLimitPolicyPluginRef: row(
      'Up to which saturation each band may dispatch.',
      plugins.reference('usageLimit', 'static-usage-limit-policy'),
    ),
    bandSelectionPolicyPluginRef: option('`bandOrder` as a policy.', plugins.reference('bandOrder')),
    saturationDetector: option(
      'How full the pool is; `utilization-detector` without it.',
      s.object({ pluginRef: s.optional(plugins.reference('saturationDetector')) }),
    ),
    constraintPluginRefs: option('Judge each request by itself.', s.list(plugins.reference('constraint'))),
    ...evictionTable(plugins),
    mode: option(
      '`admission`: nothing waits. `shadow`: nothing is held or dropped; `queue` without it.',
      s.oneOf('queue', 'admission', 'shadow'),
    ),
    admissionPolicyPluginRef: option('Rejects requests before all else.', plugins.reference('admission')),
    endpointPickerPluginRef: option(
      'Chooses the server at dispatch; `least-loaded-picker` without it.',
      plugins.reference('endpointPicker'),
    ),
    endpointFilterPluginRefs: option('Where a request may go at all.', s.list(plugins.reference('endpointFilter'))),
    headroom: option(
      '`preferred`: a full server takes it when all are. Without it: `required` with filters or groups of servers, else `preferred`.',
      s.oneOf('preferred', 'required'),
    ),
    holBlocking: option(
      'Which requests wait behind one whose servers have no room; `band` without it, `flow` with groups.',
      s.oneOf('band', 'flow', 'none'),
    ),
    overflow: row('Who leaves full queues.', s.optional(s.oneOf('reject', 'displace', 'fair'), overflow)),
    bandOrder: option('Which band goes next; `strict` without it.', s.oneOf('strict', 'fifo', 'aging')),
    bandPromotion: option('Waiting that is worth one band, for `aging`; `60s` without it.', ttl()),
    minShareUnit: option('What `minShare` is a part of; `requests` without it.', s.oneOf('requests', 'tokens')),
    flows: option('Settings of single tenants.', s.record(flowSettings())),
    plans: option('Settings that several tenants share, by name.', s.record(flowSettings())),
    tenants: option('Tenants and their plans; `"*"`: whoever has no other.', s.record(s.text('the name of a plan'))),
    gate: option('When dispatch stops and goes on.', s.object(gate, rules.opensBelowClosing)),
    maxBands: option('Bands that may exist; 64 without it.', s.integer({ from: 1, to: rules.mostBands })),
    maxFlows: option('Flows that may exist; 100000 without it.', s.positiveInteger()),
    flowIdleTimeout: option('How long an idle flow is remembered; `5m` without it.', interval('5m')),
    bandIdleTimeout: option('How long an idle band is kept; `10m` without it.', interval('10m')),
    maxLease: option('A request that holds its seat longer is told of; never without it.', interval('45m')),
    overdueLeases: option('Whether its seat is taken back; `warn` without it.', s.oneOf('warn', 'release')),
  };
  return s.object(
    shape,
    rules.distinctPriorities('priorityBands'),
    rules.roomForBands('priorityBands'),
    rules.bandOutlivesFlows,
    knownPlans,
    oneBandOrder,
  );
}

/** For editors, which know the names of plugins only as text. */
export function flowControlTable(defaults: ConfigDefaults): Schema<unknown> {
  const reference: References['reference'] = (kind, name) => {
    const ofKind = s.text(`the name of ${nounOf(kind)}`);
    return (name === undefined ? ofKind : s.otherwise(ofKind, name)) as Schema<never>;
  };
  return sectionSchema({ reference }, defaults);
}

/** The word and the plugin would be two answers to one question. */
function oneBandOrder(
  { bandOrder, bandSelectionPolicyPluginRef }: { bandOrder?: unknown; bandSelectionPolicyPluginRef?: unknown },
  report: s.Report,
): void {
  if (bandOrder === undefined || bandSelectionPolicyPluginRef === undefined) return;
  report('nothing, because bandSelectionPolicyPluginRef names the order', ['bandOrder'], JSON.stringify(bandOrder));
}

type Section = output<ReturnType<typeof sectionSchema>>;
type Band = Section['defaultPriorityBand'];

/** Constructor options without the detector, when the section names none. */
export type SectionOptions = Omit<FlowControllerOptions, 'saturationDetector'> &
  Partial<Pick<FlowControllerOptions, 'saturationDetector'>>;

/** The options that the section stands for; undefined when it has problems, which are noted. */
export function readFlowControl(
  section: unknown,
  plugins: DeclaredPlugins,
  defaults: ConfigDefaults,
  problems: Problems,
  at: string,
): SectionOptions | undefined {
  const read = problems.check(sectionSchema(plugins, defaults), section ?? {}, `${at}flowControl`);
  if (read === undefined) return undefined;
  warnOfDefaults(read, problems, at);
  warnOfSums(read, problems, at);
  const { enableEviction: _, ...ofEviction } = evictionTable(plugins);
  const unused = Object.keys(ofEviction).filter((name) => Reflect.get(read, name) !== undefined);
  if (read.enableEviction !== true && unused.length > 0)
    problems.warn(at, `flowControl: ignored without enableEviction: ${unused.join(', ')}`);
  const { saturationDetector, bandPromotion, headroom, holBlocking, minShareUnit, overflow } = read;
  const { maxBands, maxFlows, flowIdleTimeout, bandIdleTimeout, overdueLeases } = read;
  const alike = { bandPromotion, headroom, holBlocking, minShareUnit, overflow };
  const bounds = { maxBands, maxFlows, flowIdleTimeout, bandIdleTimeout, overdueLeases };
  const { recheckInterval: recheckIntervalMs, ...gate } = read.gate ?? {};
  return {
    ...(saturationDetector?.pluginRef === undefined ? {} : { saturationDetector: saturationDetector.pluginRef }),
    ...alike,
    ...bounds,
    gate: read.gate && { ...gate, recheckIntervalMs },
    constraints: read.constraintPluginRefs,
    mode: read.mode === 'shadow' ? shadow() : read.mode,
    admission: read.admissionPolicyPluginRef,
    endpointPicker: read.endpointPickerPluginRef,
    endpointFilters: read.endpointFilterPluginRefs,
    eviction: evictionOf(read),
    bandOrder: read.bandSelectionPolicyPluginRef ?? read.bandOrder,
    flows: flowsOf(read),
    usageLimitPolicy: read.usageLimitPolicyPluginRef,
    limits: { maxRequests: read.maxRequests || Infinity, maxBytes: read.maxBytes || Infinity },
    bands: (read.priorityBands ?? []).map((band) => ({ priority: band.priority, ...template(band) })),
    defaultBand: template(read.defaultPriorityBand),
    defaultNegativeBand: read.defaultNegativePriorityBand && template(read.defaultNegativePriorityBand),
    maxLeaseMs: read.maxLease,
    defaultRequestTtl: withUnit(read.defaultRequestTTL),
    noEndpointRequestTtl: withUnit(read.noEndpointRequestTTL),
  };
}

function evictionOf(section: Section): FlowControllerOptions['eviction'] {
  if (section.enableEviction !== true) return undefined;
  return inFlightEviction({
    filter: section.evictionFilterPluginRef,
    ordering: section.evictionOrderingPluginRef,
    maxPerDecision: section.maxRevocationsPerDecision,
    graceMs: section.evictionConfirmationGrace,
    timeoutMs: section.evictionConfirmationTimeout,
    reserveMs: section.evictionReserve,
  });
}

/** Files have a unit in every duration: the constructor need not ask if a small number was meant in seconds. */
const withUnit = (ms: number | undefined): Duration | undefined => (ms === undefined || ms === 0 ? ms : `${ms}ms`);

function template(band: Band): BandTemplate {
  return {
    // Spelt out, because the constructor would follow a larger global limit.
    limits: {
      maxRequests: band.maxRequests || bandDefaults.maxRequests,
      maxBytes: band.maxBytes || bandDefaults.maxBytes,
    },
    flowLimits: band.flowLimits && unlimitedWhereZero(band.flowLimits),
    maxInFlightPerFlow: band.maxInFlightPerFlow,
    requestTtl: withUnit(band.defaultRequestTTL),
    fairness: band.fairnessPolicyRef,
    ordering: band.orderingPolicyRef,
    saturationDetector: band.saturationDetectorRef,
    minShare: band.minShare,
    endpoints: band.endpoints?.map(({ group, afterMs }) => ({ group, after: afterMs })),
  };
}

/** A band that takes the default holds less than a reader of the global limit expects. */
function warnOfDefaults(section: Section, problems: Problems, at: string): void {
  const bands = section.priorityBands ?? [];
  for (const name of limitNames) {
    const global = section[name];
    if (global === undefined || (global !== 0 && global <= bandDefaults[name])) continue;
    const fallen: string[] = bands.filter((band) => !band[name]).map((band) => `priority ${band.priority}`);
    if (!section.defaultPriorityBand[name]) fallen.push('any other priority');
    if (fallen.length === 0) continue;
    const larger = global === 0 || global === Infinity ? 'unlimited' : global;
    const hold = `bands without ${name} hold ${bandDefaults[name]}, less than the global ${larger}`;
    problems.warn(at, `flowControl: ${hold}: ${fallen.join(', ')}`);
  }
}

/** Bands that may hold more than the queue: a full queue rejects a higher band, unless others are evicted for it. */
function warnOfSums(section: Section, problems: Problems, at: string): void {
  if (section.overflow === 'fair') return;
  const bands = (section.priorityBands ?? []).filter(({ priority }) => section.overflow === 'reject' || priority >= 0);
  for (const name of limitNames) {
    const limits = bands.flatMap((band) => band[name] || []);
    const sum = limits.reduce((total, limit) => total + limit, 0);
    if (limits.length < 2 || !section[name] || sum === Infinity || sum <= section[name]) continue;
    const together = `the ${name} of the bands add up to ${sum}, more than the global ${section[name]}`;
    const risk = 'lower bands can fill the queue, and higher ones are rejected then (overflow: fair)';
    problems.warn(at, `flowControl: ${together}: ${risk}`);
  }
}
